"""A person at the prompt: says yes or no to a call, and answers what an agent wants to know."""

import json
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, cast

from dragoman.cli.arguments import split_words, typed
from dragoman.cli.door import Door, Refused, path_of
from dragoman.cli.screen import Screen, ago, cleaned, plain
from dragoman.cli.tables import effect_of

Facts = Mapping[str, Any]
_ANSWERS = {
    "once": ("y", "yes", "once"),
    "thread": ("t", "thread"),
    "always": ("a", "always"),
    "no": ("n", "no"),
}
_LABELS = {"once": "y once", "thread": "t this thread", "always": "a always", "no": "n no"}


class Prompt(Protocol):
    """Where a line comes from. `EOFError` when there are no more, `KeyboardInterrupt` on Ctrl-C."""

    def read(self, label: str) -> str: ...


class Prompter:
    """Writes the answers through the door; what comes too late is told and changes nothing."""

    def __init__(self, door: Door, screen: Screen, prompt: Prompt) -> None:
        self._door = door
        self._screen = screen
        self._prompt = prompt

    def approve(self, question: Facts) -> str | None:
        """The answer that counted; None when it came too late."""
        for part in _wish(question):
            self._show(part)
        possible: list[str] = [name for name in _ANSWERS if name in question["answers"]]
        label = " · ".join(_LABELS[name] for name in possible)
        while (given := _answer_of(self._prompt.read(f"{label} › "), possible)) is None:
            self._screen.note("nothing is done before you answer; " + label)
        body = {"answer": given}
        return given if self._write(path_of("approvals", question["id"], "answer"), body) else None

    def answer(self, question: Facts) -> bool:
        self._show(f"[yellow]?[/] {_asker(question)} asks: {plain(question['text'])}")
        path, fields = path_of("questions", question["id"]), cast("Facts", question["fields"] or {})
        if question["url"] is not None:
            self._show(f"  [bold]{plain(question['url'])}[/]")
        if question["connector"] and not self._is_willing(question["url"] is not None):
            return self._write(path, {"decline": True})
        if question["url"] is not None:
            answer: Any = {}
        elif question["connector"]:
            return self._give(path, fields)
        elif "oneOf" in fields:
            answer = self._call([one for one in fields["oneOf"] if "properties" in one])
        else:
            answer = self._fields(fields) if fields else self._line("answer › ")
        return self._write(path, {"answer": answer})

    def _is_willing(self, is_visit: bool) -> bool:
        """A server of somebody else asks: the person may say no."""
        label = "y I have been there · n no › " if is_visit else "y answer · n decline › "
        while (word := self._prompt.read(label).strip().lower()) not in ("y", "yes", "n", "no"):
            pass
        return word[0] == "y"

    def _give(self, path: str, fields: Facts) -> bool:
        """Values that the server described; what does not fit is asked for again."""
        while True:
            try:
                self._door.ask("POST", path, {"answer": self._fields(fields)})
            except (ValueError, Refused) as error:
                if isinstance(error, Refused) and error.problem.get("code") != "invalid_arguments":
                    self._screen.fail(error.problem)
                    return False
                told = error.problem.get("detail") if isinstance(error, Refused) else error
                self._screen.note(str(told))
                continue
            return True

    def _call(self, calls: Sequence[Facts]) -> Any:
        """One of several calls, with its values as they are to be sent; or other words, as typed."""
        for number, one in enumerate(calls, 1):
            given: Facts = one["properties"]["arguments"].get("default") or {}
            values = plain(" ".join(f"{name}={_spelled(value)}" for name, value in given.items()), 300)
            self._show(
                f"  [bold]{number}[/] {plain(one['title'])} {values} [dim]{plain(one['description'])}[/]"
            )
        line = self._line(f"{' · '.join(map(str, range(1, len(calls) + 1)))}, none, or other words › ")
        if not line.isdecimal() or not 1 <= int(line) <= len(calls):
            return line
        chosen = calls[int(line) - 1]["properties"]
        return {"tool": chosen["tool"]["const"], "arguments": self._arguments(chosen["arguments"])}

    def _arguments(self, schema: Facts) -> dict[str, Any]:
        """A prompt for each value that is needed or was filled in, and one line for all others."""
        properties: Facts = schema.get("properties") or {}
        given: Facts = schema.get("default") or {}
        asked = [name for name in properties if name in given or name in (schema.get("required") or ())]
        rules = {
            name: {**properties[name], **({"default": given[name]} if name in given else {})}
            for name in asked
        }
        found = self._fields({**schema, "properties": rules})
        others = [name for name in properties if name not in asked]
        while others:
            line = self._prompt.read(
                f"  others ({', '.join(f'{name}=…' for name in others)}; may be left out) › "
            )
            try:
                return {**found, **typed(split_words(shlex.split(line)), schema)}
            except ValueError as error:
                self._screen.note(str(error))
        return found

    def _line(self, label: str) -> str:
        while not (line := self._prompt.read(label).strip()):
            pass
        return line

    def _fields(self, schema: Facts) -> dict[str, Any]:
        """One prompt for each value; an empty line leaves out what is not required."""
        required: list[str] = schema.get("required") or []
        pairs: list[tuple[str, str]] = []
        for name, rule in cast("Facts", schema.get("properties") or {}).items():
            wanted: Facts = cast("Facts", rule) if isinstance(rule, Mapping) else {}
            label = _label(name, wanted, name in required)
            default = wanted.get("default")
            while not (value := self._prompt.read(label).strip()) and name in required and default is None:
                pass
            if value or default is not None:
                pairs.append((name, value or _spelled(default)))
        return typed(pairs, schema)

    def _write(self, path: str, body: Facts) -> bool:
        try:
            self._door.ask("POST", path, body)
        except Refused as refused:
            self._screen.fail(refused.problem)
            return False
        return True

    def _show(self, part: Any) -> None:
        self._screen.show(part) if self._screen.is_terminal else self._screen.aside(part)


