"""The loop of one agent: pydantic-ai runs it, and each step is journaled before the next begins.

A model that fails, keeps silent or breaks off is left for the next one, which goes on where the journal ends:
that is what a restart does, too.
"""

import asyncio
from collections.abc import AsyncIterable, Sequence
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

from pydantic_ai import Agent as LoopAgent
from pydantic_ai import RunContext
from pydantic_ai.capabilities import ToolSearch
from pydantic_ai.exceptions import ModelAPIError
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
)
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.tools import AgentNativeTool
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
from pydantic_ai.usage import UsageLimits

from dragoman.agents.composition import ComposedAgent
from dragoman.agents.fences import fenced
from dragoman.agents.history import budget_for, size_of
from dragoman.agents.provider_errors import broken_off, explained, stalled
from dragoman.agents.work_context import WorkContext
from dragoman.errors import AnswerCut, ContextTooLong, DragomanError, ModelFault
from dragoman.run import ATTACHMENTS
from dragoman.runs.attachments import attached_to, with_attached, without_attached
from dragoman.runs.journal_record import GO_ON, SAVED, written_messages
from dragoman.runs.journaled_tools import JournaledTools
from dragoman.runs.thread_history import ThreadHistory

if TYPE_CHECKING:
    from pydantic_ai.models import Model

    from dragoman.runs.execution import RunExecution

_TRIMMED = 4  # of what came before, one part of so many is kept when it was too long


_SAY_WHY = ("anthropic", "openai")  # whose streams say why they end
_UNLIMITED = UsageLimits(request_limit=None)


class RunTools(AbstractToolset[JournaledTools]):
    """Stands in an agent of all runs for the tools of each."""

    @property
    def id(self) -> str | None:
        return None

    async def for_run(self, ctx: RunContext[JournaledTools]) -> AbstractToolset[JournaledTools]:
        return ctx.deps

    async def get_tools(self, ctx: RunContext[JournaledTools]) -> dict[str, ToolsetTool[JournaledTools]]:
        return await ctx.deps.get_tools(ctx)

    async def call_tool(
        self,
        name: str,
        tool_args: dict[str, Any],
        ctx: RunContext[JournaledTools],
        tool: ToolsetTool[JournaledTools],
    ) -> Any:
        return await ctx.deps.call_tool(name, tool_args, ctx, tool)


