"""What the offline model does next: call a tool, let the person choose among three, or say what came of it.

Search ranks the tools; one is called without asking only when it reads, is clearly first and has all that it
needs. Nothing is remembered between requests: a resumed turn is read again and goes on where it stopped.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, cast

from dragoman.agents.model_errors import split_next
from dragoman.agents.offline.sentence import REQUESTS, Filled, Filling, is_filler, parameters_of, tokens_of
from dragoman.catalog.search.hybrid import ranked_by_meaning
from dragoman.catalog.search.index import SearchIndex
from dragoman.catalog.search.meaning import RowMeanings
from dragoman.catalog.search.query import SearchQuery
from dragoman.catalog.search.vectors import WordVectors
from dragoman.catalog.search.words import name_key, parts, stem
from dragoman.scope import Caller
from dragoman.tool import Tool

NOTE = "This is basic matching by the built-in `offline` model, not a language model."
SET_ONE = (
    "For a language model, set OPENAI_API_KEY or ANTHROPIC_API_KEY, or start Ollama; see the list of models."
)
ASK, SEARCH, STATE = "ask_person", "search_tools", "state_plan"
NONE = "none"
_SHOWN, _RANKED, _ROWS = 3, 12, 20
_AHEAD = 0.15  # so much the first must be ahead of the second
_LONGEST = 2_000  # characters that search reads
_NAMES = ("title", "name", "full_name", "login", "id")


class Done(NamedTuple):
    """One call that has come to its end."""

    tool: str
    content: Any
    outcome: str = "success"


class Turn(NamedTuple):
    """`done` are the calls since it was asked, `earlier` those before. `unread` is what nobody matched."""

    text: str = ""
    unread: str = ""
    done: Sequence[Done] = ()
    earlier: Sequence[Done] = ()
    is_first: bool = True


class Decision(NamedTuple):
    """The tool to call with its arguments, or a text that ends the turn."""

    tool: str = ""
    arguments: Mapping[str, Any] = {}
    text: str = ""


class Match(NamedTuple):
    tool: Tool
    score: float
    filled: Filled


class Decider:
    """Keeps the index of the tools that were ranked last. Not for two threads at once."""

    def __init__(self, words: WordVectors) -> None:
        self._words = words
        self._meanings = RowMeanings(words)
        self._index = SearchIndex(self._meanings)
        self._tools: Sequence[Tool] = ()

    def decide(self, turn: Turn, offered: Mapping[str, Any]) -> Decision:
        """`offered` are pydantic-ai's definitions by name, with the metadata of the offers."""
        decision = self._decided(turn, offered)
        for name, one in offered.items():  # an action of a function is ranked like a tool, and called by it
            actions = cast("Sequence[Tool]", _table(one.metadata).get("actions", ()))
            if decision.tool in {action.name for action in actions}:
                return decision._replace(
                    tool=name, arguments={"action": decision.tool, "arguments": decision.arguments}
                )
        return decision

    def _decided(self, turn: Turn, offered: Mapping[str, Any]) -> Decision:
        if STATE in offered and offered.keys() <= {STATE, ASK}:
            return self._planned(turn, offered[STATE].metadata["tools"])
        metadata: list[Mapping[str, Any]] = [one.metadata or {} for one in offered.values()]
        tools: list[Tool] = [facts["tool"] for facts in metadata if "tool" in facts]
        tools += [action for facts in metadata for action in facts.get("actions", ())]
        known = _known([facts.get("known") for facts in metadata], tools, turn)
        results = [one for one in turn.done if one.tool not in (ASK, SEARCH)]
        answer = next((one for one in turn.done if one.tool == ASK), None)
        if results:
            mine = [one for one in tools if one.name == results[0].tool]
            told = [shown(mine[0].title if mine else one.tool, one.content, one.outcome) for one in results]
            if mine and answer is None:  # else the person saw in the form what was used
                told[:0] = _not_used(_match(turn.text, mine[0], 1.0, known).filled)
            unread = f"Not read: {_short(turn.unread, 100)}" if turn.unread else ""
            return Decision(text=_joined(*told, unread, f"_{NOTE}_" if turn.is_first else ""))
        if answer is not None:  # exactly the call that the person chose
            chosen = _table(answer.content)
            text = "" if chosen else f"Nothing was called: {answer.content}."
            return Decision(chosen.get("tool", ""), chosen.get("arguments", {}), text)
        if SEARCH in offered and turn.text and not any(one.tool == SEARCH for one in turn.done):
            return Decision(SEARCH, {"query": turn.text[:_LONGEST]})
        matches = self.matches(turn.text, tools, known)
        if not matches:
            return Decision(text=self._introduction(turn.text, tools))
        if is_clear(matches):
            return Decision(matches[0].tool.name, matches[0].filled.arguments)
        return _choice(matches)

    def matches(self, text: str, tools: Sequence[Tool], known: Mapping[str, set[str]]) -> list[Match]:
        """The best three, as search ranks them and for what they can use of the sentence; the best first."""
        key = name_key(text)
        found = [(one, 1.0) for one in tools if key and key in (name_key(one.title), name_key(one.name))]
        if not found and text:
            if tools != self._tools:
                self._meanings, self._tools = RowMeanings(self._words), [*tools]
                self._index = SearchIndex(self._meanings)
                self._index.follow({("", ""): tuple(tools)})
            view = self._index.view([("", "")], Caller())
            question = SearchQuery(text[:_LONGEST], limit=_RANKED)
            hits = ranked_by_meaning(self._index, self._meanings, view, question) if len(view) else []
            found = [(tools[place], score) for place, score in hits]
        matches = [_match(text, tool, score, known) for tool, score in found]
        return sorted(matches, key=lambda one: -one.score)[:_SHOWN]

    def _introduction(self, text: str, tools: Sequence[Tool]) -> str:
        """What is connected, and three sentences that were tried on the tools: they are called at once."""
        lines: list[str] = []
        working: list[tuple[int, str]] = []  # the first of each connector come first
        for slug in dict.fromkeys(one.slug for one in tools if one.slug):
            titles = [one.title for one in tools if one.slug == slug]
            lines.append(f"- **{slug}**: {', '.join(titles[:8])}")
            clear = [one.lower() for one in titles if is_clear(self.matches(one.lower(), tools, {}))]
            working += enumerate(clear)
        tried = [f"- {sentence}" for _, sentence in sorted(working)[:_SHOWN]]
        is_small_talk = all(is_filler(one) or one.word in ("how", "help") for one in tokens_of(text))
        return _joined(
            "" if is_small_talk else f"I found no tool for this. Not used: {' '.join(text.split())[:300]}",
            f"{NOTE} It finds tools by words, calls what only reads, and shows a form for the rest.",
            "\n".join(["Connected:", *lines]) if lines else "Nothing is connected: add a connector first.",
            "\n".join(["Try:", *tried]) if tried else "",
            SET_ONE,
        )

    def _planned(self, turn: Turn, tools: Sequence[Tool]) -> Decision:
        matches = self.matches(turn.text, tools, {})
        if not matches:
            return Decision(text=self._introduction(turn.text, tools))
        tool, _, filled = matches[0]
        if not any(one.tool == STATE for one in turn.done):
            return Decision(STATE, {"steps": [{"tool": tool.name, "reason": "it ranks first"}]})
        how = "it is called" if is_clear(matches) else "you are asked first, with a form"
        plan = f"The plan: `{tool.title}` with {json.dumps(filled.arguments)}; {how}."
        return Decision(text=_joined(plan, *_not_used(filled), f"_{NOTE}_"))