class Stdin:
    """Lines of stdin; the label is shown to people only."""

    def read(self, label: str) -> str:
        if sys.stdin.isatty():
            if sys.stdout.isatty():
                return input(label)
            sys.stderr.write(label)
            sys.stderr.flush()
        line = sys.stdin.readline()
        if not line:
            raise EOFError
        return line.rstrip("\r\n")


def _wish(question: Facts) -> Iterator[Any]:
    """Who wants to call what, and the exact arguments: a person says yes to just this."""
    from rich.padding import Padding
    from rich.text import Text

    name = plain(question["title"] or question["tool"])
    facts = f"[dim]{plain(question['tool'])},[/] {effect_of(question['annotations'])}"
    agent = plain(question["agent"] or "somebody")
    yield f"[yellow]?[/] [bold]{agent}[/] wants to call [bold]{name}[/] {facts}"
    if description := plain(question["description"] or "", 300):
        yield Padding(f"[dim]{description}[/]", (0, 0, 0, 2))
    exact = cleaned(json.dumps(question["arguments"], indent=2, ensure_ascii=False))
    yield Padding(Text(exact), (0, 0, 0, 4))
    until = f"the question ends {ago(question['expires_at'])}"
    yield Padding(f"[dim]{plain(question['reason'])}; {until}[/]", (0, 0, 0, 2))


def _asker(question: Facts) -> str:
    """Who asks: an agent, or in the middle of a call the server of a connector."""
    if question["connector"]:
        return f"the server of [bold]{plain(question['connector'])}[/]"
    return f"[bold]{plain(question['agent'])}[/]"


def _spelled(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _answer_of(line: str, possible: list[str]) -> str | None:
    word = line.strip().lower()
    return next((name for name in possible if word in _ANSWERS[name]), None)


def _label(name: str, wanted: Facts, is_required: bool) -> str:
    facts = [str(wanted.get("description") or wanted.get("title") or "")]
    if isinstance(options := wanted.get("enum"), list):
        facts.append(" | ".join(map(str, cast("list[Any]", options))))
    if wanted.get("default") is not None:
        facts.append(f"default {wanted['default']}")
    elif not is_required:
        facts.append("may be left out")
    told = "; ".join(filter(None, facts))
    return cleaned(f"  {name} ({told}) › " if told else f"  {name} › ").replace("\n", " ")
