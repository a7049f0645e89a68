"""What executes runs: accepts them, begins them, ends with the hub. Knows no caller and no rights.

What it takes to execute one is opened by the first of them: pydantic-ai is heavy.
"""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, nullcontext
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Self

from dragoman import extras
from dragoman.agent import AgentKind
from dragoman.agents import preload
from dragoman.agents.delegation_offers import AgentOffers, ConnectorOffers
from dragoman.agents.management_offers import ManagementOffers
from dragoman.agents.offers import Offers
from dragoman.agents.plan_offers import PlanOffers
from dragoman.agents.recipe_offers import RecipeOffers
from dragoman.agents.work_context import WorkContext
from dragoman.background_tasks import BackgroundTasks
from dragoman.errors import DragomanError, InvalidConfig, NotFound
from dragoman.events import Event
from dragoman.hub.agents import Agents
from dragoman.hub.management import HubManagement
from dragoman.hub.recipes import Recipes
from dragoman.hub.toolbox import HubToolbox
from dragoman.recipe import Recipe
from dragoman.run import TRACE, Message, Run, RunLimits
from dragoman.runs.journal import open_journal
from dragoman.runs.previews import Previews
from dragoman.runs.questions import RunQuestions
from dragoman.runs.run_endings import queued
from dragoman.runs.streams import RunStreams
from dragoman.runs.workers import Worker
from dragoman.store.records import AcceptedRun, BegunThread, NewRun
from dragoman.telemetry.logs import get_logger
from dragoman.telemetry.spans import trace_context

if TYPE_CHECKING:
    from dragoman.hub.runtime import Runtime
    from dragoman.runs.dispatch import RunDispatcher

_LOOK_EVERY = 5.0  # seconds until a process without work of its own sees what another left
_OPEN_AGAIN = 1.0  # seconds until what could not be opened is tried again


