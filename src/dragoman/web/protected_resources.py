"""`/mcp` as OAuth sees it: what it is called, who authorises for it (RFC 9728), and what a stranger is told.

The same for every address under `/mcp`, whether or not there is anything at it: no name can be guessed here.
"""

import re
from collections.abc import Mapping
from typing import Any

from starlette.types import Scope

from dragoman.errors import DragomanError
from dragoman.identity.access_tokens import SCOPES
from dragoman.settings import Settings
from dragoman.web.problems import status_of

WELL_KNOWN = "/.well-known/oauth-protected-resource"
_PLAIN = re.compile(r"(?:/[A-Za-z0-9._~%-]{1,200}){1,5}")
Json = Mapping[str, Any]


def base_of(settings: Settings, scope: Scope) -> str:
    """How clients reach us: as a setting says, or else by the name that they used, which the guard knows."""
    if settings.public_url:
        return settings.public_url.rstrip("/")
    host = next((value for name, value in scope["headers"] if name == b"host"), b"")
    return f"{scope['scheme']}://{host.decode('latin-1').lower()}"


class ProtectedResources:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._login = settings.client_login

    def resource_of(self, scope: Scope) -> str:
        """What tokens for this address must be for."""
        path: bytes = scope.get("raw_path") or scope["path"].encode()
        return base_of(self._settings, scope) + path.decode("latin-1").partition("?")[0].rstrip("/")

    def metadata(self, scope: Scope) -> Json | None:
        """For a request to the well-known address of a resource; None where nothing is offered."""
        if self._login == "off":
            return None
        base, path = base_of(self._settings, scope), self.resource_of(scope)
        path = path.removeprefix(base + WELL_KNOWN) or "/mcp"
        if not _PLAIN.fullmatch(path) or not f"{path}/".startswith("/mcp/"):
            return None
        facts: dict[str, Any] = {
            "resource": base + path,
            "authorization_servers": [base],
            "scopes_supported": [*SCOPES],
            "bearer_methods_supported": ["header"],
            "resource_name": "Dragoman",
        }
        if self._login == "issuer":
            del facts["scopes_supported"]
            facts["authorization_servers"] = [self._settings.oidc_issuer]
        return facts

    def challenge(self, scope: Scope, error: DragomanError) -> str | None:
        """What goes with a refusal under `/mcp`, so that the client knows where to log in, and for what."""
        status, path = status_of(error), scope["path"]
        if self._login == "off" or status not in (401, 403) or not f"{path}/".startswith("/mcp/"):
            return None
        base = base_of(self._settings, scope)
        path = self.resource_of(scope).removeprefix(base)
        path = path if _PLAIN.fullmatch(path) else "/mcp"
        words = {"resource_metadata": f"{base}{WELL_KNOWN}{path}"}
        if self._login == "dragoman":
            words["scope"] = " ".join(SCOPES)
        if status == 403:
            words = {"error": "insufficient_scope", **words}
        elif any(name == b"authorization" for name, _ in scope["headers"]):
            words = {"error": "invalid_token", **words}
        return "Bearer " + ", ".join(f'{name}="{value}"' for name, value in words.items())


def server_metadata(base: str) -> Json:
    """Dragoman as authorization server (RFC 8414)."""
    return {
        "issuer": base,
        "authorization_endpoint": f"{base}/oauth/authorize",
        "token_endpoint": f"{base}/oauth/token",
        "registration_endpoint": f"{base}/oauth/register",
        "revocation_endpoint": f"{base}/oauth/revoke",
        "introspection_endpoint": f"{base}/oauth/introspect",
        "jwks_uri": f"{base}/oauth/jwks",
        "scopes_supported": [*SCOPES],
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_methods_supported": ["none"],
        "revocation_endpoint_auth_methods_supported": ["none"],
        "code_challenge_methods_supported": ["S256"],
        "client_id_metadata_document_supported": True,
        "authorization_response_iss_parameter_supported": True,
    }
