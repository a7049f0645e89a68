"""Looking for something in all texts of arguments and results, and what is done about it."""

import asyncio
from base64 import b64decode
from binascii import Error as NotBase64
from collections import Counter
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from dragoman.hook_rule import Action, HookRule
from dragoman.hooks.protocol import Hook, HookedCall, Json, Verdict

_PIECE = 64 * 1024  # characters that are looked through before others get their turn
_LONGEST = 8 * 1024  # of what is found: it may begin at the end of a piece
_BINARY = frozenset({"data", "blob"})  # of pictures, sounds and files, as MCP has them
_SHORTEST = 6  # characters of anything that is looked for
_OURS = frozenset({"content", "structuredContent", "isError", "_meta", "result", "resource", "mimeType"})


@dataclass(frozen=True, slots=True)
class Found:
    """`what` it is, for people; never what stands there."""

    start: int
    end: int
    what: str


class Scanner(Protocol):
    def find(self, text: str) -> Sequence[Found]:
        """In the order of their places; no two share a character."""
        ...

    def is_telling(self, key: str, value: str) -> str | None:
        """What the whole of a value is because of the name that it stands under; None: it says nothing."""
        ...


class PatternHook(Hook):
    """Masks, refuses, asks or notes what its scanner finds: `sent` for arguments, `given` for results."""

    def __init__(self, scanner: Scanner, rule: HookRule, *, sent: Action, given: Action) -> None:
        self._scanner = scanner
        self._name = rule.kind
        self._sent = rule.action or sent
        self._given = rule.action or given

    async def before(self, call: HookedCall) -> Verdict | None:
        search = await self._searched(call.arguments)
        if search is None:
            return None
        told = search.told()
        match self._sent:
            case "refuse":
                return Verdict(refuse=f"the arguments hold {told}", found=f"{told} in the arguments")
            case "ask":
                return Verdict(ask=f"the arguments hold {told}", found=f"{told} in the arguments")
            case "note":
                return Verdict(notes=(f"the arguments hold {told}",), found=f"{told} in the arguments")
            case _:
                found = f"masked {told} in the arguments"
                return Verdict(arguments=cast("Json", search.masked), notes=(found,), found=found)

    async def after(self, call: HookedCall, output: Json) -> Verdict | None:
        search = await self._searched(output)
        if search is None:
            return None
        told = search.told()
        match self._given:
            case "refuse" | "ask":  # it has happened: nobody can be asked whether it may
                return Verdict(refuse=f"the result holds {told}", found=f"{told} in the result")
            case "note":
                return Verdict(notes=(f"the result holds {told}",), found=f"{told} in the result")
            case _:
                found = f"masked {told} in the result"
                return Verdict(output=cast("Json", search.masked), notes=(found,), found=found)

    async def _searched(self, value: Json) -> "_Search | None":
        search = _Search(self._scanner)
        search.masked = search.walked(value)
        if search.long:
            for text in search.long:
                await search.look_through(text)
            search.found.clear()
            search.masked = search.walked(value)
        return search if search.found else None


@dataclass(slots=True)
class _Search:
    """`known` has what became of texts that were looked at: many tools give the same as content and as
    structure. `long` has those that `walked` passed over, for they take long: they are looked through apart.
    """

    scanner: Scanner
    found: Counter[str] = field(default_factory=Counter[str])
    masked: Any = None
    known: dict[str, tuple[str, list[str]]] = field(default_factory=dict[str, tuple[str, list[str]]])
    long: dict[str, None] = field(default_factory=dict[str, None])

    def told(self) -> str:
        return ", ".join(f"{count} × {what}" if count > 1 else what for what, count in self.found.items())

    async def look_through(self, text: str) -> None:
        """A long text, while others have their turn."""
        self._note(text, [found async for found in self._pieces(text)])

    def walked(self, value: Any) -> Any:
        """The same with everything that was found hidden."""
        match value:
            case str():
                return self._text(value)
            case Mapping():
                facts = cast("Mapping[str, Any]", value)
                return {
                    self._text(key): one if key in _BINARY and _is_binary(one) else self._value(key, one)
                    for key, one in facts.items()
                }
            case list() | tuple():
                return [self.walked(one) for one in cast("Sequence[Any]", value)]
            case _:
                return value

    def _value(self, key: str, value: Any) -> Any:
        if isinstance(value, str) and (what := self.scanner.is_telling(key, value)) is not None:
            self.found[what] += 1
            return hidden(what)
        return self.walked(value)

    def _text(self, text: str) -> str:
        if len(text) < _SHORTEST or text in _OURS:
            return text
        if text not in self.known:
            if len(text) > _PIECE:
                self.long[text] = None
                return text
            self._note(text, self.scanner.find(text))
        masked, found = self.known[text]
        if found:
            self.found.update(found)
        return masked

    def _note(self, text: str, found: Sequence[Found]) -> None:
        self.known[text] = (_masked(text, found), [one.what for one in found])

    async def _pieces(self, text: str) -> AsyncGenerator[Found]:
        """A long text, in pieces that overlap."""
        start = 0
        while True:
            is_last = start + _PIECE >= len(text)
            piece = text[start : start + _PIECE + _LONGEST]
            after = start
            for one in self.scanner.find(piece):
                if not is_last and one.start >= _PIECE:
                    break
                after = start + one.end
                yield Found(start + one.start, start + one.end, one.what)
            if is_last:
                return
            start = max(start + _PIECE, after)
            await asyncio.sleep(0)


def _masked(text: str, found: Sequence[Found]) -> str:
    parts: list[str] = []
    end = 0
    for one in found:
        parts += [text[end : one.start], hidden(one.what)]
        end = one.end
    return "".join([*parts, text[end:]]) if parts else text


def hidden(what: str) -> str:
    return f"[hidden: {what}]"


def apart(found: Iterator[Found]) -> list[Found]:
    """In the order of their places; of two that overlap the one that begins first, of these the longer."""
    kept: list[Found] = []
    for one in sorted(found, key=lambda one: (one.start, -one.end)):
        if not kept or kept[-1].end <= one.start:
            kept.append(one)
    return kept


def _is_binary(data: Any) -> bool:
    """Whether it is the base64 of something that is no text: there is nothing to read in it."""
    try:
        b64decode(data, validate=True).decode("utf-8")
    except UnicodeDecodeError:
        return True
    except (NotBase64, TypeError, ValueError):
        return False
    return False
