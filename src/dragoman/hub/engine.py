"""What executes runs: models, composer, dispatch. Opened by the first run: pydantic-ai is heavy."""

import asyncio
import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from dragoman.agent import AgentKind
from dragoman.agents import preload
from dragoman.agents.agent_directory import AgentDirectory
from dragoman.agents.models import Models
from dragoman.agents.offers import Offers
from dragoman.agents.work_context import Toolbox
from dragoman.events import Events
from dragoman.hub.rollout import Rollout
from dragoman.runs.journal import Journal
from dragoman.runs.previews import Previews
from dragoman.runs.questions import RunQuestions
from dragoman.runs.streams import RunStreams
from dragoman.settings import Settings
from dragoman.store import Store

if TYPE_CHECKING:
    from dragoman.runs.dispatch import RunDispatcher


@dataclass(frozen=True, slots=True, kw_only=True)
class Workshop:
    """What an engine is made of. `functions` are offers that agents of a kind have beside tools."""

    settings: Settings
    store: Store
    journal: Journal
    streams: RunStreams
    questions: RunQuestions
    agent_directory: AgentDirectory
    toolbox: Toolbox
    models: Models
    previews: Previews
    events: Events
    rollout: Rollout
    functions: Mapping[AgentKind, Sequence[Offers]]


@asynccontextmanager
async def open_engine(workshop: Workshop) -> AsyncGenerator["RunDispatcher"]:
    # In a thread: whoever asks something else meanwhile gets an answer.
    await asyncio.to_thread(_load)
    from dragoman.agents.composition import Composer
    from dragoman.runs.dispatch import open_dispatch
    from dragoman.runs.parts import RunParts

    parts = RunParts(
        runs=workshop.store.runs,
        threads=workshop.store.threads,
        journal=workshop.journal,
        streams=workshop.streams,
        questions=workshop.questions,
        agent_directory=workshop.agent_directory,
        toolbox=workshop.toolbox,
        composer=Composer(
            workshop.models,
            budget=workshop.settings.tool_budget,
            functions=workshop.functions,
            arms=workshop.rollout,
        ),
        previews=workshop.previews,
        events=workshop.events,
        tally=workshop.rollout,
    )
    async with open_dispatch(parts) as dispatch:
        yield dispatch


def open_models(settings: Settings) -> Models:
    return Models(settings.model, settings.model_fallbacks, environment=os.environ)


def _load() -> None:
    preload.load()
    import_module("dragoman.runs.dispatch")
