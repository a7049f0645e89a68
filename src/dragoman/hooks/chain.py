"""The hooks that hold for a call, one after another, each within its time.

What fails refuses, unless its rule says otherwise: no fault of a hook opens a way around it.
"""

import asyncio
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from inspect import isawaitable, iscoroutinefunction
from typing import Any, cast

from dragoman.errors import HookFailed, HookRefused
from dragoman.hook_rule import HookRule, Moment
from dragoman.hooks.protocol import Hook, HookedCall, Json, Verdict
from dragoman.telemetry.logs import get_logger
from dragoman.tool import ToolDefinition

_LONGEST_REASON = 300
_MADE = "the call was made; do not make it again for its result"


@dataclass(slots=True)
class HookReport:
    """What hooks decided about one call: `told` for who called, `trail` for the audit, `ask` for a person."""

    told: list[str] = field(default_factory=list[str])
    trail: list[str] = field(default_factory=list[str])
    ask: list[str] = field(default_factory=list[str])

    def note(self, name: str, verdict: Verdict) -> None:
        self.told += [f"{name}: {_brief(note)}" for note in verdict.notes]
        if verdict.found:
            self.trail.append(f"{name}: {_brief(verdict.found)}")
        elif verdict.refuse is not None or verdict.ask is not None:
            self.trail.append(f"{name}: {'refused' if verdict.refuse is not None else 'asked'}")
        elif verdict.arguments is not None or verdict.output is not None:
            changed = f"{name}: changed the {'arguments' if verdict.output is None else 'result'}"
            self.trail.append(changed)
            self.told += [] if verdict.notes else [changed]


class _Fault(Exception):
    """A hook did not decide; says why, without a word of what it was shown."""


@dataclass(frozen=True, slots=True)
class _Step:
    rule: HookRule
    hook: Hook

    async def decided(self, method: Callable[..., Any], *shown: Any) -> Any:
        """What the hook answers within its time. `_Fault` where it does not."""
        try:
            begun = _Begun(method, shown)
            if begun.is_done:
                return begun.answer
            async with asyncio.timeout(self.rule.timeout):
                answer: Any = await begun
                return await answer if isawaitable(answer) else answer
        except TimeoutError:
            raise _Fault(f"it took longer than {self.rule.timeout:g} seconds") from None
        except Exception as error:  # noqa: BLE001
            # boundary: whatever a hook does wrong is a fault of that hook, and its rule says what follows
            get_logger().warning("hook.failed", hook=self.rule.kind, exc_info=error)
            raise _Fault(f"it failed ({type(error).__name__})") from None

    def answered(self, method: Callable[..., Any], *shown: Any) -> Any:
        """What the hook answers without waiting for anything. `_Fault` where it does not."""
        try:
            answer: Any = method(*shown)
            if not isawaitable(answer):
                return answer
            steps: Any = answer.__await__()
            next(steps)
            steps.close()
        except StopIteration as ended:
            return ended.value
        except Exception as error:  # noqa: BLE001
            # boundary: as in `decided`
            get_logger().warning("hook.failed", hook=self.rule.kind, exc_info=error)
            raise _Fault(f"it failed ({type(error).__name__})") from None
        raise _Fault("it waits for something, which it cannot where a bundle is shown")

    def at(self, moment: Moment) -> Callable[..., Any] | None:
        """What it does then; None: nothing."""
        method: Any = getattr(self.hook, moment, None)
        is_own = method is not None and getattr(method, "__func__", None) is not getattr(Hook, moment)
        return method if is_own and self.rule.is_at(moment) else None

    def awaited(self, moment: Moment) -> Callable[..., Any] | None:
        """The same as a coroutine function: what is none runs in a thread of its own."""
        method = self.at(moment)
        return method if method is None or iscoroutinefunction(method) else partial(asyncio.to_thread, method)


class _Begun:
    """A hook that has begun to answer. Most need not wait for anything and are done: a clock would cost more
    than they do. Of the others this is what is waited for.
    """

    __slots__ = ("_steps", "_waited", "answer", "is_done")

    def __init__(self, method: Callable[..., Any], shown: tuple[Any, ...]) -> None:
        self.answer: Any = None
        self.is_done = False
        self._steps: Any = method(*shown).__await__()
        try:
            self._waited: Any = next(self._steps)
        except StopIteration as ended:
            self.answer, self.is_done = ended.value, True

    def __await__(self) -> Generator[Any, Any, Any]:
        while True:
            try:
                sent = yield self._waited
            except BaseException as error:  # noqa: BLE001
                # boundary: what is thrown here, a cancellation above all, is the hook's
                step = partial(self._steps.throw, error)
            else:
                step = partial(self._steps.send, sent)
            try:
                self._waited = step()
            except StopIteration as ended:
                return ended.value


