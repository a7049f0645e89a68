"""Questions of agents to a person: asked once, waited for, answered by any door, also after a restart."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from secrets import token_hex
from typing import Any

from dragoman.cluster import Cluster
from dragoman.cluster.awaited import Awaited
from dragoman.errors import NobodyAnswered
from dragoman.run import Question, Run
from dragoman.store.protocols import RunStore
from dragoman.store.records import RestingRun

QUESTION_LASTS = timedelta(hours=24)


class RunQuestions:
    def __init__(self, rows: RunStore, cluster: Cluster, lasts: timedelta = QUESTION_LASTS) -> None:
        self._rows = rows
        self._lasts = lasts
        self.awaited = Awaited(cluster, "answered", rows.settled_questions)

    async def close(self, root: Run) -> None:
        """The run ended: its open questions wait for nobody any more."""
        await self._rows.close_questions(root.workspace, root.id, "cancelled")

    async def put(self, question: Question) -> Question:
        """The question with the same run and key if there is one, else this one."""
        return await self._rows.ask(question)

    async def ask(
        self,
        run: Run,
        key: str,
        text: str,
        fields: Mapping[str, Any] | None,
        *,
        connector: str = "",
        url: str | None = None,
    ) -> Question:
        """The same question when a run comes here again after a crash, answered or not."""
        now = datetime.now(UTC)
        return await self.put(
            Question(
                id=f"qst_{token_hex(8)}",
                workspace=run.workspace,
                user=run.user,
                thread=run.thread,
                run=run.id,
                root=run.root,
                key=key,
                agent=run.agent,
                text=text,
                connector=connector,
                fields=fields,
                url=url,
                created_at=now,
                expires_at=now + self._lasts,
            )
        )

    async def resting(self, runs: Sequence[Run]) -> Mapping[str, RestingRun]:
        """Those that need nothing but an answer."""
        waiting = [run for run in runs if run.status == "waiting" and not run.cancel_asked]
        return await self._rows.resting([(run.workspace, run.id) for run in waiting]) if waiting else {}

    async def settled(self, question: Question) -> Question | None:
        """The question once it is answered or declined, or its time is over. None when it is gone."""
        event = self.awaited.event(question.id)
        # It may have been answered already.
        current = await self._rows.find_question(question.workspace, question.user, question.id)
        while current is not None and current.status == "pending":
            left = (current.expires_at - datetime.now(UTC)).total_seconds()
            if left <= 0:
                break
            if await self.awaited.wait(event, left):
                current = await self._rows.find_question(question.workspace, question.user, question.id)
        return current

    async def answered(self, question: Question) -> Any:
        """Waits for the answer. Raises `NobodyAnswered` when its time is over, or the person declined."""
        current = await self.settled(question)
        if current is not None and current.status == "declined":
            raise NobodyAnswered("the person declined to answer", hint="go on without")
        if current is None or current.status != "answered":
            raise NobodyAnswered("nobody answered the question", hint="go on without, or say what is missing")
        return current.answer

    def tell_answered(self, question: str) -> None:
        """The answer is written: whoever waits for it goes on at once."""
        self.awaited.tell(question)
