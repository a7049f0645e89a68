"""What else than tools the servers of MCP offer: resources, prompts, completion. For the MCP door.

What is read or got is counted against budgets and written to the audit trail, as calls are: by its method,
and for prompts their name. Its arguments, the address of a resource among them, only as a hash.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping
from time import perf_counter, time
from typing import Any, cast

from dragoman.calls.call_channel import CallChannel
from dragoman.calls.records import FinishedCall
from dragoman.connections.deadline import Deadline
from dragoman.connections.source import ServerNotice, ServerRequest
from dragoman.connector import Connector
from dragoman.errors import DragomanError, NotFound
from dragoman.hub.bound import BoundService
from dragoman.scope import identity_of
from dragoman.tokens import count_tokens
from dragoman.tool import ClientChannel, Tool, ToolCall, ToolDefinition, json_bytes

Json = Mapping[str, Any]
_COUNTED = frozenset({"resources/read", "prompts/get"})
_ARGUMENTS = ("uri", "name", "arguments")
_MOST_WAITING = 1000
_Told = tuple[str, str, ServerNotice]


class ServerRequests(BoundService):
    """With the rights and over the connection of the caller, who needs the whole connector, not one tool."""

    __slots__ = ()

    async def ask(self, connector: str, method: str, params: Json, *, channel: ClientChannel) -> Json:
        """The server's result as it came. A no of its own is on the line as well."""
        found = await self._get(connector)
        configuration = found.configuration
        seconds = configuration.request_timeout or self._runtime.settings.request_timeout
        deadline = Deadline(seconds, configuration.max_request_time)
        question = ServerRequest(
            connector=found,
            method=method,
            params=params,
            caller=self._caller,
            deadline=deadline,
            channel=CallChannel(channel, found, deadline),
        )
        if method not in _COUNTED:
            return await self._runtime.servers.ask(question)
        return await self._audited(question)

    async def offering(self, capability: str) -> list[str]:
        """Slugs of the connectors whose servers said, when they were last connected, that they offer it.

        `resources.subscribe` is what resources have under that name.
        """
        return [one.slug for one in await self._open() if _offers(one, capability)]

    # News

    async def watch(self, connector: str, uri: str) -> Callable[[], None]:
        """From now on `notices` tells when this resource changes, until what is returned is called, once."""
        found = await self._get(connector)
        if not _offers(found, "resources.subscribe"):
            raise NotFound(f"the server of {connector} does not tell when a resource changes")
        return await self._runtime.servers.watch(found, self._caller, uri)

    async def notices(self) -> AsyncGenerator[tuple[str, ServerNotice]]:
        """What servers tell of prompts and resources over the caller's connections: slug and notice."""
        waiting: deque[_Told] = deque(maxlen=_MOST_WAITING)
        wake = asyncio.Event()

        def hear(connector: Connector, identity: str, notice: ServerNotice) -> None:
            waiting.append((connector.id, identity, notice))
            wake.set()

        with self._runtime.servers.listening(hear):
            while True:
                await wake.wait()
                wake.clear()
                slugs = {
                    (one.id, identity_of(self._caller, one.configuration.isolation)): one.slug
                    for one in await self._open()
                }
                told = dict.fromkeys(waiting)
                waiting.clear()
                for connector_id, identity, notice in told:
                    if slug := slugs.get((connector_id, identity)):
                        yield slug, notice

    # Rights, budgets, audit

    async def _get(self, slug: str) -> Connector:
        for found in await self._open():
            if found.slug == slug:
                return found
        raise NotFound(f"there is no connector {slug[:80]!r} with resources or prompts")

    async def _open(self) -> list[Connector]:
        caller = await self._runtime.active.narrowed(self._caller)
        return [
            connector
            for connector in self._runtime.registry.list(caller)
            if connector.kind == "mcp" and connector.enabled and caller.may_use(connector.slug, "")
        ]

    async def _audited(self, question: ServerRequest) -> Json:
        tool = _as_tool(question)
        arguments = {name: question.params[name] for name in _ARGUMENTS if name in question.params}
        call = ToolCall(tool=tool.name, arguments=arguments)
        began, started_at = perf_counter(), time()
        error: DragomanError | None = None
        is_done = False
        try:
            result = await self._counted(question, tool, call)
            is_done = True
            return result
        except DragomanError as failed:
            error = failed
            raise
        finally:
            finished = FinishedCall(
                id=call.id,
                caller=question.caller,
                tool=tool.name,
                connector=question.connector,
                was_sent=True,
                ok=is_done,
                code=None if is_done else error.code if error else "cancelled",
                message=error.message[:500] if error else None,
                duration_ms=(perf_counter() - began - question.deadline.waited) * 1000,
                waited_ms=question.deadline.waited * 1000,
                attempts=1,
                started_at=started_at,
            )
            self._runtime.auditor.called(finished, arguments)

    async def _counted(self, question: ServerRequest, tool: Tool, call: ToolCall) -> Json:
        ticket = await self._runtime.budgets.enter(
            call, tool, question.connector, question.caller, question.deadline.at
        )
        if ticket is None:
            return await self._runtime.servers.ask(question)
        tokens = 0
        try:
            result = await self._runtime.servers.ask(question)
            tokens = count_tokens(json_bytes(result))
            return result
        finally:
            await self._runtime.budgets.leave(ticket, tokens)


def _offers(connector: Connector, capability: str) -> bool:
    offered: Any = (connector.server or {}).get("capabilities")
    for name in capability.split("."):
        offered = cast("Json", offered).get(name) if isinstance(offered, Mapping) else None
    return offered is not None and offered is not False


def _as_tool(question: ServerRequest) -> Tool:
    """As budgets and the trail know what is called. A prompt has a name, a resource only its address."""
    connector, name = question.connector, question.params.get("name")
    what = f" {name[:100]}" if question.method == "prompts/get" and isinstance(name, str) else ""
    return Tool(
        name=f"{connector.slug}: {question.method}{what}",
        workspace=connector.workspace,
        connector_id=connector.id,
        slug=connector.slug,
        definition=ToolDefinition(original_name=question.method),
    )
