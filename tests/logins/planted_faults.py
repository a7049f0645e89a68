"""Faults to plant in a service that runs: each takes one check away, as a change that forgot it would.

By name: the family of attacks that must notice it, and how it is planted.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from dragoman.console.sessions import BrowserSession, BrowserSessions
from dragoman.hub import client_logins
from dragoman.hub.client_logins import ClientLogins
from dragoman.hub.oauth_clients import AskingClient
from dragoman.identity.access_tokens import AccessTokens

Plant = Callable[[], AbstractContextManager[Any]]


def _begins_alike(self: AskingClient, redirect_uri: str) -> bool:
    return redirect_uri.startswith(self.redirect_uris)


async def _for_any_address(self: AccessTokens, token: str, **facts: Any) -> Any:
    found = await _find(self, token, **facts)
    return found and replace(found, audience=None)


async def _ends_nothing(self: ClientLogins, key_id: str, why: str) -> None:
    return None


def _always(*_: object) -> bool:
    return True


async def _nobody_signed_out(self: BrowserSessions, mark: str) -> bool:
    return False


_find = AccessTokens.find
FAULTS: dict[str, tuple[str, Plant]] = {
    "redirects are compared by how they begin": (
        "redirect of a site",
        lambda: patch.object(AskingClient, "accepts", _begins_alike),
    ),
    "no verifier is looked at": ("code:", lambda: patch.object(client_logins, "_proves", _always)),
    "what comes twice ends nothing": ("refresh:", lambda: patch.object(ClientLogins, "_end", _ends_nothing)),
    "a token opens every address": (
        "audience:",
        lambda: patch.object(AccessTokens, "find", _for_any_address),
    ),
    "a form of another site is taken": (
        "consent:",
        lambda: patch.object(BrowserSession, "allows", _always),
    ),
    "who signs out is not remembered": (
        "consent:",
        lambda: patch.object(BrowserSessions, "_is_ended", _nobody_signed_out),
    ),
}
