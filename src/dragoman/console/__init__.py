"""The console: pages for people over the same facades as the API. Holds no logic of its own.

`app.Console` is loaded with the first request for a page, by who asks for it there.
"""

from dragoman.console.places import is_console_path as is_console_path
from dragoman.console.sessions import BrowserSessions as BrowserSessions
