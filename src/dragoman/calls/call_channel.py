"""What a source may tell and ask in the middle of one call, whoever made the call. Fills `SourceChannel`.

Stands before the channel that the caller brought, or in its place where there is none: declares only what
Dragoman understands, the connector allows and the caller can answer; lets progress move the deadline on and
people stop it; checks answers. What was declined in the caller's name is said in the call's warnings.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, cast

from dragoman.calls.argument_errors import complaint
from dragoman.calls.call_tasks import CallTask
from dragoman.catalog.schemas import TooMuchWork, compiled
from dragoman.connections.deadline import Deadline
from dragoman.connector import Connector
from dragoman.errors import DragomanError, HookRefused, InputRequired
from dragoman.hooks import CallHooks
from dragoman.tool import AdmittedCall, ClientChannel

Json = Mapping[str, Any]
_ELICIT = "elicitation/create"
# What else a client declares, extensions above all, is between it and Dragoman: a server that took it for
# ours would answer in ways that nobody here can read.
# Apps change nothing in how a server answers: their pages are resources, which pass through as they are.
PASSED_ON = frozenset({"io.modelcontextprotocol/ui"})
_UNDERSTOOD: dict[str, frozenset[str]] = {
    "elicitation": frozenset({"form", "url"}),
    "sampling": frozenset({"context", "tools"}),
    "roots": frozenset({"listChanged"}),
}
_NOTHING: Json = {}
_LONGEST_QUOTE = 200


class CallChannel:
    """Of one call. `warnings` grow while it runs."""

    __slots__ = ("_call_task", "_deadline", "_hooks", "_inner", "_slug", "capabilities", "task", "warnings")

    def __init__(
        self,
        inner: ClientChannel | None,
        connector: Connector,
        deadline: Deadline,
        call_task: CallTask | None = None,
        hooks: CallHooks | None = None,
    ) -> None:
        """`call_task` keeps the server's task of a call that is entered again after a restart.

        `hooks` look at what the server says and asks meanwhile, too.
        """
        self._hooks = hooks if hooks is not None and hooks.looks_at_results else None
        self._call_task = call_task
        self.task: str | None = call_task.found if call_task else None
        self._inner = inner
        self._slug = connector.slug
        self._deadline = deadline
        self.capabilities = _declared(inner, connector) if inner else _NOTHING
        self.warnings: list[str] = []

    @property
    def meta(self) -> Json:
        return self._inner.meta if self._inner else _NOTHING

    @property
    def inputs(self) -> Json:
        return self._inner.inputs if self._inner else _NOTHING

    @property
    def retries(self) -> bool:
        return self._inner is not None and self._inner.retries

    @property
    def is_left(self) -> bool:
        return self._call_task is not None and not self._call_task.is_over

    async def keep_task(self, task: str) -> None:
        self.task = task
        if self._call_task is not None:
            await self._call_task.keep(task)

    def note_pending(self, asked: Json) -> None:
        assert self._inner is not None
        self._inner.pending = asked

    def note_refused(self, code: int, message: str, data: Any) -> None:
        if self._inner is not None:
            self._inner.refused = (code, message, data)

    def note_admitted(self, admitted: AdmittedCall) -> None:
        if self._inner is not None:
            self._inner.admitted = admitted

    async def pass_failure(self, error: DragomanError) -> None:
        """A failure, and what was noted of it for the door, as hooks let it pass: nothing, where one refuses.

        The server's own state of a request that comes again is for the server alone.
        """
        inner, hooks = self._inner, self._hooks
        if hooks is None:
            return
        if inner is None:
            await hooks.after_failure(error)
            return
        pending, refused, inner.pending, inner.refused = inner.pending, inner.refused, None, None
        await hooks.after_failure(error)
        if pending is not None:
            shown = {name: value for name, value in pending.items() if name != "requestState"}
            inner.pending = {**pending, **await hooks.after_request(shown)}
        if refused is not None:
            code, message, data = refused
            passed = await hooks.after_request({"message": message, "data": data})
            inner.refused = (code, str(passed.get("message", "")), passed.get("data"))

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        self._deadline.extend()
        if self._inner is not None and self._inner.wants_progress:
            if message and self._hooks is not None:
                message = await _passed_message(self._hooks, message)
            await self._inner.progress(progress, total, message)

    async def ask(self, method: str, params: Json) -> dict[str, Any]:
        """The answer. Who cannot be asked, or is not there in time, has declined to be elicited."""
        inner = self._inner
        try:
            if self._hooks is not None:
                said, params = params, _NOTHING  # what they do not let pass is not quoted either
                params = await _passed(self._hooks, said)
            if inner is None or not self._may_ask(method, params):
                raise InputRequired("nobody can be asked here")
            with self._deadline.waiting():
                async with asyncio.timeout(inner.patience):
                    answer = dict(await inner.ask(method, params, self._slug))
        except TimeoutError:
            return self._unanswered(method, params, "nobody answered in time")
        except InputRequired as error:
            return self._unanswered(method, params, error.message)
        flaw = _flaw(answer, params) if method == _ELICIT else None
        return answer if flaw is None else self._declined(params, flaw)

    def decline(self, params: Json, reason: str) -> dict[str, Any]:
        """For who asked: no. For who reads the result: that it was asked, and why nobody answered."""
        return self._declined(params if self._hooks is None else _NOTHING, reason)

    def _declined(self, params: Json, reason: str) -> dict[str, Any]:
        asked = str(params.get("message") or "something")[:_LONGEST_QUOTE]
        self.warnings.append(f"{self._slug} asked {asked!r}, which was declined: {reason}")
        return {"action": "decline"}

    def _may_ask(self, method: str, params: Json) -> bool:
        declared = self.capabilities.get(_CAPABILITY.get(method, ""))
        return declared is not None and (params.get("mode") != "url" or "url" in declared)

    def _unanswered(self, method: str, params: Json, reason: str) -> dict[str, Any]:
        if method == _ELICIT:
            return self._declined(params, reason)
        raise InputRequired(f"{self._slug} asks for {method}, which nobody here can answer")


async def _passed(hooks: CallHooks, params: Json) -> Json:
    try:
        return await hooks.after_request(params)
    except HookRefused as error:
        raise InputRequired(error.message) from None


async def _passed_message(hooks: CallHooks, message: str) -> str | None:
    """Progress without a message is still progress."""
    try:
        passed = await hooks.after_request({"message": message})
    except HookRefused:
        return None
    return str(passed.get("message", ""))


_CAPABILITY = {_ELICIT: "elicitation", "sampling/createMessage": "sampling", "roots/list": "roots"}


def extensions_of(connector: Connector) -> Json:
    """Those of MCP that its server declared when it was last connected."""
    capabilities: Any = (connector.server or {}).get("capabilities")
    found: Any = cast("Json", capabilities).get("extensions") if isinstance(capabilities, Mapping) else None
    return cast("Json", found) if isinstance(found, Mapping) else _NOTHING


def _declared(channel: ClientChannel, connector: Connector) -> dict[str, Json]:
    found: dict[str, Json] = {}
    allowed = connector.configuration.client_capabilities
    for name, parts in _UNDERSTOOD.items():
        offered = channel.capabilities.get(name)
        if name in allowed and isinstance(offered, Mapping):
            facts = cast("Json", offered)
            found[name] = {part: facts[part] for part in parts if part in facts}
    extensions: Any = channel.capabilities.get("extensions")
    if isinstance(extensions, Mapping):
        declared, both = cast("Json", extensions), PASSED_ON & extensions_of(connector).keys()
        if passed := {name: declared[name] for name in both if name in declared}:
            found["extensions"] = passed
    return found


def _flaw(answer: Json, params: Json) -> str | None:
    """What was accepted fits what was asked for: a server gets no value that it did not describe."""
    schema = params.get("requestedSchema")
    if answer.get("action") != "accept" or not isinstance(schema, Mapping):
        return None
    validator = compiled(cast("Json", schema)).validator
    content: Any = answer.get("content") or {}
    try:
        if validator is None or validator.is_valid(content):
            return None
    except TooMuchWork as why:
        return f"the answer cannot be checked: {why}"
    return f"the answer does not fit: {complaint(validator, content, 'value')}"
