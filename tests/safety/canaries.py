"""Secret words that nobody else would write, and where one of them is found although it must not be.

What is looked for is the heart of a word: letters and digits, which quoting for JSON and for addresses
leaves alone. Around it are characters that they do not: who hides the plain word only is found out.
"""

import secrets
from base64 import b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Canary:
    name: str
    heart: str = field(default_factory=lambda: secrets.token_hex(12))

    @property
    def word(self) -> str:
        return f'{self.name[:2]}/"{self.heart}"+&%'

    @property
    def token(self) -> str:
        """As a token may be spelled (RFC 6750)."""
        return f"{self.name[:2]}/+{self.heart}~=="

    @property
    def jwt(self) -> str:
        return f"eyJhbGciOiJSUzI1NiJ9.eyJzdWIi{self.heart}.c2lnbmF0dXJl{self.heart}"

    @property
    def traces(self) -> tuple[bytes, ...]:
        return (*_traces(self.heart.encode()), self.heart.encode())


def master_key_traces(key: bytes) -> tuple[bytes, ...]:
    """As bytes, in hex, and in base64 wherever it begins."""
    return (*_traces(key), key, key.hex().encode(), key.hex().upper().encode())


def _traces(heart: bytes) -> Iterable[bytes]:
    yield heart.hex().encode()
    for before in range(3):
        # What precedes the word, and what follows it, changes the letters at the ends.
        encoded = b64encode(bytes(before) + heart)[4 if before else 0 :].rstrip(b"=")[:-2]
        yield encoded
        yield encoded.replace(b"+", b"-").replace(b"/", b"_")


class Flock:
    """All canaries of a journey, by name."""

    def __init__(self, *names: str) -> None:
        self._all = {name: Canary(name) for name in names}
        self._traces: dict[str, tuple[bytes, ...]] = {name: one.traces for name, one in self._all.items()}

    def __getattr__(self, name: str) -> Canary:
        return self._all[name]

    def watch(self, name: str, *traces: bytes) -> None:
        """A secret that was made elsewhere."""
        self._traces[name] = traces

    def found_in(self, text: bytes) -> set[str]:
        lowered = text.lower()  # the hearts are lower case; a header may not be
        return {
            name
            for name, traces in self._traces.items()
            if any(trace in text or trace.lower() in lowered for trace in traces)
        }

    def leaks(self, places: Mapping[str, bytes]) -> list[str]:
        found = [(place, self.found_in(text), text) for place, text in places.items()]
        return [
            f"{place}: {sorted(names)}: {self._around(text, names)}" for place, names, text in found if names
        ]

    def _around(self, text: bytes, names: set[str]) -> str:
        for name in names:
            for trace in self._traces[name]:
                if (at := text.find(trace)) >= 0:
                    return repr(text[max(0, at - 150) : at + 60])
        return "in another case"
