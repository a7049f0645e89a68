"""What every execution needs. Built once by the hub, changed by nobody."""

from dataclasses import dataclass, field

from dragoman.agents.composition import Composer
from dragoman.agents.rollout import Tally
from dragoman.agents.staff import Staff
from dragoman.agents.work import Toolbox
from dragoman.events import Events
from dragoman.runs.journal import Journal
from dragoman.runs.previews import Previews
from dragoman.runs.questions import Questions
from dragoman.runs.streams import Streams
from dragoman.store.run_protocols import MessageRows, RunRows
from dragoman.telemetry.spans import Spans


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    runs: RunRows
    messages: MessageRows
    journal: Journal
    streams: Streams
    questions: Questions
    staff: Staff
    toolbox: Toolbox
    composer: Composer
    previews: Previews
    events: Events
    spans: Spans = field(default_factory=Spans)
    tally: Tally | None = None
    history_budget: int = 60_000
