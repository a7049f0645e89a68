"""One trial of one case: the message goes to a thread of its own, a person is played, and the end is judged.

Uses the hub as any program does: threads, messages, runs, approvals, calls.
"""

import ast
import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from dragoman.errors import Conflict, DragomanError
from dragoman.evaluation.cases import Case, CaseVariant, Expectations
from dragoman.hub.hub import BoundHub
from dragoman.run import RunEvent, RunUsage

_MOST_CALLS = 500


@dataclass(frozen=True, slots=True)
class MadeCall:
    """`arguments` is None where code computed them. A function is what agents have beside tools."""

    tool: str
    arguments: Mapping[str, Any] | None
    is_function: bool = False


@dataclass(slots=True)
class Observed:
    """What happened in a trial, as far as something can be expected of it."""

    status: str = ""
    answer: str = ""
    error: str = ""
    exposure: str = ""
    model: str = ""
    runs: list[str] = field(default_factory=list[str])
    calls: list[MadeCall] = field(default_factory=list[MadeCall])
    approvals: list[str] = field(default_factory=list[str])
    questions: list[str] = field(default_factory=list[str])
    usage: RunUsage = field(default_factory=RunUsage)
    seconds: float = 0.0

    @property
    def tokens(self) -> int:
        return self.usage.input_tokens + self.usage.output_tokens

    @property
    def tool_calls(self) -> int:
        return sum(not call.is_function for call in self.calls)


@dataclass(frozen=True, slots=True)
class Trial:
    """`failures` say which expectations did not hold, and how it was instead."""

    case: str
    variant: str
    observed: Observed
    failures: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        return not self.failures


class Trials:
    """Makes trials through one hub. `names` leads from each spelling of a tool to its name."""

    def __init__(self, hub: BoundHub, names: Mapping[str, str]) -> None:
        self._hub = hub
        self._names = names

    async def make(self, case: Case, variant_name: str, variant: CaseVariant) -> Trial:
        observed = Observed()
        began = monotonic()
        failures: list[str] = []
        try:
            async with asyncio.timeout(case.timeout):
                await self._converse(case, variant, observed)
        except TimeoutError:
            failures.append(f"it had no end within {case.timeout:g} s")
            await self._cancel(observed)
        except DragomanError as error:
            failures.append(f"it could not go on: {error.message}")
        observed.seconds = monotonic() - began
        failures += judged(case.expect, observed, self._names) if not failures else ()
        return Trial(case.name, variant_name, observed, tuple(failures))

    async def _converse(self, case: Case, variant: CaseVariant, observed: Observed) -> None:
        hub = self._hub
        thread = (await hub.threads.create(title=f"eval: {case.name}", connectors=case.connectors)).thread.id
        answers = iter(case.answers)
        for text in case.message:
            accepted = await hub.messages.post(text, thread=thread, agent=case.agent, options=variant.options)
            observed.runs.append(accepted.run.id)
            async for event in hub.runs.follow(accepted.run.id):
                await self._meet(event, case, answers, observed)
            run = await hub.runs.get(accepted.run.id)
            observed.status, observed.answer = run.status, run.answer or ""
            observed.error = run.error.message if run.error else ""
            observed.exposure, observed.model = run.exposure or "", run.model or ""
            observed.usage = observed.usage.plus(run.usage)
        records = [one for one in await hub.calls(_MOST_CALLS) if one.thread == thread and one.way == "code"]
        written = [*_calls_in_code(observed.calls)]
        observed.calls += [MadeCall(one.tool, _arguments(one.tool, written)) for one in reversed(records)]

    async def _meet(
        self, event: RunEvent, case: Case, answers: Iterator[str | Mapping[str, Any]], observed: Observed
    ) -> None:
        """Plays the person, and notes what happens."""
        data, hub = event.data, self._hub
        if event.kind == "call.started":
            made = MadeCall(data["tool"], data["arguments"], is_function=data["kind"] != "tool")
            observed.calls.append(made)
        elif event.kind == "approval.requested":
            tool = (await hub.approvals.get(data["approval"])).approval.binding.tool
            observed.approvals.append(tool)
            is_approved = any(case.approves(name) for name in (tool, *self._spellings(tool)))
            with suppress(Conflict):  # calls that are the same wait for one yes, and each tells of it
                await hub.approvals.answer(data["approval"], "once" if is_approved else "no")
        elif event.kind == "question.asked":
            observed.questions.append(str(data["text"]))
            given = next(answers, None)
            form: Mapping[str, Any] = data.get("fields") or {}
            fields: list[str] = [*(form.get("properties") or ())]
            if given is None:
                await hub.runs.decline(data["question"])
            elif fields and isinstance(given, str):
                await hub.runs.answer(data["question"], {fields[0]: given})
            else:
                await hub.runs.answer(data["question"], given)

    def _spellings(self, tool: str) -> list[str]:
        return [spelling for spelling, name in self._names.items() if name == tool]

    async def _cancel(self, observed: Observed) -> None:
        for run in observed.runs[-1:]:
            with suppress(Conflict):  # it has just ended
                await self._hub.runs.cancel(run)


