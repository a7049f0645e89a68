"""The hooks of one call on its way: what is sent, what comes back, what is said meanwhile, and failures."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import orjson

from dragoman.connector import Connector
from dragoman.errors import DragomanError, HookRefused
from dragoman.hooks.chain import HookChain, HookReport
from dragoman.hooks.protocol import HookedCall, Json
from dragoman.scope import Caller
from dragoman.tool import RawResult, Tool


class CallHooks:
    """Belongs to one call. `report` is what was decided so far."""

    __slots__ = ("_call", "_chain", "report")

    def __init__(
        self,
        chain: HookChain,
        call_id: str,
        tool: Tool,
        connector: Connector,
        caller: Caller,
        arguments: Json,
    ) -> None:
        self._chain = chain
        self._call = HookedCall(
            id=call_id,
            tool=tool.name,
            connector=connector.slug,
            arguments=arguments,
            only_reads=tool.only_reads,
            workspace=caller.workspace,
            user=caller.user,
            thread=caller.thread,
            agent=caller.agent,
            way=caller.way,
        )
        self.report = HookReport()

    @property
    def looks_at_results(self) -> bool:
        return self._chain.looks_at_results

    @property
    def reason_to_ask(self) -> str:
        """Why a person must say yes; empty where none must."""
        return "; ".join(self.report.ask)

    async def before(self) -> Json:
        """The arguments as they may be sent."""
        arguments = await self._chain.before(self._call, self.report)
        if arguments is not self._call.arguments:
            self._call = replace(self._call, arguments=arguments)
        return arguments

    async def after(self, raw: RawResult) -> RawResult:
        """What a tool gave, as it may be given on."""
        if not self._chain.looks_at_results:
            return raw
        output: dict[str, Any] = {"content": list(raw.content), "isError": raw.is_error}
        if raw.has_structured:
            output["structuredContent"] = _plain(raw.structured)
        if raw.meta is not None:
            output["_meta"] = raw.meta
        given = await self._chain.after(self._call, output, self.report)
        if given is output:
            return raw
        output = dict(given)
        content, meta = output.get("content", []), output.get("_meta")
        if not _are_objects(content) or not isinstance(meta, Mapping | None):
            raise HookRefused("the result is held back: a hook left none that can be read")
        return replace(
            raw,
            content=tuple(content),
            structured=output.get("structuredContent"),
            has_structured="structuredContent" in output,
            is_error=output.get("isError") is True,
            meta=cast("Json | None", meta),
        )

    async def after_request(self, result: Json) -> Json:
        """What a server answered about resources and prompts, or says in the middle of a call."""
        return await self._chain.after(self._call, result, self.report)

    async def after_failure(self, error: DragomanError) -> None:
        """What the server said of its failure is a result as well."""
        if not self._chain.looks_at_results:
            return
        texts = [error.message, error.command_hint, error.cause]
        blocks = [{"type": "text", "text": text} for text in texts if text is not None]
        output = await self._chain.after(self._call, {"content": blocks, "isError": True}, self.report)
        content: Any = output.get("content")
        if not _are_objects(content) or len(content) != len(blocks):
            raise HookRefused("the failure is held back: a hook left none that can be read") from error
        told = iter(str(block.get("text", "")) for block in content)
        error.message = next(told)
        error.command_hint = next(told) if error.command_hint is not None else None
        error.cause = next(told) if error.cause is not None else None


def _are_objects(content: Any) -> bool:
    return isinstance(content, list | tuple) and all(
        isinstance(block, Mapping) for block in cast("list[Any]", content)
    )


def _plain(value: Any) -> Any:
    """As everybody will read it: what a function of this process returned may be more than JSON."""
    if isinstance(value, str):
        return value
    try:
        return orjson.loads(orjson.dumps(value))
    except (TypeError, ValueError, RecursionError):
        return value  # whoever shapes it says what is wrong
