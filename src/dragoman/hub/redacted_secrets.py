"""Secrets on their way to a connection: known to the redactor before anybody can print them."""

from collections.abc import Iterable, Mapping
from urllib.parse import quote

from pydantic import SecretStr

from dragoman.connections.bearer import Bearer
from dragoman.connections.oauth import Authorizations
from dragoman.connections.oauth.clients import GIVEN_SECRET, is_made_here
from dragoman.connector import Connector
from dragoman.scope import holder_of
from dragoman.telemetry.redaction import Redactor
from dragoman.vault import Vault


class RedactedSecrets:
    """Fills `Secrets` of the connections. Vault, redactor and authorisations belong to the hub."""

    def __init__(self, vault: Vault, redactor: Redactor, authorizations: Authorizations) -> None:
        self._vault = vault
        self._redactor = redactor
        self._authorizations = authorizations

    async def reveal(self, connector: Connector, identity: str) -> Mapping[str, SecretStr]:
        secrets = await self._vault.reveal(connector, *holder_of(identity))
        for name, value in secrets.items():
            if not is_made_here(name):
                self._redactor.register(_telling_parts(connector, name, value.get_secret_value()))
        return secrets

    def bearer(self, connector: Connector, identity: str) -> Bearer | None:
        return self._authorizations.bearer(connector, identity)


def _telling_parts(connector: Connector, name: str, value: str) -> Iterable[str]:
    """The value, and the part of `Bearer TOKEN` or `user:password` that tells as much by itself."""
    yield value
    if name.startswith("header:"):
        scheme, _, token = value.partition(" ")
        if scheme.lower() in ("bearer", "basic", "token"):
            yield token
    if name == "auth" and connector.configuration.auth.kind == "basic":
        yield value.partition(":")[2]
    if name == GIVEN_SECRET:  # as a token endpoint is told of it, in base64
        yield f"{quote(connector.configuration.auth.client_id or '', safe='')}:{quote(value, safe='')}"