def judged(expect: Expectations, observed: Observed, names: Mapping[str, str]) -> list[str]:
    """Why the trial failed; nothing where all that is expected holds."""
    return [*_of_calls(expect, observed, names), *_of_words(expect, observed), *_of_size(expect, observed)]


def _of_calls(expect: Expectations, observed: Observed, names: Mapping[str, str]) -> Iterator[str]:
    made: dict[str, list[MadeCall]] = {}
    for call in observed.calls:
        made.setdefault(call.tool, []).append(call)
    called = ", ".join(made) or "nothing"
    for name in expect.tools:
        if names.get(name, name) not in made:
            yield f"{name} was not called; called was {called}"
    for name in expect.no_tools:
        if names.get(name, name) in made:
            yield f"{name} was called"
    for name, wanted in expect.arguments.items():
        calls = made.get(names.get(name, name), [])
        if not calls:
            yield f"{name} was not called; called was {called}"
        elif not any(_holds(wanted, call.arguments) for call in calls):
            yield f"{name} was called with {dict(calls[-1].arguments or {})}, not with {dict(wanted)}"
    for name, count in expect.times.items():
        if len(made.get(names.get(name, name), ())) != count:
            yield f"{name} was called {len(made.get(names.get(name, name), ()))} times, not {count}"
    for name in expect.approvals:
        if names.get(name, name) not in observed.approvals:
            yield f"nobody was asked to approve {name}"
    if expect.questions is not None and len(observed.questions) != expect.questions:
        yield f"{len(observed.questions)} questions were asked, not {expect.questions}"


def _of_words(expect: Expectations, observed: Observed) -> Iterator[str]:
    if observed.status != expect.status:
        because = f": {observed.error}" if observed.error else ""
        yield f"the run is {observed.status}, not {expect.status}{because}"
    answer = observed.answer.casefold()
    for text in expect.answer:
        if text.casefold() not in answer:
            yield f"the answer does not say {text!r}"
    for text in expect.no_answer:
        if text.casefold() in answer:
            yield f"the answer says {text!r}"
    if expect.answer_matches is not None and not re.search(expect.answer_matches, observed.answer):
        yield f"the answer does not match {expect.answer_matches!r}"


def _of_size(expect: Expectations, observed: Observed) -> Iterator[str]:
    measured: Sequence[tuple[str, float, float | None]] = (
        ("tool calls", observed.tool_calls, expect.max_calls),
        ("requests", observed.usage.requests, expect.max_requests),
        ("tokens", observed.tokens, expect.max_tokens),
        ("dollars", observed.usage.cost, expect.max_cost),
        ("seconds", observed.seconds, expect.max_seconds),
    )
    for what, used, most in measured:
        if most is not None and used > most:
            yield f"it took {used:,.6g} {what}, more than {most:,.6g}"


def _holds(wanted: Mapping[str, Any], given: Mapping[str, Any] | None) -> bool:
    """Whether all that is wanted was given; other arguments may be anything."""
    if given is None:
        return True  # code computed them: nobody can say
    return all(name in given and _is_same(value, given[name]) for name, value in wanted.items())


def _is_same(wanted: Any, given: Any) -> bool:
    """One value and a list of that one are the same: many tools take either."""
    return wanted == given or [wanted] == given or wanted == [given]


def _calls_in_code(calls: Sequence[MadeCall]) -> Iterator[tuple[str, Mapping[str, Any] | None]]:
    """What code calls, with arguments where they stand in it as plain values."""
    for call in calls:
        code = (call.arguments or {}).get("code")
        if call.tool != "run_code" or not isinstance(code, str):
            continue
        try:
            tree = ast.parse(code)
        except (SyntaxError, ValueError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                name = (
                    node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                )
                yield name, _plain(node)


def _plain(node: ast.Call) -> Mapping[str, Any] | None:
    try:
        return {str(one.arg): ast.literal_eval(one.value) for one in node.keywords} if not node.args else None
    except ValueError:
        return None


def _arguments(tool: str, written: list[tuple[str, Mapping[str, Any] | None]]) -> Mapping[str, Any] | None:
    """Of a call that code made: a function is named like its tool, a hyphen is an underscore there."""
    for place, (name, arguments) in enumerate(written):
        if name and tool.replace("-", "_").endswith(name):
            del written[place]
            return arguments
    return None
