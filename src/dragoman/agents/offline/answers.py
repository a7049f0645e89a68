"""What the offline model says: results made readable, errors with their hint, what it cannot do.

Templates only. It never passes for a language model: the note says so, once in a thread.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from dragoman.agents.offline.grammar import TEXT_NAMES
from dragoman.agents.offline.parameters import Parameter
from dragoman.agents.offline.results import Reading, Row, columns, shown
from dragoman.agents.offline.tools import Candidate

NOTE = "This is basic matching by the built-in `offline` model, not a language model."
ASKING = "I still need"
_MOST_ROWS = 20
_MOST_TEXT = 4_000
_MOST_NAMES = 12


@dataclass(frozen=True, slots=True)
class Told:
    """One step that was done: which tool, and what came of it."""

    tool: str
    reading: Reading


def noted(text: str, is_new: bool) -> str:
    return f"{text}\n\n_{NOTE}_" if is_new else text


def of_results(steps: Sequence[Told], rest: Sequence[str] = ()) -> str:
    several = len(steps) > 1
    sections = [
        (f"**{step.tool}**\n" if several else "") + of_result(step.reading, step.tool) for step in steps
    ]
    sections += [f"I found no tool for: “{clause}”." for clause in rest]
    return "\n\n".join(section for section in sections if section)


def of_result(reading: Reading, tool: str) -> str:
    if reading.failed:
        hint = f"\n\nHint: {reading.hint}" if reading.hint else ""
        return f"`{tool}` did not work: {reading.error}{hint}"
    cited = "".join(f" {marker}" for marker in reading.markers)
    if reading.rows is not None:
        return _rows(reading, reading.rows, cited)
    if reading.record is not None:
        return _record(reading.record, tool) + cited
    text = reading.text.replace(f"_{NOTE}_", "").strip()[:_MOST_TEXT]
    missing = "".join(f" {marker}" for marker in reading.markers if marker not in text)
    return f"{text}{missing}" if text else f"`{tool}` is done; it returned nothing.{cited}"


def summary(reading: Reading) -> str:
    """The result as plain text, for another tool to carry."""
    plain = of_result(reading, "the tool").replace("**", "")
    for marker in reading.markers:
        plain = plain.replace(f" {marker}", "")
    return plain.strip()


def _rows(reading: Reading, rows: Sequence[Any], cited: str) -> str:
    noun = reading.noun.replace("_", " ") or ("result" if len(rows) == 1 else "results")
    if not rows:
        return f"No {noun if reading.noun else 'results'}.{cited}"
    more = ", and there are more" if reading.has_more else ""
    head = f"{len(rows)} {noun}{more}:{cited}"
    tables = [cast("Row", row) for row in rows if isinstance(row, dict)]
    names = columns(tables) if tables else []
    lines = [f"- {_line(row, names)}" for row in rows[:_MOST_ROWS]]
    if len(rows) > _MOST_ROWS:
        lines.append(f"- … and {len(rows) - _MOST_ROWS} more")
    return "\n".join([head, *lines])


def _line(row: Any, names: Sequence[str]) -> str:
    if not isinstance(row, dict):
        return shown(row) or "–"
    table = cast("Row", row)
    cells = [_cell(name, table.get(name)) for name in names]
    said = [cell for cell in cells if cell]
    return " · ".join([f"**{said[0]}**", *said[1:]]) if said else shown(str(table))


def _cell(name: str, value: Any) -> str:
    """Numbers and yes or no mean nothing without their name."""
    text = shown(value)
    return f"{name.replace('_', ' ')}: {text}" if text and isinstance(value, bool | int | float) else text


def _record(record: Row, tool: str) -> str:
    names = [name for name, value in record.items() if shown(value)]
    texts = [name for name in names if name.lower() in TEXT_NAMES and isinstance(record[name], str)]
    lines = [f"- {name.replace('_', ' ')}: {shown(record[name], 200)}" for name in names if name not in texts]
    for name in texts:
        lines.append(f"- {name.replace('_', ' ')}: {str(record[name])[:_MOST_TEXT]}")
    nested = [name for name in record if name not in names and record[name]]
    lines += [f"- {name.replace('_', ' ')}: {shown(str(record[name]), 200)}" for name in nested]
    return "\n".join([f"`{tool}` is done:", *lines[:40]]) if lines else f"`{tool}` is done."


def of_nothing(candidates: Sequence[Candidate], listed: Sequence[str], asked: str) -> str:
    """Nothing fits: what it is, what there is, and how to have more."""
    names = list(dict.fromkeys(one.title for one in candidates if one.given is None))
    lines = [
        "I found nothing among the available tools that fits this." if asked.strip() else "You wrote nothing."
    ]
    if listed:
        lines.append(f"Connectors: {_joined(listed)}.")
    if names:
        lines.append(f"Tools: {_joined(names)}.")
    elif not listed:
        lines.append("No tools are available here: add a connector first.")
    lines.append(
        "I am the built-in `offline` model: basic matching, not a language model. For one that "
        "understands more, set a key (`export OPENAI_API_KEY=…` or `export ANTHROPIC_API_KEY=…`) or start a "
        "local Ollama; `dragoman models` shows what was found."
    )
    return "\n\n".join(lines)


def _joined(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(f"`{name}`" for name in names[:_MOST_NAMES]) + more


def question(tool: Candidate, missing: Sequence[Parameter]) -> str:
    parts = [
        f"`{one.name}`"
        + (f" ({one.description.rstrip('.').split(chr(10))[0]})" if one.description else "")
        + (f", one of {', '.join(map(str, one.choices[:10]))}" if one.choices else "")
        for one in missing
    ]
    return f"{ASKING} {' and '.join(parts)} for `{tool.title}`. What should it be?"
