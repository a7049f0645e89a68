"""A model that says and does what a test tells it, word by word, when the test wants it."""

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelRequest, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

from dragoman import Hub
from dragoman.agents.fences import unfenced


@dataclass
class Speaker:
    """Asked for `word…`, it says what is put into `words` until a None; asked for `call NAME JSON`, it calls.

    After a call it says what the call brought. Anything else it says back.
    """

    words: asyncio.Queue[str | None] = field(default_factory=lambda: asyncio.Queue[str | None]())

    def install(self, hub: Hub) -> None:
        hub.models.register("speaker", FunctionModel(stream_function=self._speak))

    def say(self, *words: str) -> None:
        for word in words:
            self.words.put_nowait(word)

    def end(self) -> None:
        self.words.put_nowait(None)

    async def _speak(
        self, messages: list[ModelMessage], info: AgentInfo
    ) -> AsyncIterator[str | DeltaToolCalls]:
        last = messages[-1]
        parts: list[Any] = [*last.parts] if isinstance(last, ModelRequest) else []
        returned = [part for part in parts if isinstance(part, ToolReturnPart)]
        prompts = [str(part.content) for part in parts if isinstance(part, UserPromptPart)]
        prompt = prompts[-1] if prompts else ""  # one that was stopped is there still
        prompt = re.sub(r"^@[\w-]+ ", "", prompt)
        if returned:
            brought = returned[0].content
            if isinstance(
                brought, dict
            ):  # what a tool brought has its source beside it, an agent's answer not
                brought = brought.get("result", brought)
            yield f"It brought: {unfenced(str(brought))}"
        elif prompt.startswith("word"):
            while (word := await self.words.get()) is not None:
                yield word
        elif prompt.startswith("call "):
            _, name, arguments = prompt.split(" ", 2)
            yield "I will **look**."
            yield {1: DeltaToolCall(name=name, json_args=arguments, tool_call_id="c1")}
        else:
            yield f"You said: {prompt}"
