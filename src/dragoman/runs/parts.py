"""What every execution needs. Built once by the hub, changed by nobody."""

from dataclasses import dataclass, field

from dragoman.agents.agent_directory import AgentDirectory
from dragoman.agents.composition import Composer
from dragoman.agents.rollout import RolloutRecorder
from dragoman.agents.work_context import Toolbox
from dragoman.events import Events
from dragoman.runs.journal import Journal
from dragoman.runs.previews import Previews
from dragoman.runs.questions import RunQuestions
from dragoman.runs.streams import RunStreams
from dragoman.store.protocols import RunStore, ThreadStore
from dragoman.telemetry.spans import Spans


@dataclass(frozen=True, slots=True, kw_only=True)
class RunParts:
    runs: RunStore
    threads: ThreadStore
    journal: Journal
    streams: RunStreams
    questions: RunQuestions
    agent_directory: AgentDirectory
    toolbox: Toolbox
    composer: Composer
    previews: Previews
    events: Events
    spans: Spans = field(default_factory=Spans)
    tally: RolloutRecorder | None = None
    history_budget: int = 60_000
