"""Tokens where a configuration cannot hide them: in the arguments of a command or in a URL. Names only."""

import re
from collections.abc import Sequence
from urllib.parse import parse_qsl, urlsplit

_TELLING = re.compile(
    r"token|secret|passw|api[-_]?key|private[-_]?key|credential|authorization", re.IGNORECASE
)
_LOOKS_SECRET = re.compile(
    r"\b(sk-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|xox[abpr]-[\w-]{10,}"
    r"|AKIA[0-9A-Z]{16}|glpat-[\w-]{16,}|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]+)|://[^/@\s]+:[^/@\s]+@"
)


def suspicions(args: Sequence[str], url: str | None) -> tuple[str, ...]:
    """Sentences for a person; no value appears in them."""
    found = [_in_argument(args, index) for index in range(len(args))]
    if url and (names := _secret_parameters(url)):
        found.append(
            f"its url seems to hold a secret ({', '.join(names)}): better a header, which is encrypted"
        )
    return tuple(dict.fromkeys(sentence for sentence in found if sentence))


def _in_argument(args: Sequence[str], index: int) -> str | None:
    word = args[index]
    flag, sign, value = word.partition("=")
    if word.startswith("-") and sign and _is_value(value) and _TELLING.search(flag):
        return _sentence(f"its argument {flag[:60]}")
    previous = args[index - 1] if index else ""
    if previous.startswith("-") and "=" not in previous and _TELLING.search(previous) and _is_value(word):
        return _sentence(f"its argument {previous[:60]}")
    if _LOOKS_SECRET.search(word):
        return _sentence(f"argument {index + 1}")
    return None


def _is_value(word: str) -> bool:
    return bool(word) and not word.startswith(("-", "${"))


def _sentence(what: str) -> str:
    return f"{what} seems to hold a secret, which is stored as it is: better a variable in env, or ${{VAR}}"


def _secret_parameters(url: str) -> list[str]:
    try:
        query = parse_qsl(urlsplit(url).query)
    except ValueError:
        return []
    return [name[:60] for name, value in query if _TELLING.search(name) and _is_value(value)]
