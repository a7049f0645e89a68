"""Secrets on their way to a connection: known to the redactor before anybody can print them."""

from collections.abc import Mapping
from dataclasses import replace

from pydantic import SecretStr

from dragoman.connections.bearer import Bearer
from dragoman.connections.brought_secrets import brought_values
from dragoman.connections.http_clients import HttpClients
from dragoman.connections.oauth import Authorizations
from dragoman.connector import Connector, split_secrets
from dragoman.errors import Outdated
from dragoman.scope import holder_of
from dragoman.store.protocols import Store
from dragoman.telemetry.redaction import Redactor
from dragoman.vault import Vault


class RedactedSecrets:
    """Fills `Secrets` of the connections. What it is made of belongs to the hub."""

    def __init__(
        self, vault: Vault, redactor: Redactor, authorizations: Authorizations, clients: HttpClients
    ) -> None:
        self._vault = vault
        self._redactor = redactor
        self._authorizations = authorizations
        self._clients = clients

    async def reveal(self, connector: Connector, identity: str) -> Mapping[str, SecretStr]:
        secrets = await self._vault.reveal(connector, *holder_of(identity))
        environment = self._clients.for_connector(connector).environment
        self._redactor.register(brought_values(connector, secrets, environment))
        return secrets

    def bearer(self, connector: Connector, identity: str) -> Bearer | None:
        return self._authorizations.bearer(connector, identity)


async def sealed_now(connector: Connector, store: Store, vault: Vault) -> Connector:
    """As it is kept: what an older version left in the open goes to the vault when the store is opened."""
    split = split_secrets(connector.configuration)
    if not split.secrets:
        return connector
    kept = await store.connectors.secrets(connector, "", "")
    place = (connector.workspace, "", connector.id)
    found = [vault.seal(*place, name, value) for name, value in split.secrets.items()]
    names = tuple(sorted({*connector.configuration.secrets, *split.secrets}))
    after = replace(
        connector,
        configuration=split.configuration.changed({"secrets": names}),
        revision=connector.revision + 1,
    )
    secrets = [*(one for one in kept if one.name not in split.secrets), *found]
    try:
        await store.connectors.update(after, secrets)
    except Outdated:  # another process starts at this moment, and has done it
        return await store.connectors.find(connector.workspace, connector.id) or after
    return after
