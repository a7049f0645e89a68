"""What to do next in a turn: call tools, ask for what is missing, or say what came of it.

Nothing is remembered between requests: the steps are read out of the message again each time, and calls
that the turn holds already are the steps that are done. So a resumed turn goes on where it stopped.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any, cast

from dragoman.agents.offline import answers
from dragoman.agents.offline.choosing import chosen
from dragoman.agents.offline.clauses import clauses_of
from dragoman.agents.offline.draft import Draft, Filled
from dragoman.agents.offline.filling import fill
from dragoman.agents.offline.grammar import PRONOUNS, opening
from dragoman.agents.offline.kinds import coerced
from dragoman.agents.offline.matching import Match
from dragoman.agents.offline.parameters import Parameter
from dragoman.agents.offline.plans import STATE, ToldTool, plan, told_tools
from dragoman.agents.offline.references import Reference
from dragoman.agents.offline.results import Reading, read
from dragoman.agents.offline.sentence import Sentence
from dragoman.agents.offline.tools import Candidate, Definition, Reader
from dragoman.agents.offline.turn import Done, Turn

MOST_CALLS = 6
ASK = "ask_person"
THROUGH = "call_tool"
_SCHEMAS = ("input_schema", "inputSchema", "parameters", "parameters_json_schema", "schema")


@dataclass(frozen=True, slots=True)
class Call:
    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Decision:
    """Either calls, which are independent of each other, or a text that ends the turn."""

    calls: tuple[Call, ...] = ()
    text: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    clause: str
    match: Match | None


@dataclass(slots=True)
class Progress:
    """How far a turn has come: calls that no step has claimed yet, and what the others brought."""

    left: list[Done]
    told: list[answers.Told] = field(default_factory=list[answers.Told])
    unmatched: list[str] = field(default_factory=list[str])

    def claim(self, is_mine: Callable[[Done], bool]) -> list[Done]:
        mine = [one for one in self.left if is_mine(one)]
        self.left = [one for one in self.left if one not in mine]
        return mine

    @property
    def readings(self) -> list[Reading]:
        return [one.reading for one in self.told]


class Decider:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def decide(self, turn: Turn, tools: Sequence[Definition], today: date) -> Decision:
        offered = {tool.name: tool for tool in tools}
        if STATE in offered and offered.keys() <= {STATE, ASK}:
            return self._plan(turn, today)
        candidates = self._reader.candidates(tools, turn.instructions)
        candidates += self._found(turn) if THROUGH in offered else []
        progress = Progress(list(turn.done))
        for step in self._steps(turn, candidates, today):
            decision = self._next(step, turn, progress, offered, today)
            if decision is not None:
                return decision if len(turn.done) < MOST_CALLS else self._end(turn, progress, candidates)
            if progress.told and progress.told[-1].reading.failed:
                break
        return self._end(turn, progress, candidates)

    def _plan(self, turn: Turn, today: date) -> Decision:
        candidates = self._reader.candidates(told_tools(turn.instructions), "")
        steps = [step.match.candidate for step in self._steps(turn, candidates, today) if step.match]
        if not steps:
            return Decision(text=answers.of_nothing(candidates, (), turn.text))
        if any(one.tool == STATE for one in turn.done):
            text = f"The plan: {', then '.join(f'`{one.title}`' for one in steps)}."
            return Decision(text=answers.noted(text, not turn.has_note))
        return Decision((Call(STATE, plan([one.name for one in steps])),))

    def _end(self, turn: Turn, progress: Progress, candidates: Sequence[Candidate]) -> Decision:
        aside = {ASK, *(one.name for one in candidates if one.finds_tools)}
        for one in progress.claim(lambda one: one.has_result and one.tool not in aside):
            progress.told.append(answers.Told(one.tool, read(one.content, one.outcome)))
        if progress.told:
            text = answers.of_results(progress.told, progress.unmatched)
            return Decision(text=answers.noted(text, not turn.has_note))
        listed = [str(next(iter(one.given.values()))) for one in candidates if one.given]
        return Decision(text=answers.of_nothing(candidates, list(dict.fromkeys(listed)), turn.text))

    def _steps(self, turn: Turn, candidates: Sequence[Candidate], today: date) -> list[Step]:
        text = turn.text
        if turn.before and not opening(text)[0]:
            text = turn.before
        if not text.strip() or not candidates:
            return []
        known = self._reader.listed(turn.instructions)

        def match_of(start: int, end: int) -> Match | None:
            return chosen(text[start:end], candidates, self._reader, known, today)

        pieces: list[tuple[int, int, Match | None]] = []
        for start, end in clauses_of(text):
            match = match_of(start, end)
            if pieces and self._continues(text[start:end], match, pieces[-1][2]):
                first = pieces.pop()
                start, match = first[0], match_of(first[0], end)
            pieces.append((start, end, match))
        return [Step(text[start:end].strip(), match) for start, end, match in pieces]

    def _continues(self, clause: str, match: Match | None, before: Match | None) -> bool:
        """Whether a piece is still about what the one before began, or means nothing alone."""
        if match is None or before is None:
            return True
        again = match.candidate is before.candidate
        return again and (bool(set(clause.lower().split()) & PRONOUNS) or match.candidate.given is not None)

    def _next(
        self, step: Step, turn: Turn, progress: Progress, offered: Mapping[str, Definition], today: date
    ) -> Decision | None:
        """What this step needs now; None when it is done, and its result is told."""
        if step.match is None:
            progress.unmatched.append(step.clause)
            return None
        tool = step.match.candidate
        draft = self._draft(tool, step.clause, turn, progress, today)
        filled = self._answered(draft, turn, progress)
        done = progress.claim(
            lambda one: (
                _is_call_of(one, tool, offered)
                and (not tool.finds_tools or one.arguments == filled.arguments)
            )
        )
        if done and any(one.has_result for one in done):
            if not tool.finds_tools:
                progress.told += [
                    answers.Told(tool.title, read(one.content, one.outcome)) for one in done if one.has_result
                ]
            else:
                progress.unmatched.append(step.clause)
            return None
        if filled.missing:
            return self._ask(tool, filled, turn, offered)
        return Decision(tuple(_call(tool, one, offered) for one in filled.all_arguments[:MOST_CALLS]))

    def _draft(self, tool: Candidate, clause: str, turn: Turn, progress: Progress, today: date) -> Draft:
        sentence = Sentence.of(clause)
        earlier = [read(one.content, one.outcome) for one in turn.earlier[-3:]]
        reference = Reference.find(sentence, [*earlier, *progress.readings])
        known = (*tool.listed, *self._reader.listed(turn.instructions))
        draft = Draft(tool, sentence, today, known, turn.text if tool.given else clause)
        fill(draft)
        if reference is not None:
            reference.complete(draft)
        return draft

    def _answered(self, draft: Draft, turn: Turn, progress: Progress) -> Filled:
        """With what the person answered to the question for it."""
        filled = draft.filled()
        if filled.missing and progress.left and progress.left[0].tool == ASK:
            asked = progress.left.pop(0)
            if asked.has_result and asked.outcome == "success":
                _take_answer(draft, filled.missing, asked.content)
        elif filled.missing and turn.before and not opening(turn.text)[0]:
            _take_answer(draft, filled.missing, turn.text)
        return draft.filled()

    def _ask(
        self, tool: Candidate, filled: Filled, turn: Turn, offered: Mapping[str, Definition]
    ) -> Decision:
        question = answers.question(tool, filled.missing)
        asker = offered.get(ASK)
        if asker is None or any(one.tool == ASK for one in turn.done):
            return Decision(text=answers.noted(question, not turn.has_note))
        arguments: dict[str, Any] = {"question": question}
        if "fields" in asker.parameters_json_schema.get("properties", {}):
            arguments["fields"] = [one.name for one in filled.missing]
        return Decision((Call(ASK, arguments),))

    def _found(self, turn: Turn) -> list[Candidate]:
        """The tools that searches of this turn described."""
        found: dict[str, Candidate] = {}
        for done in turn.done:
            for row in (read(done.content, done.outcome).rows or ()) if done.has_result else ():
                definition = _definition(row)
                if definition is not None:
                    found[definition.name] = self._reader.read(definition)
        return list(found.values())


def _definition(row: Any) -> ToldTool | None:
    if not isinstance(row, dict):
        return None
    table = cast("dict[str, Any]", row)
    schema = next((table[key] for key in _SCHEMAS if isinstance(table.get(key), dict)), None)
    name, description = table.get("name"), table.get("description")
    if not isinstance(name, str) or schema is None:
        return None
    return ToldTool(name, description if isinstance(description, str) else "", schema, table)


def _is_call_of(done: Done, tool: Candidate, offered: Mapping[str, Definition]) -> bool:
    if done.tool == THROUGH and tool.name not in offered:
        return tool.name in done.arguments.values()
    settled = all(done.arguments.get(name) == value for name, value in (tool.given or {}).items())
    return done.tool == tool.name and settled


def _call(tool: Candidate, arguments: Mapping[str, Any], offered: Mapping[str, Definition]) -> Call:
    if tool.name in offered:
        return Call(tool.name, arguments)
    named = {"name": tool.name, "arguments": dict(arguments)}
    properties = offered[THROUGH].parameters_json_schema.get("properties", {})
    for key, schema in cast("dict[str, Any]", properties).items():
        if isinstance(schema, dict) and key not in named:
            kind = cast("dict[str, Any]", schema).get("type")
            if kind == "object" and "arguments" not in properties:
                named[key] = named.pop("arguments")
            elif kind == "string" and "name" not in properties and "name" in named:
                named[key] = named.pop("name")
    return Call(THROUGH, named)


def _take_answer(draft: Draft, missing: Iterable[Parameter], content: Any) -> None:
    wanted = list(missing)
    reading = read(content)
    record = reading.record or {}
    tables = [cast("dict[str, Any]", value) for value in record.values() if isinstance(value, dict)]
    for one in wanted:
        value = record.get(one.name, next((table.get(one.name) for table in tables), None))
        form = coerced(one, str(value)) if isinstance(value, str | int | float) else value
        if form is not None:
            draft.found[one.path] = form
    texts = [str(value) for value in record.values() if isinstance(value, str | int | float)]
    text = reading.text or (texts[0] if texts else "")
    left = [one for one in wanted if one.path not in draft.found]
    if not left or not text.strip():
        return
    if len(left) == 1 and left[0].takes_text and not left[0].format:
        _give_whole(draft, left[0], text)
        return
    again = Draft(replace(draft.tool, parameters=tuple(left), given=None), Sentence.of(text), draft.today)
    fill(again)
    draft.found |= again.found
    if len(left) == 1 and left[0].path not in draft.found:
        _give_whole(draft, left[0], text)


def _give_whole(draft: Draft, parameter: Parameter, text: str) -> None:
    form = coerced(parameter, text.strip().strip("\"'“”"))
    if form is not None:
        draft.found[parameter.path] = form if {"string", "integer", "number"} & parameter.types else [form]
