"""Messages, runs, timelines and questions as JSON. Who executes a run, and by what rights, is not told."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from dragoman.agent import Exposure
from dragoman.run import Author, Message, Question, QuestionStatus, Run, RunEvent, RunEventKind, RunStatus
from dragoman.web.shape import Shape

if TYPE_CHECKING:
    from dragoman.runs.sent_prompts import SentPrompt
    from dragoman.runs.timeline import Timeline

_IN_A_LIST = 1_000  # characters of a text where many are listed


class MessageShape(Shape):
    """`number` counts within the thread. `details`: status, thumb, which question it answers."""

    number: int
    thread: str
    author: Author
    agent: str | None
    text: str
    run: str | None
    details: dict[str, Any]
    created_at: datetime


class MessagesShape(Shape):
    messages: list[MessageShape]


class RunLimitsShape(Shape):
    requests: int | None
    calls: int | None
    tokens: int | None
    cost: float | None
    seconds: float | None


class RunUsageShape(Shape):
    requests: int
    calls: int
    input_tokens: int
    output_tokens: int
    cost: float
    tokens_saved: int
    unpriced: int


class RunErrorShape(Shape):
    code: str
    message: str
    hint: str | None
    cause: str | None


class RunShape(Shape):
    """`agent` is empty where a message went on to several. Usage and limits include the runs under it."""

    id: str
    thread: str | None
    agent: str
    status: RunStatus
    request: str
    answer: str | None
    error: RunErrorShape | None
    root: str
    parent: str | None
    parent_call: str | None
    message: int | None
    model: str | None
    exposure: Exposure | None
    arm: str | None
    options: dict[str, Any]
    limits: RunLimitsShape
    usage: RunUsageShape
    cancel_asked: bool
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


class RunsShape(Shape):
    """`next` is what to give as `after` for the page that follows; null: there is none.

    `next_before` is the same as a time, to give as `before` to a list by time.
    """

    runs: list[RunShape]
    next: str | None
    next_before: str | None


class RunFamilyShape(Shape):
    """A run, and all runs of the one that a person started: the root first."""

    run: RunShape
    family: list[RunShape]


class AcceptedShape(Shape):
    """The run that works on the message; for the answer to a question, the run that asked."""

    run: RunShape
    message: MessageShape | None


class TimelineEntryShape(Shape):
    """`title` says it in a line. `runs` are the timelines of the runs that it started."""

    kind: str
    time: datetime
    title: str
    details: dict[str, Any]
    runs: list["TimelineShape"]


class TimelineShape(Shape):
    run: RunShape
    steps: list[TimelineEntryShape]


class SentMessageShape(Shape):
    """`role`: user, model, call (the arguments of a function) or result. `name`: the function."""

    role: str
    name: str
    text: str


class SentPromptShape(Shape):
    """`instructions` has more than one text where the run was interrupted and taken up again.

    `earlier`: how many messages of the thread went before.
    """

    run: str
    agent: str
    model: str | None
    instructions: list[str]
    functions: list[str]
    earlier: int
    messages: list[SentMessageShape]


class SentPromptsShape(Shape):
    """The run itself first, then those that it started."""

    prompts: list[SentPromptShape]


class RunEventShape(Shape):
    """The data of one server-sent event. `number` counts within the root run."""

    number: int
    kind: RunEventKind
    run: str
    root: str
    agent: str
    time: datetime
    data: dict[str, Any]


class QuestionShape(Shape):
    """`fields` is a JSON schema where an object is wanted; else the answer is text.

    `connector` is whose server asks in the middle of a call; null where an agent asks. With a `url` the
    person is asked to go there, and any answer says that they did. `run` is null for a call outside of runs.
    """

    id: str
    status: QuestionStatus
    thread: str | None
    run: str | None
    root: str | None
    agent: str
    connector: str | None
    text: str
    fields: dict[str, Any] | None
    url: str | None
    answer: Any
    created_at: datetime
    expires_at: datetime
    answered_at: datetime | None


class QuestionsShape(Shape):
    questions: list[QuestionShape]


def message_view(message: Message) -> MessageShape:
    return MessageShape.of(message)


def run_view(run: Run) -> RunShape:
    return RunShape.of(run, thread=run.thread or None)


def runs_view(runs: Sequence[Run], limit: int) -> RunsShape:
    """Long texts are cut: each run has them in full."""
    has_more = len(runs) == limit
    # With Z and not +00:00: a plus sign in an address is a space.
    oldest = runs[-1].created_at.isoformat().replace("+00:00", "Z") if has_more else None
    last = runs[-1].id if has_more else None
    return RunsShape(runs=[_in_list(run) for run in runs], next=last, next_before=oldest)


def _in_list(run: Run) -> RunShape:
    options = {name: value for name, value in run.options.items() if name not in ("outcome", "context")}
    return RunShape.of(
        run,
        thread=run.thread or None,
        request=_cut(run.request),
        answer=None if run.answer is None else _cut(run.answer),
        options=options,
    )


def timeline_view(timeline: "Timeline") -> TimelineShape:
    return TimelineShape(
        run=run_view(timeline.run),
        steps=[
            TimelineEntryShape.of(entry, runs=[timeline_view(one) for one in entry.runs])
            for entry in timeline.moments
        ],
    )


def prompts_view(prompts: Sequence["SentPrompt"]) -> SentPromptsShape:
    return SentPromptsShape(
        prompts=[
            SentPromptShape.of(
                one,
                run=one.run.id,
                agent=one.run.agent,
                model=one.run.model,
                messages=[SentMessageShape.of(message) for message in one.messages],
            )
            for one in prompts
        ]
    )


def event_view(event: RunEvent) -> RunEventShape:
    return RunEventShape.of(event)


def question_view(question: Question) -> QuestionShape:
    run = question.run or None
    return QuestionShape.of(
        question,
        thread=question.thread or None,
        run=run,
        root=question.root if run else None,
        connector=question.connector or None,
    )


def _cut(text: str) -> str:
    return text if len(text) <= _IN_A_LIST else text[:_IN_A_LIST] + "…"
