"""Secrets in what is sent and given: known shapes, passwords in addresses, values under telling names.

A pattern sees no password without a name, no secret that is split, encoded or spelled out.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from dragoman.hooks.patterns import Found, apart
from dragoman.secret_shapes import shapes_in
from dragoman.word_finder import WordFinder

# How names end that secrets stand under; what must precede where the word alone is common.
_ENDS: tuple[tuple[str, str], ...] = (
    ("password", ""),
    ("passwd", ""),
    ("passphrase", ""),
    ("passwort", ""),
    ("_pass", ""),
    ("pwd", ""),
    ("mot de passe", ""),
    ("contraseña", ""),
    ("secret", ""),
    ("credential", ""),
    (
        "key",
        r"(?:api|access|auth|account|storage|signing|encryption|licen[cs]e|master|service|private|secret)[_-]?$",
    ),
    ("token", r"(?:access|auth|refresh|id|session|bearer|api|bot|service)[_-]?$"),
    ("_pat", ""),
)
_PRECEDED = {end: re.compile(before) for end, before in _ENDS if before}
_SUFFIX = re.compile(r"(?:s|_base|_key_base|_access_key)$")
_REST = re.compile(
    r"""(?:s|_key|_base|_key_base|_access_key)?\\?["']?\s{0,3}(?::=|=>|[:=]|,\s?(?=['"])|["']?\s+value=|\s(?:is|ist|lautet)(?=[\s:]))\s{0,3}"""
    r"""(?:(?:Token|Basic|Bearer)\s)?"""
    r"""(?:\\?"(?P<double>[^"\\\n]{6,})\\?"|'(?P<single>[^'\n]{6,})'|(?P<bare>[^\s"',;&)}\]<>\\]{6,}))""",
    re.IGNORECASE,
)
_OPTION = re.compile(
    r"(?:-u|--user)[ =][\"']?[\w.@-]+:(?P<bare>[^\s\"':/@]{6,})|sshpass -p ?[\"']?(?P<quoted>[^\s\"']{4,})"
)
_OPTIONS = ("-u ", "-u=", "--user", "sshpass -p")
_HEADER = "authorization: token "
_ADDRESS = "://"
_LONGEST_NAME = 100
_FINDER = WordFinder((*(end for end, _ in _ENDS), *_OPTIONS, _HEADER, _ADDRESS))
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_IN_ADDRESS = re.compile(r"://[^\s/:@\"'<>]{0,100}:(?P<password>[^\s/@\"'<>]{3,200})@[\w\[]")
# What stands after such a name and is none: code, a reference, a word of documentation.
_NO_VALUE = re.compile(
    r"(?:[$%{<\[(*#/~.]|x{3,}|•|your|my[-_]|example|change[-_]?me|placeholder|redacted|hidden|none\b|null\b|true\b|false\b"
    r"|undefined|required|optional|env[.:]|process\.|os\.|self\.|this\.|secretstr|await\b|new\b|https?://|file:|arn:|vault:|secret:"
    r"|op://|[\w.]+\()",
    re.IGNORECASE,
)
_CONSTANT = re.compile(r"[A-Z]+(?:_[A-Z0-9]+)+$|[\d.,:/-]+$|[a-z]+(?:\.[a-z_]+)+$")
_PLAIN_WORD = re.compile(r"[A-Za-z]+(?:[ _.-][A-Za-z]+)*[.,:;!?]?$")
_DUMMY = re.compile(r"(?:.*?[-_])?(?:x{6,}|X{6,}|0{8,}|\*{3,}|your[-_].*)$")


class SecretScanner:
    def find(self, text: str) -> Sequence[Found]:
        return apart(_candidates(text))

    def is_telling(self, key: str, value: str) -> str | None:
        is_telling = len(value) >= 6 and _is_telling_name(key[-_LONGEST_NAME:])
        return "secret" if is_telling and _is_value(value, is_quoted=True) else None


@lru_cache(4096)
def _is_telling_name(key: str) -> bool:
    name = _SUFFIX.sub("", _CAMEL.sub("_", key).lower())
    return any(name.endswith(end) and _may_follow(name, end, len(name) - len(end)) for end, _ in _ENDS)


def _candidates(text: str) -> Iterator[Found]:
    for match, name in shapes_in(text):
        if not _DUMMY.match(match[0]) and "XXXXXXXX" not in match[0]:
            yield Found(*match.span(), name)
    lower = text.lower()
    lower = lower if len(lower) == len(text) else text
    for number, place in _FINDER.find(lower):
        word = _FINDER.words[number]
        after = place + len(word)
        if word == _ADDRESS:
            match = _IN_ADDRESS.match(text, place)
            if match is not None and _is_value(match["password"], is_quoted=True):
                yield Found(*match.span("password"), "password")
        elif word in _OPTIONS:
            yield from _given(_OPTION.match(text, place), "password", is_quoted=True)
        elif word == _HEADER:
            end_of_word = next((i for i in range(after, len(text)) if text[i] in " \"'\n"), len(text))
            if end_of_word - after >= 12:
                yield Found(after, end_of_word, "token")
        elif _may_follow(lower, word, place):
            yield from _given(_REST.match(text, after), "secret")


def _may_follow(text: str, end: str, place: int) -> bool:
    """Whether what stands before the end of a name makes it one that secrets stand under."""
    before = _PRECEDED.get(end)
    return before is None or before.search(text, max(0, place - 20), place) is not None


def _given(match: re.Match[str] | None, what: str, *, is_quoted: bool = False) -> Iterator[Found]:
    if match is None:
        return
    group = match.lastgroup or "bare"
    if _is_value(match[group], is_quoted=is_quoted or group != "bare"):
        yield Found(*match.span(group), what)


def _is_value(value: str, *, is_quoted: bool) -> bool:
    """Whether somebody wrote a secret there, and not code, a variable or a word about one."""
    if _NO_VALUE.match(value) or _CONSTANT.match(value) or _PLAIN_WORD.match(value):
        return False
    return is_quoted or any(letter.isdigit() for letter in value)
