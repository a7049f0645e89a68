"""What agents want of a person in a chat: a yes to a call, or the answer to a question."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from dragoman.console.approvals import left
from dragoman.console.pages import hub_of, pages_of
from dragoman.console.questions import OfferedCall, answer_or_decline, calls_for, form_for
from dragoman.console.schema_forms import SchemaForm
from dragoman.console.submitted_form import filled
from dragoman.console.transcript import ChatTurn, pretty
from dragoman.errors import Conflict, NotFound
from dragoman.hub import BoundHub
from dragoman.hub.approvals import ApprovalView as AskedApproval
from dragoman.names import dotted_name
from dragoman.run import Question
from dragoman.run_progress import table_in
from dragoman.tool import visible_json, visible_values


@dataclass(frozen=True, slots=True)
class ApprovalCard:
    """`arguments` are the exact ones; the answer is for these alone, as `mark` says.

    `values` are the same one by one, where all of them are plain.
    """

    id: str
    status: str
    tool: str
    connector: str
    title: str
    reason: str
    arguments: str
    mark: str
    answers: tuple[str, ...]
    answer: str
    is_destructive: bool
    values: Sequence[tuple[str, str]] = ()
    expires_at: datetime | None = None

    @property
    def left(self) -> str:
        return left(self.expires_at) if self.expires_at else ""


@dataclass(frozen=True, slots=True)
class QuestionCard:
    """`form` where values of certain types can be typed one by one, else `is_json`; or `calls` to choose.

    `connector` is whose server asks, where it is not the agent; it may send the person to a `url`.
    """

    id: str
    status: str
    agent: str
    connector: str
    text: str
    url: str
    form: SchemaForm | None
    calls: Sequence[OfferedCall]
    is_json: bool
    answer: str


async def look_up(hub: BoundHub, turn: ChatTurn) -> None:
    """Gives every ask of the turn its facts; what was forgotten since has none."""
    for ask in turn.asks():
        try:
            if ask.kind == "approval":
                ask.facts = _approval_card(await hub.approvals.get(ask.id))
            else:
                ask.facts = question_card(await hub.runs.question(ask.id))
        except NotFound:
            ask.facts = None


async def show_approval(request: Request) -> Response:
    asked = await hub_of(request).approvals.get(request.path_params["approval"])
    return _approval(request, asked)


async def answer_approval(request: Request) -> Response:
    """Only to the arguments that were shown."""
    hub, given = hub_of(request), await filled(request)
    name = request.path_params["approval"]
    if given.text("mark") != (await hub.approvals.get(name)).approval.binding.arguments_hash:
        raise Conflict("this is not what was shown", hint="load the page again, then answer")
    return _approval(request, await hub.approvals.answer(name, given.text("answer")))


async def show_question(request: Request) -> Response:
    question = await hub_of(request).runs.question(request.path_params["question"])
    return _question(request, question)


async def answer_question(request: Request) -> Response:
    hub, given = hub_of(request), await filled(request)
    question = await hub.runs.question(request.path_params["question"])
    answered = await answer_or_decline(hub, question, given.draft())
    return _question(request, answered)


def _approval(request: Request, asked: AskedApproval) -> Response:
    return pages_of(request).part(request, "chat/approval.html", card=_approval_card(asked))


def _question(request: Request, question: Question) -> Response:
    return pages_of(request).part(request, "chat/question.html", card=question_card(question))


def _approval_card(asked: AskedApproval) -> ApprovalCard:
    approval = asked.approval
    return ApprovalCard(
        id=approval.id,
        status=asked.status,
        tool=approval.binding.tool,
        connector=approval.slug,
        title=asked.asked.title or dotted_name(approval.binding.tool),
        reason=approval.reason,
        arguments=visible_json(asked.asked.arguments),
        mark=approval.binding.arguments_hash,
        answers=asked.answers,
        answer=approval.answer or "",
        is_destructive=asked.asked.annotations.destructive is True,
        values=visible_values(asked.asked.arguments),
        expires_at=approval.expires_at,
    )


def question_card(question: Question) -> QuestionCard:
    form = form_for(question)
    return QuestionCard(
        id=question.id,
        status=question.status,
        agent=question.agent,
        connector=question.connector,
        text=question.text,
        url=question.url or "",
        form=form,
        calls=calls_for(question),
        is_json=form is None and not question.takes_text,
        answer=_told(question.answer),
    )


def _told(answer: Any) -> str:
    """A call that was chosen is named as tools are everywhere; any other answer stands as it was given."""
    facts = table_in(answer)
    if {*facts} != {"tool", "arguments"}:
        return pretty(answer)
    values = (f"{name}: {value}" for name, value in table_in(facts["arguments"]).items())
    return ", ".join([dotted_name(str(facts["tool"])), *values])