def is_clear(matches: Sequence[Match]) -> bool:
    """Whether the first may be called without asking."""
    if not matches or (len(matches) > 1 and matches[0].score - matches[1].score < _AHEAD):
        return False
    tool, _, filled = matches[0]
    return tool.definition.annotations.read_only is True and filled.is_safe and not filled.missing


def _match(text: str, tool: Tool, score: float, known: Mapping[str, set[str]]) -> Match:
    about, tokens = tool.definition, tokens_of(text)
    named = {stem(word) for word in parts(f"{tool.original_name} {tool.title}")}
    stems = named | {stem(word) for word in parts(f"{tool.name} {about.description}")}
    filled = Filling(text, parameters_of(about.input_schema, known), stems).filled()
    score = score * (0.5 + filled.share / 2) - 0.15 * min(2, len(filled.missing))
    # What is to be done stands first: "create an issue titled …" is no matter of agents.
    head = [{stem(part) for part in parts(one.text)} & named for one in tokens if not is_filler(one)][:2]
    score += 0.3 if len(head) == 2 and all(head) else 0.0
    asks = tokens and (tokens[0].word in REQUESTS or is_filler(tokens[0]))
    return Match(tool, score - (0.2 if asks and about.annotations.read_only is not True else 0.0), filled)


def _choice(matches: Sequence[Match]) -> Decision:
    """A question with a form for each tool, holding what could be filled in; other words answer it, too."""
    forms: list[dict[str, Any]] = []
    for tool, _, filled in matches:
        effect = "only reads" if tool.definition.annotations.read_only else "may change something"
        # Under an `$id` of its own, references in the tool's schema mean the same as in the tool.
        own = {"type": "object", **tool.definition.input_schema, "$id": f"urn:choice:{len(forms)}"}
        parts_ = {"tool": {"const": tool.name}, "arguments": {**own, "default": filled.arguments}}
        about = " · ".join(filter(None, [tool.slug, effect, *_not_used(filled)]))
        form = {"title": tool.title, "description": about, "type": "object"}
        forms.append({**form, "properties": parts_, "required": [*parts_]})
    question = _joined("Which of these should be called?", *_not_used(*(one.filled for one in matches)))
    other = {"type": "string", "title": f"Other words, or {NONE}"}
    return Decision(ASK, {"question": question, "fields": {"oneOf": [*forms, other]}})


