"""Questions of agents to a person: asked once, waited for, answered by any door, also after a restart."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from secrets import token_hex
from typing import Any
from weakref import WeakValueDictionary

from dragoman.errors import NobodyAnswered
from dragoman.run import Question, Run
from dragoman.store.protocols import RunStore

QUESTION_LASTS = timedelta(hours=24)
_LOOK_EVERY = 0.8  # seconds until an answer given in another process is noticed


class RunQuestions:
    def __init__(self, rows: RunStore, lasts: timedelta = QUESTION_LASTS) -> None:
        self._rows = rows
        self._lasts = lasts
        # Who waits holds the bell; with the last of them it is gone.
        self._bells: WeakValueDictionary[str, asyncio.Event] = WeakValueDictionary()
        self._next_look = 0.0

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

    async def answered(self, question: Question) -> Any:
        """Waits for the answer. Raises `NobodyAnswered` when its time is over, or the person declined."""
        bell = self._bells.setdefault(question.id, asyncio.Event())
        # It may have been answered before there was a bell.
        current = await self._rows.find_question(question.workspace, question.user, question.id)
        while current is not None and current.status == "pending":
            left = (current.expires_at - datetime.now(UTC)).total_seconds()
            if left <= 0:
                break
            with suppress(TimeoutError):
                async with asyncio.timeout(min(left, _LOOK_EVERY)):
                    await bell.wait()
            await self._look(bell)
            if bell.is_set():
                current = await self._rows.find_question(question.workspace, question.user, question.id)
        if current is not None and current.status == "declined":
            raise NobodyAnswered("the person declined to answer", hint="go on without")
        if current is None or current.status != "answered":
            raise NobodyAnswered("nobody answered the question", hint="go on without, or say what is missing")
        return current.answer

    async def _look(self, bell: asyncio.Event) -> None:
        """Rings for answers that were given in other processes: one look serves all who wait here."""
        now = asyncio.get_running_loop().time()
        if bell.is_set() or now < self._next_look:
            return
        self._next_look = now + _LOOK_EVERY
        for settled in await self._rows.settled_questions([*self._bells]):
            self.tell_answered(settled)

    def tell_answered(self, question: str) -> None:
        """The answer is written: whoever waits for it in this process goes on at once."""
        if bell := self._bells.get(question):
            bell.set()
