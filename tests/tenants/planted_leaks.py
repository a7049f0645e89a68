"""Holes to plant in a service that runs: each takes one check away, as a change that forgot it would."""

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from population import Town

from dragoman.api import calls
from dragoman.catalog.connector_tools import COMMON, ConnectorTools
from dragoman.connections import link_pool
from dragoman.console.sessions import BrowserSessions
from dragoman.events import Listener
from dragoman.hub.connector_registry import ConnectorRegistry
from dragoman.hub.people import People
from dragoman.hub.runs import Runs
from dragoman.mcp_endpoint import sessions
from dragoman.mcp_endpoint.endpoint import McpEndpoint
from dragoman.people import Workspace
from dragoman.scope import Caller, Isolation, identity_of
from dragoman.store.approvals import SqlApprovals
from dragoman.store.audit import SqlAudit
from dragoman.store.calls import SqlCalls
from dragoman.store.people import SqlPeople
from dragoman.store.runs import SqlRuns
from dragoman.store.threads import SqlThreads

Leak = Callable[[Town], AbstractContextManager[None]]
_MOST_ROWS = 3  # of each of the others


def _one_of_anybody(store: type, method: str) -> Leak:
    """One row by its id: the query asks neither for the workspace nor for the user."""

    @contextmanager
    def planted(town: Town) -> Generator[None]:
        original = getattr(store, method)

        async def find(self: Any, workspace: str, user: str, one: str) -> Any:
            for tenant in town.tenants:
                if (found := await original(self, tenant.workspace, tenant.user, one)) is not None:
                    return found
            return None

        with patch.object(store, method, find):
            yield

    return planted


def _all_of_everybody(store: type, method: str) -> Leak:
    """A list: the query does not ask for the workspace."""

    @contextmanager
    def planted(town: Town) -> Generator[None]:
        original = getattr(store, method)

        async def read(self: Any, workspace: str, user: str | None = None, *given: Any, **named: Any) -> Any:
            rows: list[Any] = []
            for tenant in town.tenants:
                whose = (tenant.workspace,) if user is None else (tenant.workspace, tenant.user)
                rows += [*await original(self, *whose, *given, **named)][:_MOST_ROWS]
            return rows

        with patch.object(store, method, read):
            yield

    return planted


@contextmanager
def _a_run_of_anybody(town: Town) -> Generator[None]:
    async def get(self: Runs, run: str) -> Any:
        workspaces = dict.fromkeys([self._caller.workspace, *(tenant.workspace for tenant in town.tenants)])
        for workspace in workspaces:
            if found := await self._runtime.store.runs.find(workspace, run):
                return found
        return await original(self, run)

    original = Runs.get
    with patch.object(Runs, "get", get):
        yield


@contextmanager
def _a_connector_of_anybody(town: Town) -> Generator[None]:
    original = ConnectorRegistry.find

    def find(self: ConnectorRegistry, name: str, caller: Any) -> Any:
        return original(self, name, caller) or self.find_by_id(name)

    with patch.object(ConnectorRegistry, "find", find):
        yield


@contextmanager
def _the_audit_trail_of_everybody(town: Town) -> Generator[None]:
    original = SqlAudit.read

    async def read(self: SqlAudit, workspace: str, **named: Any) -> Any:
        workspaces = dict.fromkeys(tenant.workspace for tenant in town.tenants)
        return [one for place in workspaces for one in await original(self, place, **named)]

    with patch.object(SqlAudit, "read", read):
        yield


@contextmanager
def _a_list_of_tools_of_another_user(town: Town) -> Generator[None]:
    """A connector's list is kept for all, though each user was shown their own."""

    def of_the_first(self: ConnectorTools, caller: Any) -> str:
        return next(iter(self.lists()), COMMON)

    with patch.object(ConnectorTools, "_identity", of_the_first):
        yield


@contextmanager
def _a_connection_of_another_user(town: Town) -> Generator[None]:
    """All of a workspace call over the connection of one of them, with what that one brought."""
    users = {tenant.workspace: tenant.user for tenant in town.tenants}

    def of_one(caller: Caller, isolation: Isolation) -> str:
        return identity_of(replace(caller, user=users.get(caller.workspace, caller.user)), isolation)

    with patch.object(link_pool, "identity_of", of_one):
        yield


@contextmanager
def _events_of_everybody(town: Town) -> Generator[None]:
    original = Listener.offer

    def offer(self: Listener, event: Any) -> None:
        self._workspace, self._user = event.workspace, event.user
        original(self, event)

    with patch.object(Listener, "offer", offer):
        yield


@contextmanager
def _a_browser_session_of_another(town: Town) -> Generator[None]:
    """The console goes on with the session of the request before."""
    original = BrowserSessions.find
    last: list[Any] = []

    async def find(self: BrowserSessions, request: Any) -> Any:
        last.append(await original(self, request))
        return last[-2] if len(last) > 1 else last[-1]

    with patch.object(BrowserSessions, "find", find):
        yield


@contextmanager
def _a_caller_of_another_at_mcp(town: Town) -> Generator[None]:
    """The MCP endpoint goes on with the caller of the request before."""
    original = McpEndpoint._hub_of
    last: list[Any] = []

    def hub_of(self: McpEndpoint, scope: Any, target: Any) -> Any:
        last.append(original(self, scope, target))
        return last[-2] if len(last) > 1 else last[-1]

    with patch.object(McpEndpoint, "_hub_of", hub_of):
        yield


@contextmanager
def _an_mcp_session_of_another(town: Town) -> Generator[None]:
    original = McpEndpoint._session

    async def session(self: McpEndpoint, headers: Any, target: Any, hub: Any) -> Any:
        known = self._sessions._sessions.get(sessions._key(headers.get("mcp-session-id", "")))
        return known or await original(self, headers, target, hub)

    with patch.object(McpEndpoint, "_session", session):
        yield


# In this order: what comes first needs credentials that requests of the others take away again.
LEAKS: dict[str, Leak] = {
    "a connection of another user": _a_connection_of_another_user,
    "a thread of anybody": _one_of_anybody(SqlThreads, "find"),
    "a kept result of anybody": _one_of_anybody(SqlCalls, "find_result"),
    "a run of anybody": _a_run_of_anybody,
    "a connector of anybody": _a_connector_of_anybody,
    "runs of everybody": _all_of_everybody(SqlRuns, "list"),
    "users of every workspace": _all_of_everybody(SqlPeople, "users"),
    "approvals of every workspace": _all_of_everybody(SqlApprovals, "list"),
    "the audit trail of every workspace": _the_audit_trail_of_everybody,
    "a list of tools of another user": _a_list_of_tools_of_another_user,
    "events of everybody": _events_of_everybody,
    "a browser session of another": _a_browser_session_of_another,
    "a caller of another at /mcp": _a_caller_of_another_at_mcp,
    "an MCP session of another": _an_mcp_session_of_another,
}


# Rights that are forgotten


@contextmanager
def no_role_is_asked_for() -> Generator[None]:
    with patch.object(Caller, "is_admin", property(lambda caller: True)):  # pyright: ignore
        yield


@contextmanager
def a_field_more_is_taken() -> Generator[None]:
    with patch.object(calls, "FIELDS", frozenset({*calls.FIELDS, "unheard_of"})):
        yield


@contextmanager
def any_workspace_is_ones_own() -> Generator[None]:
    original = People._place

    async def place(self: People, workspace: str | None) -> Workspace:
        found = await self._runtime.store.people.find_workspace(workspace or "")
        return found or await original(self, workspace)

    with patch.object(People, "_place", place):
        yield
