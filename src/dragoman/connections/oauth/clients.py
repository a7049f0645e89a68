"""Who we are to an authorisation server: a client that was given, one that a document describes, or one
that was registered (RFC 7591). Decides; keeps nothing.
"""

import json
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from time import time
from typing import Any, Literal
from urllib.parse import quote

from pydantic import SecretStr

from dragoman.connections.http_clients import Reach
from dragoman.connections.oauth.metadata import AuthorizationServer, ResourceAuthorization
from dragoman.connections.oauth.requests import Json, send_object
from dragoman.connector import Auth
from dragoman.errors import InvalidConfig

Method = Literal["none", "client_secret_basic", "client_secret_post", "private_key_jwt"]
GIVEN_SECRET = "oauth_client"  # noqa: S105 - the name of a secret
_REGISTERED = "oauth_registration"
_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_MARGIN = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthClient:
    id: str
    secret: SecretStr | None = None
    method: Method = "none"
    redirect: str | None = None
    expires_at: float = 0.0
    issuer: str | None = None

    def as_table(self) -> dict[str, Any]:
        """For the vault only: it holds the secret in the clear."""
        secret = self.secret.get_secret_value() if self.secret else None
        return {
            "id": self.id,
            "secret": secret,
            "method": self.method,
            "redirect": self.redirect,
            "expires_at": self.expires_at,
            "issuer": self.issuer,
        }

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> "OAuthClient":
        secret = table.get("secret")
        facts: dict[str, Any] = {**table, "secret": SecretStr(secret) if secret else None}
        return cls(**facts)

    def sign(self, form: dict[str, str]) -> dict[str, str]:
        """Puts into the form, or into the returned headers, what proves who asks."""
        secret = self.secret.get_secret_value() if self.secret else ""
        if self.method == "client_secret_basic" and secret:
            pair = f"{quote(self.id, safe='')}:{quote(secret, safe='')}"
            return {"Authorization": f"Basic {b64encode(pair.encode()).decode()}"}
        form["client_id"] = self.id
        if self.method == "client_secret_post" and secret:
            form["client_secret"] = secret
        if self.method == "private_key_jwt":
            form["client_assertion_type"] = _ASSERTION
            from dragoman.connections.oauth.private_keys import assertion

            form["client_assertion"] = assertion(self.id, secret, self.issuer or "")
        return {}


def registration_name(issuer: str) -> str:
    """The name under which a registration is kept: one for each issuer."""
    return f"{_REGISTERED}:{sha256(issuer.encode()).hexdigest()[:16]}"


def is_made_here(name: str) -> bool:
    """Whether a secret of this name was made by OAuth itself, not given by a person."""
    return name == "oauth" or name.startswith(f"{_REGISTERED}:")


def given_client(
    auth: Auth, issuer: AuthorizationServer, secrets: Mapping[str, SecretStr]
) -> OAuthClient | None:
    if auth.client_id is None:
        return None
    return client_with(auth.client_id, secrets.get(GIVEN_SECRET), _method(issuer), issuer.issuer)


def client_with(name: str, secret: SecretStr | None, method: Method, issuer: str) -> OAuthClient:
    """One that was given. Where its secret is a private key, it signs with it and never sends it."""
    if secret is None:
        return OAuthClient(id=name)
    if is_private_key(secret):
        from dragoman.connections.oauth.private_keys import private_key

        private_key(secret.get_secret_value())  # a broken one is said now
        return OAuthClient(id=name, secret=secret, method="private_key_jwt", issuer=issuer)
    return OAuthClient(id=name, secret=secret, method=method)


def is_private_key(secret: SecretStr) -> bool:
    return secret.get_secret_value().lstrip().startswith(("-----BEGIN", "{"))


def registered_client(
    issuer: AuthorizationServer, secrets: Mapping[str, SecretStr], redirect: str
) -> OAuthClient | None:
    """The one that was registered before, while it lasts and comes back to the same address."""
    kept = secrets.get(registration_name(issuer.issuer))
    if kept is None:
        return None
    client = OAuthClient.from_table(json.loads(kept.get_secret_value()))
    is_over = client.expires_at and client.expires_at < time() + _MARGIN
    return client if client.redirect == redirect and not is_over else None


def client_document(public_url: str) -> Json:
    """Who we are, for servers that read it from our own address (client ID metadata document)."""
    return {
        "client_id": document_address(public_url),
        **_description(f"{public_url}/oauth/callback"),
        "client_uri": public_url,
        "token_endpoint_auth_method": "none",
    }


def document_address(public_url: str) -> str:
    return f"{public_url}/oauth/client.json"


async def register(reach: Reach, found: ResourceAuthorization, redirect: str) -> OAuthClient:
    """`InvalidConfig` when the server registers nobody."""
    issuer = found.issuer
    if issuer.registration_endpoint is None:
        raise InvalidConfig(
            f"{issuer.issuer} registers no clients by itself",
            hint="register one there for the address " + redirect + " and give it: --oauth-client-id ID",
        )
    methods = issuer.token_endpoint_auth_methods_supported
    wanted: Method = "none" if "none" in methods else _method(issuer)
    asked = {**_description(redirect), "token_endpoint_auth_method": wanted}
    if found.scopes:
        asked["scope"] = " ".join(found.scopes)
    status, answer = await send_object(reach, issuer.registration_endpoint, asked)
    name, secret = answer.get("client_id"), answer.get("client_secret")
    if status not in (200, 201) or not isinstance(name, str):
        said = f"{answer.get('error', '')} {answer.get('error_description', '')}".strip()[:300]
        raise InvalidConfig(
            f"{issuer.issuer} did not register us: {said or status}",
            hint="register a client there and give it: --oauth-client-id ID",
        )
    method = answer.get("token_endpoint_auth_method", wanted)
    expires = answer.get("client_secret_expires_at")
    return OAuthClient(
        id=name,
        secret=SecretStr(secret) if isinstance(secret, str) and secret else None,
        method=method if method in ("none", "client_secret_basic", "client_secret_post") else wanted,
        redirect=redirect,
        expires_at=float(expires) if isinstance(expires, int | float) else 0.0,
    )


def _description(redirect: str) -> dict[str, Any]:
    is_local = redirect.startswith(("http://127.0.0.1", "http://localhost", "http://[::1]"))
    return {
        "client_name": "Dragoman",
        "redirect_uris": [redirect],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "application_type": "native" if is_local else "web",
    }


def _method(issuer: AuthorizationServer) -> Method:
    methods = issuer.token_endpoint_auth_methods_supported
    return "client_secret_post" if methods and "client_secret_basic" not in methods else "client_secret_basic"
