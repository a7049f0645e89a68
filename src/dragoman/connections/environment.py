"""What a child process may know of us, and `${VAR}` in a configuration.

A child gets an allow-list of our variables plus what its connector sets, and nothing else.
"""

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from dragoman.errors import InvalidConfig

PASSED_ON = (
    "HOME",
    "LANG",
    "LC_ALL",
    "LOGNAME",
    "NODE_EXTRA_CA_CERTS",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TMPDIR",
    "TZ",
    "USER",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "all_proxy",
)

_REFERENCE = re.compile(r"\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\}")


def expanded(text: str, environment: Mapping[str, str] | None) -> str:
    """The text with each `${VAR}` or `${VAR:-default}` replaced; `InvalidConfig` where one is not set.

    Without an environment it stays as it is: nobody but who runs Dragoman may read its variables.
    """
    if environment is None:
        return text

    def value(match: re.Match[str]) -> str:
        name: str = match["name"]
        default: str | None = match["default"]
        found = environment.get(name, default)
        if found is None:
            raise InvalidConfig(
                f"the environment variable {name} is not set",
                hint=f"set {name} where Dragoman runs, or write ${{{name}:-default}}",
            )
        return found

    return _REFERENCE.sub(value, text)


def has_reference(text: str) -> bool:
    """Whether `expanded` would read a variable."""
    return _REFERENCE.search(text) is not None


def child_environment(own: Mapping[str, str], connector: Mapping[str, str]) -> dict[str, str]:
    """The allow-list out of `own`, PATH with our own environment's bin first, then the connector's."""
    child = {name: own[name] for name in PASSED_ON if name in own}
    here = str(Path(sys.executable).parent)
    path = [part for part in own.get("PATH", os.defpath).split(os.pathsep) if part and part != here]
    child["PATH"] = os.pathsep.join([here, *path])
    return child | dict(connector)