class HookChain:
    def __init__(self, hooks: Sequence[tuple[HookRule, Hook]]) -> None:
        steps = [_Step(rule, hook) for rule, hook in hooks]
        self._before = [(step, method) for step in steps if (method := step.awaited("before")) is not None]
        self._after = [(step, method) for step in steps if (method := step.awaited("after")) is not None]
        self._listed = [(step, method) for step in steps if (method := step.at("listed")) is not None]

    @property
    def looks_at_results(self) -> bool:
        return bool(self._after)

    async def before(self, call: HookedCall, report: HookReport) -> Json:
        """The arguments as they may be sent. `HookRefused`, or `HookFailed` where one could not decide."""
        for step, method in self._before:
            name = step.rule.kind
            try:
                verdict = _checked(await step.decided(method, call), "arguments")
            except _Fault as fault:
                report.trail.append(f"{name}: {fault}")
                if step.rule.fails_open:
                    report.told.append(f"{name} did not look at this call: {fault}")
                    continue
                raise HookFailed(
                    f"the hook {name} could not decide about this call: {fault}", hint="try again later"
                ) from None
            if verdict is None:
                continue
            report.note(name, verdict)
            if verdict.refuse is not None:
                raise HookRefused(
                    f"the hook {name} refuses this call: {_brief(verdict.refuse)}",
                    hint="change the arguments; dragoman hooks list shows which hold",
                )
            if verdict.ask is not None:
                report.ask.append(f"{name}: {_brief(verdict.ask)}")
            if verdict.arguments is not None:
                call = replace(call, arguments=verdict.arguments)
        return call.arguments

    async def after(self, call: HookedCall, output: Json, report: HookReport) -> Json:
        """What came of the call as it may be given. `HookRefused` where it may not, or nobody could tell."""
        for step, method in self._after:
            name = step.rule.kind
            try:
                verdict = _checked(await step.decided(method, call, output), "output")
            except _Fault as fault:
                report.trail.append(f"{name}: {fault}")
                if step.rule.fails_open:
                    report.told.append(f"{name} did not look at this result: {fault}")
                    continue
                raise HookRefused(
                    f"the result is held back: the hook {name} could not decide about it: {fault}", hint=_MADE
                ) from None
            if verdict is None:
                continue
            report.note(name, verdict)
            if verdict.refuse is not None or verdict.ask is not None:
                why = verdict.refuse if verdict.refuse is not None else verdict.ask
                raise HookRefused(f"the hook {name} holds the result back: {_brief(why or '')}", hint=_MADE)
            if verdict.output is not None:
                output = verdict.output
        return output

    async def listed(self, connector: str, tools: Sequence[ToolDefinition]) -> Mapping[str, str]:
        """Why tools are held back until a person accepts them. One that cannot decide holds back all."""
        held: dict[str, str] = {}
        for step, method in self._listed:
            try:
                found = await step.decided(step.awaited("listed") or method, connector, tools)
            except _Fault as fault:
                found = fault
            _hold(held, step, found, connector, tools)
        return held

    def listed_at_once(self, bundle: str, tools: Sequence[ToolDefinition]) -> Mapping[str, str]:
        """The same for the list of a bundle, which is made while nobody can wait: nor can a hook."""
        held: dict[str, str] = {}
        for step, method in self._listed:
            try:
                found = step.answered(method, bundle, tools)
            except _Fault as fault:
                found = fault
            _hold(held, step, found, bundle, tools)
        return held


def _hold(held: dict[str, str], step: _Step, found: Any, where: str, tools: Sequence[ToolDefinition]) -> None:
    """Adds what a hook found, or what follows where it did not decide."""
    name = step.rule.kind
    if not isinstance(found, Mapping):
        cause = str(found) if isinstance(found, _Fault) else "it answered something that means nothing"
        get_logger().warning("hook.failed", hook=name, connector=where, cause=cause)
        found = {} if step.rule.fails_open else {one.original_name: cause for one in tools}
    for tool, why in cast("Mapping[Any, Any]", found).items():
        held.setdefault(str(tool), f"{name}: {_brief(str(why))}")


def _checked(verdict: Any, changes: str) -> Verdict | None:
    if verdict is None:
        return None
    if not isinstance(verdict, Verdict):
        raise _Fault("it answered something that means nothing")
    others = {"arguments": "output", "output": "arguments"}[changes]
    texts: tuple[Any, ...] = (verdict.refuse, verdict.ask, verdict.found, *verdict.notes)
    is_readable = all(text is None or isinstance(text, str) for text in texts)
    new: Any = getattr(verdict, changes)
    if not is_readable or getattr(verdict, others) is not None or not isinstance(new, Mapping | None):
        raise _Fault("it answered something that means nothing")
    return verdict


def _brief(text: str) -> str:
    return " ".join(text.split())[:_LONGEST_REASON]
