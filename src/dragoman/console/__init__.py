"""The console: pages for people over the same facades as the API. Holds no logic of its own."""

from dragoman.console.app import Console as Console
from dragoman.console.app import is_console_path as is_console_path