class _OnlyRunTools(ToolSearch[JournaledTools]):
    """The tools of a run and nothing beside them, in place of what every agent of pydantic-ai has: tools that
    are hidden until they are searched for, for which each step reads the whole history, and toolsets of which
    it asks each in a task of its own.
    """

    def get_native_tools(self) -> Sequence[AgentNativeTool[JournaledTools]]:
        return ()

    def get_wrapper_toolset(
        self, toolset: AbstractToolset[JournaledTools]
    ) -> AbstractToolset[JournaledTools]:
        return RunTools()

    async def before_model_request(
        self, ctx: RunContext[JournaledTools], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        return request_context


# Made once: to put it together takes longer than some runs take beside it.
AGENT = LoopAgent(deps_type=JournaledTools, retries=2, capabilities=[_OnlyRunTools()])


class AgentLoop:
    def __init__(self, execution: "RunExecution", work: WorkContext) -> None:
        self._execution = execution
        self._work = work
        self._record = execution.record
        self._parts = execution.parts
        self._written = 0  # messages that this loop has put into the journal
        self._model = ""  # the one that is asked now
        self._instructions = ""

    async def answer(self) -> str:
        if self._execution.is_resumed:
            self._take_up()
        began = perf_counter()
        composed = await self._parts.composer.compose(self._work)
        self._parts.readied.add(perf_counter() - began)
        names = ",".join(composed.choice.names)
        self._execution.learned(model=names, exposure=composed.exposure, arm=composed.arm)
        performance = JournaledTools(
            self._execution.run,
            self._work,
            composed.sources,
            self._record,
            self._execution.family,
            self._parts.journal,
            self._parts.previews,
            self._execution,
            composed.why,
        )
        return await self._run(composed, performance)

    def _take_up(self) -> None:
        """Resumes a run: events of an unfinished answer are void, tools that were found are loaded again."""
        self._work.loaded.update(dict.fromkeys(self._record.offered))
        self._execution.tell("text.discarded", {"turn": self._record.turn + 1})

    async def _run(self, composed: ComposedAgent, performance: JournaledTools) -> str:
        self._instructions = composed.instructions
        models = dict(zip(composed.choice.names, composed.models, strict=True))
        summarizer = None if composed.choice.is_offline else composed.models[0]
        thread = ThreadHistory(self._execution, self._work, summarizer)
        before = await thread.read(budget_for([*models], self._parts.history_budget))
        sent = {"instructions": composed.instructions, "earlier": len(before)}
        self._parts.journal.note(self._execution.step("prompt", content=sent))
        if composed.choice.is_offline and self._execution.run.options.get(ATTACHMENTS):
            text = "the offline model reads no files: what is attached is not used"
            self._execution.tell("notice", {"text": text, "code": None})
        faults: list[DragomanError] = []
        for self._model, model in models.items():
            if faults:
                self._leave_model(faults[-1], performance)
            try:
                return await self._whole(model, performance, before)
            except AnswerCut:
                raise
            except (ModelAPIError, ModelFault) as error:
                faults.append(explained(error, self._model))
        fault = explained(ExceptionGroup("no model answered", faults), "")
        if not before or not isinstance(fault, ContextTooLong):
            raise fault
        # Once more with less of what came before: this run's own steps are in the journal, and go on.
        self._model, model = next(iter(models.items()))
        less = await thread.read(size_of(before) // _TRIMMED)
        return await self._whole(model, performance, less)

    def _leave_model(self, why: DragomanError, performance: JournaledTools) -> None:
        """What it had said of this answer does not count; the next goes on where the journal ends."""
        self._execution.tell("text.discarded", {"turn": self._record.turn + 1})
        text = f"{why.message}; {self._model} is asked instead"
        self._execution.tell("notice", {"text": text, "code": why.code})
        performance.take_up()

    async def _whole(
        self,
        model: "Model",
        performance: JournaledTools,
        before: Sequence[ModelMessage],
    ) -> str:
        """The answer. One that is cut by its length is continued once; what is cut all the same says so."""
        answer = self._record.answered and self._record.answered.text  # it came before an interruption
        answer = answer or await self._converse(model, performance, before)
        if self._record.cut == "length" and not self._record.continued:
            text = f"the answer is longer than {self._model} may write at once: it is asked to go on"
            self._execution.tell("notice", {"text": text, "code": AnswerCut.code})
            answer = await self._converse(model, performance, before, GO_ON)
        answer = self._record.continued + answer
        match self._record.cut:
            case "length":
                raise AnswerCut(
                    f"the answer is cut here: it is longer than {self._model} may write",
                    answer=answer,
                    hint='write "continue", or ask for less at once',
                )
            case "content_filter":
                raise AnswerCut(
                    f"the answer is cut here: the provider's content filter stopped {self._model}",
                    answer=answer,
                    hint="say it in other words, or choose another model",
                )
            case _:
                return answer

    async def _converse(
        self,
        model: "Model",
        performance: JournaledTools,
        before: Sequence[ModelMessage],
        prompt: str | None = None,
    ) -> str:
        self._written = 0
        attached = await attached_to(self._execution.run, self._execution)
        words = prompt or (None if self._record.messages else self._prompt())
        async with AGENT.iter(
            [words, *attached] if words and attached and not prompt else words,
            model=model,
            message_history=[*before, *with_attached(self._record.messages, attached)],
            instructions=self._instructions,
            deps=performance,
            usage_limits=_UNLIMITED,
            model_settings={"first_event_timeout": self._parts.first_token},
            infer_name=False,
        ) as running:
            async for node in running:
                if LoopAgent.is_model_request_node(node):
                    self._execution.family.check_request()
                    await self._execution.look_again(self._work)
                    name = self._model
                    with self._parts.spans.within("chat", name, gen_ai__request__model=name):
                        async with node.stream(running.ctx) as stream:
                            await self._listen(stream, performance.turn + 1)
                elif LoopAgent.is_call_tools_node(node):
                    await self._execution.look_again(self._work)
                    self._check_whole(node.model_response)
                    _tell_apart(node.model_response)
                    _note_saved(node.model_response, sum(self._work.hidden.values()))
                    self._heard(running.new_messages())
                    performance.turn = self._record.turn
        result = running.result
        return result.output if result is not None else ""

    def _check_whole(self, response: ModelResponse) -> None:
        """A stream that says nowhere why it ends was broken on its way; of chats pydantic-ai says so.

        A reason that pydantic-ai has no word for is one.
        """
        said = "finish_reason" in (response.provider_details or {})
        if response.finish_reason is None and not said and response.provider_name in _SAY_WHY:
            raise broken_off(self._model)

    async def _listen(self, stream: AsyncIterable[Any], turn: int) -> None:
        """Hears an answer. Until its first event pydantic-ai itself counts the time."""
        loop, clock, patience = asyncio.get_running_loop(), asyncio.timeout(None), self._parts.stall
        try:
            async with clock:
                async for event in stream:
                    clock.reschedule(loop.time() + patience)
                    self._hear(event, turn)
        except TimeoutError:
            if not clock.expired():
                raise
            said = f"stopped in the middle of its answer, and said nothing more for {patience:g} s"
            raise stalled(self._model, said, "MODEL_STALL") from None

    def _prompt(self) -> str:
        context = self._execution.run.options.get("context")
        request = self._execution.run.request
        return f"{request}\n\nContext:\n{fenced(context)}" if context else request

    def _hear(self, event: Any, turn: int) -> None:
        delta = ""
        if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
            delta = event.part.content
        elif isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
            delta = event.delta.content_delta
        if delta:
            self._execution.tell("text", {"delta": delta, "turn": turn})

    def _heard(self, messages: Sequence[ModelMessage]) -> None:
        """Journals a complete answer of the model before any of its calls is made."""
        new = [_lean(message) for message in messages[self._written :]]
        self._written = len(messages)
        if not new:
            return
        self._record.messages += new
        for message in new:
            if isinstance(message, ModelResponse):
                self._execution.count(message)
        turn = str(self._record.turn)
        self._parts.journal.note(self._execution.step("messages", turn, written_messages(new)))


def _note_saved(response: ModelResponse, tokens: int) -> None:
    """Definitions that its request did not have to send."""
    if tokens > 0:
        response.metadata = {**(response.metadata or {}), SAVED: tokens}


def _tell_apart(response: ModelResponse) -> None:
    """Calls are journaled by their ids: some models give the same to several, or none."""
    known: set[str] = set()
    for call in response.tool_calls:
        if not call.tool_call_id or call.tool_call_id in known:
            call.tool_call_id = f"{call.tool_call_id or 'call'}_{len(known) + 1}"
        known.add(call.tool_call_id)


def _lean(message: ModelMessage) -> ModelMessage:
    """Without what is made anew for every request: the instructions, and files of the message."""
    if isinstance(message, ModelRequest):
        return replace(without_attached(message), instructions=None)
    return message