def _known(things: Sequence[Any], tools: Sequence[Tool], turn: Turn) -> dict[str, set[str]]:
    """Names of things that exist, by the stem of what they are: from offers, and from earlier results."""
    known: dict[str, set[str]] = {"connector": {one.slug for one in tools if one.slug}}
    for table in [*things, *(_opened(done.content)[0] for done in turn.earlier)]:
        for kind, rows in _table(table).items():
            for row in cast("list[Any]", rows) if isinstance(rows, list) else ():
                named = [row, *(_table(row).get(name) for name in _NAMES)]
                known.setdefault(stem(kind), set()).update(one for one in named if isinstance(one, str))
    return known


def shown(title: str, content: Any, outcome: str) -> str:
    """A result as Markdown, without knowing the tool. Marks of its sources stay: `[c1]`."""
    value, cited = _opened(content)
    table = _table(value)
    if outcome != "success":
        return f"`{title}` did not work: {split_next(str(value))[0]}"
    # Beside rows stand figures ("2 of 2"), beside the facts of one thing lists that belong to it.
    is_record = any(isinstance(one, Mapping) or _is_words(one) for one in table.values())
    noun = next((name for name, one in table.items() if isinstance(one, list) and not is_record), "results")
    rows = table.get(noun, value)
    if isinstance(rows, list):
        lines = [f"- {_line(row)}" for row in cast("list[Any]", rows)]
        more = ", and there are more" if table.get("more") is True or len(lines) > _ROWS else ""
        return "\n".join([f"{len(lines)} {noun.replace('_', ' ')}{more}:{cited}", *lines[:_ROWS]])
    if told := [f"- {name}: {text}" for name, one in table.items() if (text := _short(one, 400))]:
        return "\n".join([f"`{title}` is done:{cited}", *told])
    text = str(value or "").replace(f"_{NOTE}_", "").strip()[:4_000]
    return (text or f"`{title}` is done; it returned nothing.") + cited


def _opened(content: Any) -> tuple[Any, str]:
    """A result out of its wrapping, and the marks of its sources."""
    if isinstance(content, str) and content[:1] in ("{", "["):
        with suppress(ValueError):
            content = json.loads(content)
    table = _table(content)
    sources = table.get("sources") or ([{"id": table["source"]}] if "source" in table else [])
    return table["result"] if sources else content, "".join(f" [{one['id']}]" for one in sources)


def _line(row: Any) -> str:
    """The field that leads, and three others that are short."""
    cells = {name: text for name, one in _table(row).items() if (text := _short(one, 100))}
    leads = [name for name in _NAMES[:2] if name in cells] + [name for name in cells if " " in cells[name]]
    lead = next(iter([*leads, *cells]), "")
    rest = [text for name, text in cells.items() if name != lead and name not in _NAMES and len(text) < 60]
    return " · ".join([f"**{cells[lead]}**", *rest[:3]]) if lead else _short(row, 100)


def _short(value: Any, most: int) -> str:
    if isinstance(value, list):
        value = ", ".join(_short(one, 40) for one in cast("list[Any]", value)[:5])
    line = "" if value is None or isinstance(value, bool | Mapping) else " ".join(str(value).split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def _is_words(value: Any) -> bool:
    return isinstance(value, str) and not value[:1].isdigit()


def _table(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _not_used(*filled: Filled) -> list[str]:
    """The words that none of them uses."""
    common = [one for one in filled[0].unused if all(one in other.unused for other in filled)]
    return [f"Not used: {', '.join(common)}"] if common else []


def _joined(*pieces: str) -> str:
    return "\n\n".join(filter(None, pieces))
