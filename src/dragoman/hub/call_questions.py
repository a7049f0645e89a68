"""What servers ask in the middle of a call that a person makes: by the library, by REST, in the console.

Who calls answers by a function of theirs, or the question is kept for the person, who answers it by any door.
"""

import asyncio
import inspect
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from secrets import token_hex
from typing import TYPE_CHECKING, Any, cast

from dragoman.errors import DragomanError, InputRequired, LimitReached
from dragoman.events import Event
from dragoman.run import Question
from dragoman.scope import Caller
from dragoman.telemetry.logs import get_logger
from dragoman.tool import Elicitation, NoChannel, OnElicitation, OnProgress, Progress

if TYPE_CHECKING:
    from dragoman.hub.runtime import Runtime

MOST_OPEN = 200  # questions of one user: nobody reads more, and no server may fill the store
_BOTH_MODES: Mapping[str, Any] = {"elicitation": {"form": {}, "url": {}}}


class CallbackChannel(NoChannel):
    """Fills `ClientChannel` with functions of whoever calls. They decide how long they wait for a person."""

    def __init__(
        self, tool: str, on_progress: OnProgress | None, on_elicitation: OnElicitation | None
    ) -> None:
        super().__init__()
        self._tool = tool
        self._on_progress = on_progress
        self._on_elicitation = on_elicitation
        self.capabilities: Mapping[str, Any] = _BOTH_MODES if on_elicitation else {}
        self.wants_progress: bool = on_progress is not None

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        if self._on_progress is not None:
            told = self._on_progress(Progress(progress=progress, total=total, message=message))
            if inspect.isawaitable(told):
                await told

    async def ask(self, method: str, params: Mapping[str, Any], connector: str) -> Mapping[str, Any]:
        if method != "elicitation/create" or self._on_elicitation is None:
            raise InputRequired(f"nobody can be asked for {method}")
        asked = Elicitation.of(params, connector, self._tool)
        try:
            answer: Any = self._on_elicitation(asked)
            if inspect.isawaitable(answer):
                answer = await answer
            return {"action": "decline"} if answer is None else asked.accepted(dict(answer))
        except DragomanError as error:
            raise InputRequired(error.message, hint=error.command_hint) from None
        except Exception as error:  # noqa: BLE001
            # boundary: the caller's own function; the call goes on without its answer, and says so
            get_logger().warning("elicitation.failed", tool=self._tool, exc_info=error)
            raise InputRequired(f"the function that answers failed: {type(error).__name__}") from None


class CallQuestions:
    """Keeps what servers ask for the caller, and waits for the answer. `wait` are the seconds it has."""

    def __init__(
        self,
        runtime: "Runtime",
        caller: Caller,
        wait: float,
        on_question: Callable[[Question], None] = lambda question: None,
    ) -> None:
        self._runtime = runtime
        self._caller = caller
        self._wait = wait
        self._on_question = on_question

    async def answer(self, asked: Elicitation) -> Mapping[str, Any] | None:
        """Fills `OnElicitation`. Raises `NobodyAnswered` when the time is over or the person declined."""
        caller, rows, questions = self._caller, self._runtime.store.runs, self._runtime.engine.questions
        if len(await rows.questions(caller.workspace, caller.user, limit=MOST_OPEN)) >= MOST_OPEN:
            raise LimitReached(
                f"{MOST_OPEN} questions wait for an answer already",
                hint="answer some first: dragoman questions list",
            )
        question = await questions.put(self._question(asked))
        self._tell(question)
        try:
            answer = await questions.answered(question)
        finally:
            await asyncio.shield(rows.close_questions(caller.workspace, question.root, "cancelled"))
        return cast("Mapping[str, Any]", answer) if isinstance(answer, Mapping) else {}

    def _question(self, asked: Elicitation) -> Question:
        now, key = datetime.now(UTC), token_hex(8)
        return Question(
            id=f"qst_{key}",
            workspace=self._caller.workspace,
            user=self._caller.user,
            thread="",
            run="",
            root=f"call_{key}",
            key=key,
            agent="",
            text=asked.message,
            connector=asked.connector,
            fields=asked.fields,
            url=asked.url,
            created_at=now,
            expires_at=now + timedelta(seconds=self._wait),
        )

    def _tell(self, question: Question) -> None:
        self._on_question(question)
        data = {"id": question.id, "text": question.text, "thread": None}
        self._runtime.events.publish(
            Event(
                kind="question.asked",
                workspace=question.workspace,
                user=question.user,
                connector=question.connector,
                data=data,
            )
        )
