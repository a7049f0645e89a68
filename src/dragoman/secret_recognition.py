"""Secrets that people write where everybody reads: in arguments and addresses. Pure words; knows no vault.

What is found gives way to `${secret:NAME}`; the value is kept under `secret:NAME` and put back only where
the process or the request is made.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote

from pydantic import SecretStr

from dragoman.errors import InvalidConfig
from dragoman.secret_shapes import ANY_SHAPE

PREFIX = "secret:"
_PLACEHOLDER = re.compile(r"\$\{secret:([A-Za-z0-9_-]+)\}")
_MASKED, _REFERRED = "\0", "\1"
_REFERENCE = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*(:-[^}]*)?\}")

# Names of variables, headers and fields whose values are secret, wherever the word stands in them.
SECRET_NAME = re.compile(
    r"token|secret|passw|api[-_]?key|private|credential|authorization|cookie", re.IGNORECASE
)
# Names of options and parameters: the word is the last one, so that `--token-url` is none.
_TELLING = re.compile(
    r"(?:tokens?|secrets?|passw(?:or)?ds?|passphrase|mnemonic|seed_phrase"
    r"|(?:^|_)(?:key|pwd|pw|pass|pat|jwt|sig|signature|credentials?|authorization|cookie|bearer)"
    r"|(?:api|access|auth|secret|private|service|account|subscription|license)_?keys?)$"
)
# Names that tell nothing by themselves: what follows must look like nothing that a person would choose.
_VAGUE = re.compile(r"(?:^|_)(?:p|pin|auth|otp|sas|hmac|session|sid|code)$")
_CHOSEN_BY_NONE = re.compile(
    r"(?=\S*[a-z])(?=\S*[A-Z])(?=\S*\d)[A-Za-z0-9_+=-]{20,}$|(?=\w*\d)[0-9a-f]{32,}$|(?=\w*\d)[0-9A-F]{32,}$"
)
_RANDOM = re.compile(r"(?=\S*[a-z])(?=\S*[A-Z])(?=\S*\d)[\w.~+/=-]{10,}$|(?=\w*\d)(?=\w*[a-z])\w{20,}$")
_NAMELESS_KEY = re.compile(r"(?:^|_)key$")
_OF_A_KEY = re.compile(r"(?:api|access|auth|secret|private|service|account|subscription|license)_?key$")
# What follows such a name and is none: a switch, a column, a file.
_NO_SECRET = re.compile(r"(?:true|false|yes|no|none|null|auto|env|stdin|on|off|\d{1,6}|-)$", re.IGNORECASE)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_WORD = re.compile(r"[A-Za-z]+(?:[_.-][A-Za-z]+)*$")
_FILE = re.compile(r"[^\s=&]*\.(?:pem|key|crt|cer|json|p12|pfx|txt|env|ya?ml|toml|pub)$")

_SCHEME = re.compile(r"(?:Bearer|Basic|Token|ApiKey)\s+", re.IGNORECASE)
_ASSIGNMENT = re.compile(r"(?:-{0,2}|/)([A-Za-z0-9_.-]+?)(?:=|:\s*(?!//))")
_PAIR = re.compile(
    r"""(?:^|(?<=[\s;?&#,{"'(]))-{0,2}([A-Za-z0-9_.%\[\]-]+)\\?["']?\s*[=:]\s*"""
    r"""(?:\\?"([^"\\]+)\\?"|'([^']+)'|(?!//)((?:\$\{[^}]*\}|[^\s;&#"',})])+))"""
)
_OPTION = re.compile(r"""(?:^|(?<=\s))--?([A-Za-z0-9_-]+)\s+(?:"([^"]+)"|'([^']+)'|([^\s'"-][^\s'"]*))""")
# The legal form first; a password with a slash, a question mark or a hash inside is found by the second.
_PASSWORD = re.compile(r"://[^/?#\s:@]*:(?!\d+(?:[/?#]|$))([^/?#\s]+|\S+)@")
_USER = re.compile(r"://(?=[^/?#\s:@]*\d)([^/?#\s:@]{16,})(?::[^/?#\s@]*)?@")
_BARE_PASSWORD = re.compile(
    r"(?:^|(?<=\s))(?:[a-z]+:)?(?://)?[\w.-]+:([^\s:/@]{6,})@(?!sha\d)[\w.-]+(?:[:/]|$)"
)
_ORACLE_PASSWORD = re.compile(r"jdbc:oracle:[a-z]+:[^/\s@]+/([^\s@]+)@")
_USER_OPTION = r"-{1,2}(?:u|user|auth|basic|basic-auth|proxy-user)"
_TAKES_USER = re.compile(_USER_OPTION + "$")
_USER_AND_PASSWORD = re.compile(
    r"""(?:^|(?<=\s))(?:-u|"""
    + _USER_OPTION
    + r"""[=\s])\s*["']?(?!\S*://)[^\s:="']+:(?!\d+(?:\s|$))([^\s"']+)"""
)
_SHORT_OPTION = re.compile(r"(?:^|(?<=\s))-[pP](?=\S{10})(\S+)")


@dataclass(frozen=True, slots=True)
class _Found:
    start: int
    end: int
    name: str


def is_secret_name(name: str) -> bool:
    """Whether a variable, header or field of this name holds a secret."""
    return SECRET_NAME.search(name) is not None or _tells(name)


def holds_secret(text: str, name: str = "") -> bool:
    """Whether a text holds a password in an address, a telling parameter, or a token of a known shape.

    With the name of a variable or header: also where nobody would choose such a value.
    """
    if _found_in(text):
        return True
    return bool(name) and (_is_secret(name, text) or _CHOSEN_BY_NONE.match(text) is not None)


def is_reference(text: str) -> bool:
    """Whether it only refers to a variable of the environment: `${TOKEN}`, `Bearer ${TOKEN}`."""
    return bool(_REFERENCE.search(text)) and not _SCHEME.sub("", _REFERENCE.sub("", text), count=1).strip()


def masked(text: str) -> str:
    """The text as it may be shown, before anybody keeps what is secret in it."""
    return Masking().text(text)


@dataclass(slots=True)
class Masking:
    """Takes secrets out of the texts of one configuration, under names of their own.

    `taken` are names that stand already for something; what is found is in `secrets`, and a sentence about
    each in `told`.
    """

    taken: Collection[str] = ()
    secrets: dict[str, SecretStr] = field(default_factory=dict[str, SecretStr])
    told: list[str] = field(default_factory=list[str])

    def text(self, text: str, where: str = "the text") -> str:
        return self._masked(text, _found_in(text), where)

    def words(self, words: Sequence[str]) -> tuple[str, ...]:
        """The arguments of a command: an option may tell of the word after it."""
        return tuple(
            self._masked(word, _found_in_argument(words, index), f"argument {index + 1}")
            for index, word in enumerate(words)
        )

    def _masked(self, text: str, found: Sequence[_Found], where: str) -> str:
        parts: list[str] = []
        end = 0
        for one in found:
            name = self._named(one.name)
            self.secrets[PREFIX + name] = SecretStr(text[one.start : one.end])
            self.told.append(f"The {one.name} in {where} is kept as a secret")
            parts += [text[end : one.start], f"${{{PREFIX}{name}}}"]
            end = one.end
        return "".join([*parts, text[end:]]) if parts else text

    def _named(self, name: str) -> str:
        slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:60] or "value"
        number, unique = 1, slug
        while PREFIX + unique in self.secrets or PREFIX + unique in self.taken:
            number += 1
            unique = f"{slug}-{number}"
        return unique


def names_in(texts: Iterable[str]) -> frozenset[str]:
    """The names of the secrets that these texts want in their places."""
    return frozenset(PREFIX + match[1] for text in texts for match in _PLACEHOLDER.finditer(text))


def unmasked(text: str, secrets: Mapping[str, SecretStr]) -> str:
    """The text as it is sent. `InvalidConfig` where a secret was never brought."""

    def value(match: re.Match[str]) -> str:
        name = PREFIX + match[1]
        if name not in secrets:
            raise InvalidConfig(
                f"the secret {name} is missing", hint=f"bring it: dragoman credentials set NAME {name}"
            )
        return secrets[name].get_secret_value()

    return _PLACEHOLDER.sub(value, text)


def with_placeholders(text: str, words: Mapping[str, str]) -> str:
    """The text with other words where secrets stand, by the names of the secrets."""
    return _PLACEHOLDER.sub(lambda match: words.get(PREFIX + match[1], match[0]), text)


def _found_in_argument(words: Sequence[str], index: int) -> Sequence[_Found]:
    word, option = _blanked(words[index]), words[index - 1] if index else ""
    if option.startswith("-") and "=" not in option and not word.startswith("-"):
        if _is_secret(option, word):
            return [_without_scheme(word, 0, option.lstrip("-"))]
        if _TAKES_USER.match(option) and (match := _USER_AND_PASSWORD.match(f"-u {word}")):
            return _kept(word, [_Found(match.start(1) - 3, len(word), "password")])
    elif _tells(option) and _RANDOM.match(word) and _is_written(word):  # a name and its value, each a word
        return [_Found(0, len(word), option)]
    at = 0
    while match := _ASSIGNMENT.match(word, at):
        if _is_secret(match[1], word[match.end() :]):
            return [_without_scheme(word, match.end(), match[1])]
        at = match.end()
    return _found_in(words[index])


def _found_in(text: str) -> Sequence[_Found]:
    if len(text) < 4:
        return ()
    text = _blanked(text)
    return _kept(text, sorted(_candidates(text), key=lambda one: (one.start, -one.end)))


def _candidates(text: str) -> Iterator[_Found]:
    if "://" in text:
        for match in _PASSWORD.finditer(text):
            yield _Found(*match.span(1), "password")
        for match in _USER.finditer(text):
            yield _Found(*match.span(1), "token")
    if "@" in text:
        for pattern in (_BARE_PASSWORD, _ORACLE_PASSWORD):
            yield from (_Found(*match.span(1), "password") for match in pattern.finditer(text))
    for pattern in (_PAIR, _OPTION):
        for match in pattern.finditer(text):
            group = next(number for number in (2, 3, 4) if match[number] is not None)
            if _is_secret(match[1], match[group]):
                yield _without_scheme(text, match.start(group), match[1], match.end(group))
    if "-" in text:
        yield from (_Found(*match.span(1), "password") for match in _USER_AND_PASSWORD.finditer(text))
        for match in _SHORT_OPTION.finditer(text):
            if _RANDOM.match(match[1]):
                yield _Found(*match.span(1), "password")
    for match in ANY_SHAPE.finditer(text):
        yield _Found(*match.span(), "token")


def _kept(text: str, found: Sequence[_Found]) -> list[_Found]:
    """Without what overlaps, and without what is a placeholder or a variable already."""
    kept: list[_Found] = []
    for one in found:
        is_apart = not kept or kept[-1].end <= one.start
        if is_apart and _is_written(text[one.start : one.end]):
            kept.append(one)
    return kept


def _without_scheme(text: str, start: int, name: str, end: int | None = None) -> _Found:
    scheme = _SCHEME.match(text, start)
    return _Found(scheme.end() if scheme else start, len(text) if end is None else end, name)


def _blanked(text: str) -> str:
    """The same length, with placeholders and variables as letters that no name and no value has."""
    text = _PLACEHOLDER.sub(lambda match: _MASKED * len(match[0]), text)
    return _REFERENCE.sub(lambda match: _REFERRED * len(match[0]), text)


def _is_written(value: str) -> bool:
    """Whether somebody wrote the value itself: it is no placeholder, and more than a variable."""
    return _MASKED not in value and bool(_SCHEME.sub("", value, count=1).strip(f"{_REFERRED} "))


def _tells(name: str) -> bool:
    return _TELLING.search(_plain(name)) is not None


def _plain(name: str) -> str:
    """`apiKey`, `--api-key`, `API_KEY` and `auth[api%5Fkey]` alike."""
    return re.sub(r"[-.:\[\]]+", "_", _CAMEL.sub("_", unquote(name)).lower()).strip("_")


def _is_secret(name: str, value: str) -> bool:
    """Whether what stands after this name is one."""
    if _tells(name):
        return _is_value(name, value)
    return bool(_VAGUE.search(_plain(name)) and _RANDOM.match(value)) and _is_written(value)


def _is_value(name: str, value: str) -> bool:
    """Whether what stands after a telling name is a secret, and not a switch, a variable or a file."""
    if not _is_written(value) or _NO_SECRET.match(value):
        return False
    plain = _plain(name)
    if plain.endswith("key") and _FILE.match(value):
        return False
    is_any_key = _NAMELESS_KEY.search(plain) and not _OF_A_KEY.search(plain)
    return not (is_any_key and _WORD.match(value) and len(value) < 24)
