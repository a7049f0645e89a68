"""What a connector needs of its user before it works, and what the user can do about it. Pure words."""

from collections.abc import Mapping

from pydantic import SecretStr

from dragoman.connector import Connector
from dragoman.errors import NeedsAuth


def missing_secrets(connector: Connector, secrets: Mapping[str, SecretStr]) -> tuple[str, ...]:
    """Names of those that the user has not brought yet."""
    return tuple(name for name in connector.configuration.personal_secrets if name not in secrets)


def check_secrets(connector: Connector, secrets: Mapping[str, SecretStr]) -> None:
    """`NeedsAuth` before anything is sent to a server that could only refuse."""
    if missing := missing_secrets(connector, secrets):
        raise NeedsAuth(
            f"{connector.slug} needs {described(missing)} of yours", hint=credential_hint(connector, missing)
        )


def described(names: tuple[str, ...]) -> str:
    words = {"auth": "a credential", "oauth": "an authorisation"}
    return " and ".join(words.get(name, f"a value for {name.partition(':')[2]}") for name in names)


def credential_hint(connector: Connector, missing: tuple[str, ...] = ()) -> str:
    """The command that mends a refused or missing credential."""
    configuration = connector.configuration
    personal = missing or configuration.personal_secrets
    if personal and personal[0] == "oauth":
        return f"dragoman credentials authorize {connector.slug}"
    if personal:
        return f"dragoman credentials set {connector.slug} {' '.join(personal)}"
    if configuration.auth.kind == "oauth":
        return (
            f"the client is not accepted: dragoman connectors update {connector.slug}"
            " --oauth-client-credentials --oauth-client-id ID --oauth-client-secret-env VAR"
        )
    return (
        f"the server wants a valid credential: dragoman connectors update {connector.slug}"
        " --bearer TOKEN, or --oauth"
    )
