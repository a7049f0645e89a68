"""Where agents work: models, agents, toolbox, runs and what starts them, built on what the hub has by then.

What executes runs is opened by the first of them; the rest belongs to the hub's stack.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

from dragoman.access import ApprovalGate
from dragoman.agent import AgentKind
from dragoman.agents.delegation_offers import AgentOffers, ConnectorOffers
from dragoman.agents.management_offers import ManagementOffers
from dragoman.agents.models import Models
from dragoman.agents.offers import Offers
from dragoman.agents.plan_offers import PlanOffers
from dragoman.calls.audit import Auditor
from dragoman.catalog import Catalog
from dragoman.events import Events
from dragoman.hub.agents import Agents
from dragoman.hub.code import Code
from dragoman.hub.connector_queries import ConnectorQueries
from dragoman.hub.connector_registry import ConnectorRegistry
from dragoman.hub.connectors import Connectors
from dragoman.hub.engine import Workshop, open_models
from dragoman.hub.management import HubManagement
from dragoman.hub.messages import Messages
from dragoman.hub.rollout import Rollout
from dragoman.hub.runs import Runs
from dragoman.hub.threads import Threads
from dragoman.hub.toolbox import HubToolbox
from dragoman.hub.tools import Tools
from dragoman.identity.directory import Directory
from dragoman.run import RunLimits
from dragoman.runs.journal import open_journal
from dragoman.runs.previews import Previews
from dragoman.runs.questions import RunQuestions
from dragoman.runs.streams import RunStreams
from dragoman.scope import Caller
from dragoman.settings import Settings
from dragoman.store import Store
from dragoman.telemetry.redaction import Redactor
from dragoman.tool import ToolCall, ToolOutput


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What agents stand on. `up_to_date` returns when what servers told of their lists is read."""

    settings: Settings
    caller: Caller
    store: Store
    catalog: Catalog
    directory: Directory
    registry: ConnectorRegistry
    connectors: Connectors
    tools: Tools
    threads: Threads
    code: Code
    approvals: ApprovalGate
    auditor: Auditor
    events: Events
    redactor: Redactor
    call: Callable[[ToolCall, Caller], Awaitable[ToolOutput]]
    up_to_date: Callable[[Caller], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Workplace:
    models: Models
    agents: Agents
    rollout: Rollout
    runs: Runs
    messages: Messages
    queries: ConnectorQueries


async def open_workplace(stack: AsyncExitStack, ground: Ground) -> Workplace:
    caller, store, auditor = ground.caller, ground.store, ground.auditor
    models = await stack.enter_async_context(open_models(ground.settings))
    agents = Agents(
        caller=caller,
        store=store,
        registry=ground.registry,
        models=models,
        auditor=auditor,
        events=ground.events,
    )
    await agents.of_connectors.reconcile()
    ground.connectors.attach(agents.of_connectors)
    rollout = Rollout(
        caller=caller, settings=ground.settings, store=store, auditor=auditor, events=ground.events
    )
    toolbox = _toolbox(ground)
    workshop = await _workshop(stack, ground, agents, models, rollout, toolbox)
    runs = await stack.enter_async_context(Runs(caller=caller, auditor=auditor, workshop=workshop))
    limits = RunLimits()
    messages = Messages(
        caller=caller,
        store=store,
        threads=ground.threads,
        agents=agents,
        runs=runs,
        models=models,
        limits=limits,
    )
    queries = ConnectorQueries(caller=caller, toolbox=toolbox, agents=agents, runs=runs, limits=limits)
    return Workplace(
        models=models, agents=agents, rollout=rollout, runs=runs, messages=messages, queries=queries
    )


def _toolbox(ground: Ground) -> HubToolbox:
    return HubToolbox(
        catalog=ground.catalog,
        directory=ground.directory,
        connectors=ground.connectors,
        tools=ground.tools,
        code=ground.code,
        call=ground.call,
        narrowed=ground.threads.narrowed,
        up_to_date=ground.up_to_date,
    )


async def _workshop(
    stack: AsyncExitStack,
    ground: Ground,
    agents: Agents,
    models: Models,
    rollout: Rollout,
    toolbox: HubToolbox,
) -> Workshop:
    rows = ground.store.runs
    # SQLite is one process's: nobody else works on its threads.
    streams = RunStreams(rows, has_company=not ground.settings.store_url.startswith("sqlite"))
    return Workshop(
        settings=ground.settings,
        store=ground.store,
        journal=await stack.enter_async_context(open_journal(rows, streams.publish)),
        streams=streams,
        questions=RunQuestions(ground.store.runs),
        agent_directory=agents,
        toolbox=toolbox,
        models=models,
        previews=Previews(ground.redactor),
        events=ground.events,
        rollout=rollout,
        functions=_functions(ground, agents),
    )


def _functions(ground: Ground, agents: Agents) -> Mapping[AgentKind, Sequence[Offers]]:
    """What agents of each kind have beside tools."""
    management = HubManagement(
        agents=agents,
        connectors=ground.connectors,
        tools=ground.tools,
        threads=ground.threads,
        approvals=ground.approvals,
    )
    delegation = (ConnectorOffers(agents), AgentOffers(agents))
    return {
        "assistant": (*delegation, ManagementOffers(management)),
        "worker": delegation,
        "connector": (PlanOffers(),),
    }