class RunEngine:
    """`limits` are those of a run that is given no others."""

    def __init__(self, runtime: "Runtime") -> None:
        self._runtime = runtime
        self._supervisor = runtime.supervisor
        # SQLite is one process's: nobody else works on its threads.
        has_company = not runtime.settings.store_url.startswith("sqlite")
        self.streams = RunStreams(runtime.store.runs, runtime.cluster, has_company=has_company)
        self.questions = RunQuestions(runtime.store.runs, runtime.cluster)
        self.previews = Previews(runtime.redactor)
        self.toolbox = HubToolbox(runtime)
        self.agents_of = partial(Agents, runtime)
        settings = runtime.settings
        self.limits = RunLimits(
            calls=settings.run_calls, tokens=settings.run_tokens, seconds=settings.run_minutes * 60
        )
        self.dispatch: RunDispatcher | None = None
        self._executes = "work" in runtime.settings.roles
        self._stack = AsyncExitStack()
        self._opening = asyncio.Lock()
        self._tasks = BackgroundTasks()

    async def __aenter__(self) -> Self:
        rows, cluster = self._runtime.store.runs, self._runtime.cluster
        self._stack.enter_context(self.streams.listening())
        await self._stack.enter_async_context(self.questions.awaited.opened(self._supervisor))
        self._stack.enter_context(cluster.listen("cancelled", self._heard_of_cancelling))
        self._journal = await self._stack.enter_async_context(
            open_journal(rows, self.streams.publish, self._worker(), self._supervisor)
        )
        self._tasks = await self._stack.enter_async_context(BackgroundTasks())
        self._tasks.start(self._end_streams(), "end streams when runs are executed no longer")
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.streams.close()
        await self._stack.aclose()

    def _worker(self) -> Worker:
        """This process as the holder of runs; the other nodes of a cluster hear that it lives."""
        node = self._runtime.cluster.node.id if self._runtime.settings.cluster_url else None
        return Worker.of_this_process(node)

    def _heard_of_cancelling(self, root: str) -> None:
        if self.dispatch is not None:
            self.dispatch.cancel(root)
            self.dispatch.wake()

    async def open(self) -> "RunDispatcher":
        """What executes; opened by the first who needs it."""
        if not self._executes:
            raise InvalidConfig(
                "this process executes no runs", hint="put `work` into its DRAGOMAN_ROLES, or leave that away"
            )
        if self.dispatch is None:
            async with self._opening:
                if self.dispatch is None:
                    self.dispatch = await self._open_dispatch()
        return self.dispatch

    async def drain(self, patience: float) -> None:
        """Nothing more begins here; runs under way are given back (see `RunDispatcher.hand_over`)."""
        self._executes = False
        if self.dispatch is not None:
            await self.dispatch.hand_over(patience)

    def holding_starts(self) -> AbstractContextManager[None]:
        """While a message is accepted: runs that are about to start wait until it is."""
        return nullcontext() if self.dispatch is None else self.dispatch.holding_starts()

    async def accept(
        self, run: Run, message: Message | None, begun: BegunThread | None = None
    ) -> AcceptedRun:
        """Once this returns the run is on disk and will be executed, whatever happens; with it are its
        message, which is for the caller to tell, and the thread that was `begun` for it.
        """
        self._supervisor.check()
        extras.require("agents")
        if carried := trace_context():
            run = replace(run, options={**run.options, TRACE: carried})
        if self.dispatch is not None:
            accepted = await self.dispatch.accept(run, message, begun)
        else:
            new = NewRun(run, message, [queued(run)], begun=begun)
            (accepted,) = await self._runtime.store.runs.accept([new])
            self._runtime.cluster.work.put([(accepted.run.workspace, accepted.run.id)])
            self.streams.ring_thread(accepted.run)
            if self._executes:
                # What executes takes seconds to load; it finds the run by itself.
                self._tasks.start(self._opened(), "open what executes runs")
        return accepted

    async def finished(self, run: Run) -> Run:
        """Waits for its end."""
        async for _ in self.streams.follow(run, 1):  # all but that it was queued
            pass
        self._supervisor.check()
        found = await self._runtime.store.runs.find(run.workspace, run.id)
        if found is None:
            raise NotFound(f"the run {run.id} was removed")
        return found

    def tell_message(self, message: Message) -> None:
        facts = {"thread": message.thread, "number": message.number, "author": message.author}
        self._runtime.events.publish(
            Event(kind="message.added", workspace=message.workspace, user=message.user, data=facts)
        )

    async def resume_left(self) -> None:
        """Whatever was under way when the last process ended goes on, and what another one leaves later."""
        # A node is handed runs at any time.
        is_handed_work = bool(self._runtime.settings.cluster_url)
        while self._executes and self.dispatch is None:
            try:
                await self._runtime.store.clock.read()
                has_open = is_handed_work or await self._runtime.store.runs.has_open()
            except DragomanError as error:
                get_logger().warning("runs cannot be looked for", error=str(error))
                has_open = False
            if has_open and extras.is_installed("agents"):
                await self._opened()
            else:
                await asyncio.sleep(_LOOK_EVERY)

    async def _end_streams(self) -> None:
        """Nobody waits for what never comes."""
        await self._supervisor.failure()
        self.streams.close()

    async def _opened(self) -> None:
        """Tries until it is open: an accepted run is executed, though file descriptors or memory lacked."""
        while self.dispatch is None:
            try:
                await self.open()
            except Exception as error:  # noqa: BLE001
                get_logger().warning("what executes runs cannot be opened", error=str(error))
                await asyncio.sleep(_OPEN_AGAIN)

    async def _open_dispatch(self) -> "RunDispatcher":
        # In a thread: whoever asks something else meanwhile gets an answer.
        await asyncio.to_thread(_load)
        from dragoman.agents.composition import Composer
        from dragoman.runs.dispatch import open_dispatch
        from dragoman.runs.execution import RunDependencies

        runtime = self._runtime
        needed = RunDependencies(
            runs=runtime.store.runs,
            clock=runtime.store.clock,
            cluster=runtime.cluster,
            threads=runtime.store.threads,
            journal=self._journal,
            streams=self.streams,
            questions=self.questions,
            recorder=runtime.recorder,
            agents_of=self.agents_of,
            toolbox=self.toolbox,
            composer=Composer(
                runtime.given_providers.models_of,
                budget=runtime.settings.tool_budget,
                functions=self._functions(),
                delegation=(ConnectorOffers(self.agents_of),),
                arms=runtime.rollout,
            ),
            previews=self.previews,
            events=runtime.events,
            tally=runtime.rollout,
            spans=runtime.spans,
            readied=runtime.readied,
            first_token=runtime.settings.model_first_token,
            stall=runtime.settings.model_stall,
            find_kept=runtime.store.calls.find_result,
        )
        return await self._stack.enter_async_context(open_dispatch(needed, self._supervisor))

    def _functions(self) -> Mapping[AgentKind, Sequence[Offers]]:
        """What agents of each kind have beside tools."""
        others = AgentOffers(self.agents_of)
        return {
            "assistant": (others, ManagementOffers(HubManagement(self._runtime))),
            "worker": (others,),
            "connector": (PlanOffers(), RecipeOffers(self._recipes)),
        }

    async def _recipes(self, work: WorkContext, tools: Collection[str]) -> Sequence[Recipe]:
        service = Recipes(self._runtime, work.caller)
        return await service.near(work.agent.connector_id or "", work.run.request, tools)


def _load() -> None:
    preload.load()
    import_module("dragoman.runs.dispatch")
