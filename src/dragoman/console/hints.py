"""Hints as the console shows them: where one names a command, there is a page for the same."""

import re
from urllib.parse import quote

from markupsafe import Markup, escape

_COMMAND = re.compile(
    r"dragoman (?P<group>[a-z]+)(?: (?!shows)(?P<verb>[a-z]+))?(?: (?!shows)(?P<name>[\w.@-]+))?"
)
_PAGES = {
    "connectors": ("/connectors", "Connectors"),
    "tools": ("/tools", "Tools"),
    "agents": ("/agents", "Agents"),
    "runs": ("/runs", "Runs"),
    "threads": ("/chat", "Chat"),
    "approvals": ("/approvals", "Approvals"),
    "questions": ("/approvals", "Approvals"),
    "credentials": ("/credentials", "Credentials"),
    "keys": ("/keys", "API keys"),
    "users": ("/keys", "API keys"),
    "workspaces": ("/settings", "Settings"),
    "whoami": ("/settings", "Settings"),
    "models": ("/settings", "Settings"),
    "discover": ("/transfer", "Import/export"),
}
_HAVE_PAGES = {"connectors": ("enable", "show", "update"), "tools": ("show",), "agents": ("start", "show")}


def linked(hint: str | None) -> Markup:
    """The hint with its command as code, and a link to the page that does the same."""
    text = hint or ""
    found = _COMMAND.search(text)
    page = _PAGES.get(found["group"]) if found else None
    if found is None or page is None:
        return escape(text)
    address, label = page
    if found["name"] and found["verb"] in _HAVE_PAGES.get(found["group"], ()):
        address, label = f"{address}/{quote(found['name'])}", found["name"]
    before, after = text[: found.start()], text[found.end() :]
    link = Markup('<a href="{}">{}</a>').format(address, label)
    return Markup("{}<code>{}</code>{} · {}").format(before, found[0], after, link)
