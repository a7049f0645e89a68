"""What a tool returned, read without knowing the tool: rows, single records, texts, errors, markers.

Pure. Which fields tell most is judged by their values: short, filled, different from row to row.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import orjson

from dragoman.agents.offline.grammar import word_set

Row = Mapping[str, Any]
_SOURCE = re.compile(r"c\d{1,4}")
_MARKER = re.compile(r"\[c\d{1,4}\]")
_WRAPPERS = ("result", "results", "data", "output", "value", "answer", "content", "response")
_BAD = frozenset({"error", "failed", "failure"})
_LEADING = word_set("title name label heading headline summary text topic")
_DULL = word_set("id uuid key hash etag uri url href link cursor token version")
_LONG = 100


@dataclass(frozen=True, slots=True)
class Reading:
    """One result. Exactly one of `rows`, `record` and `text` holds it; `error` is set where it failed."""

    rows: tuple[Any, ...] | None = None
    record: Row | None = None
    text: str = ""
    error: str = ""
    hint: str = ""
    markers: tuple[str, ...] = ()
    noun: str = ""
    has_more: bool = False

    @property
    def failed(self) -> bool:
        return bool(self.error)


def read(content: Any, outcome: str = "success") -> Reading:
    value = _plain(content)
    value, sources = _sourced(value)
    markers = tuple(dict.fromkeys([*sources, *_MARKER.findall(_dumped(value))]))
    message, hint = _error_in(value)
    if outcome != "success" or message:
        return Reading(
            error=message or _short(_text_of(value)) or f"the call was {outcome}", hint=hint, markers=markers
        )
    value, noun, has_more = _unwrapped(value)
    if isinstance(value, list):
        return Reading(rows=tuple(cast("list[Any]", value)), markers=markers, noun=noun, has_more=has_more)
    if isinstance(value, dict):
        return Reading(record=cast("Row", value), markers=markers)
    return Reading(text=_text_of(value), markers=markers)


def _sourced(value: Any) -> tuple[Any, list[str]]:
    """A result that comes with the names of its sources, without them; and those, as markers."""
    if not isinstance(value, dict) or "result" not in value:
        return cast("Any", value), []
    table = cast("dict[str, Any]", value)
    if table.keys() - {"result", "source", "sources"}:
        return table, []
    sources = table.get("sources")
    listed = cast("list[Any]", sources) if isinstance(sources, list) else []
    names = [table.get("source"), *(cast("Any", one).get("id") for one in listed if isinstance(one, dict))]
    found = [f"[{name}]" for name in names if isinstance(name, str) and _SOURCE.fullmatch(name)]
    return (_plain(table["result"]), found) if found else (table, [])


def _plain(content: Any) -> Any:
    """Values of JSON only; text that is JSON is opened."""
    if isinstance(content, str):
        text = content.strip()
        if text[:1] in ("{", "[") and len(text) < 1_000_000:
            try:
                return orjson.loads(text)
            except orjson.JSONDecodeError:
                return content
        return content
    if content is None or isinstance(content, bool | int | float):
        return content
    try:
        return orjson.loads(orjson.dumps(content, default=_exported, option=orjson.OPT_NON_STR_KEYS))
    except (TypeError, orjson.JSONDecodeError):
        return str(content)


def _exported(value: Any) -> Any:
    dump = getattr(value, "model_dump", None)
    return dump(mode="json") if callable(dump) else str(value)


def _error_in(value: Any) -> tuple[str, str]:
    if not isinstance(value, dict):
        return "", ""
    table = cast("dict[str, Any]", value)
    error = table.get("error")
    is_bad = table.get("ok") is False or table.get("isError") is True or table.get("status") in _BAD
    if not is_bad and not (error and len(table) <= 3):
        return "", ""
    facts = cast("dict[str, Any]", error) if isinstance(error, dict) else table
    message = facts.get("message") or facts.get("detail") or facts.get("code")
    message = message or (error if isinstance(error, str) else "") or table.get("data")
    hint = facts.get("hint") or table.get("hint")
    return _short(str(message or "the call failed")), hint if isinstance(hint, str) else ""


def _unwrapped(value: Any, depth: int = 0) -> tuple[Any, str, bool]:
    """Out of the wrapping that results come in: `{"result": …}`, one list beside counts."""
    if not isinstance(value, dict) or depth > 4:
        return cast("Any", value), "", False
    table = cast("dict[str, Any]", value)
    lists = [key for key, inner in table.items() if isinstance(inner, list)]
    others = [inner for key, inner in table.items() if key not in lists]
    if len(lists) == 1 and all(not isinstance(inner, dict) for inner in others) and not _speaks(table):
        more = any(
            inner is True for key, inner in table.items() if "more" in key.lower() or "next" in key.lower()
        )
        return table[lists[0]], "" if lists[0] in _WRAPPERS else lists[0], more
    for key in _WRAPPERS:
        beside = table.keys() - {
            key,
            "status",
            "ok",
            "metadata",
            "meta",
            "markers",
            "sources",
            "source",
            "agent",
        }
        if key in table and not beside:
            return _unwrapped(_plain(table[key]), depth + 1)
    return table, "", False


def _speaks(table: Row) -> bool:
    """A record that has a list beside texts of its own is a record."""
    texts = sum(1 for value in table.values() if isinstance(value, str) and len(value) > 2)
    lists = [cast("list[Any]", value) for value in table.values() if isinstance(value, list)]
    has_rows = any(isinstance(one, dict) for value in lists for one in value)
    return texts > (1 if has_rows else 0)


def columns(rows: Sequence[Row], most: int = 4) -> list[str]:
    """The fields that tell most, the leading one first."""
    scores: dict[str, float] = {}
    names = list(dict.fromkeys(key for row in rows for key in row))
    for place, name in enumerate(names):
        values = [row.get(name) for row in rows]
        said = [shown(value) for value in values if shown(value)]
        if not said:
            continue
        words = set(re.findall(r"[a-z]+", name.lower()))
        length = sum(len(value) for value in values if isinstance(value, str)) / len(said)
        score = len(said) / len(rows) + len(set(said)) / len(said) - place * 0.02
        score -= 1.2 if words & _DULL else 0.0
        score += 1.0 if words & _LEADING else 0.0
        score -= 1.2 if length > _LONG else 0.0
        score -= 0.6 if all(isinstance(value, bool) for value in values if value is not None) else 0.0
        score += 0.5 if _is_telling(said) else 0.0
        scores[name] = score
    best = sorted(scores, key=lambda name: -scores[name])[:most]
    return best[:1] + sorted((name for name in best[1:] if scores[name] >= 1.0), key=names.index)


def _is_telling(said: Sequence[str]) -> bool:
    """Words with spaces, neither a code nor a paragraph."""
    return sum(1 for text in said if " " in text.strip() and 4 <= len(text) < _LONG) > len(said) / 2


def shown(value: Any, most: int = _LONG) -> str:
    if value is None or value == "" or value == [] or value == {}:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        items = [shown(one, 40) for one in cast("list[Any]", value)[:5]]
        return _short(", ".join(item for item in items if item), most)
    if isinstance(value, dict):
        table = cast("dict[str, Any]", value)
        known = [
            table[key] for key in table if key.lower() in _LEADING | {"login"} and isinstance(table[key], str)
        ]
        return _short(str(known[0]), most) if known else ""
    return _short(str(value), most)


def _text_of(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value.strip()
    return _dumped(value) if isinstance(value, dict | list) else shown(value)


def _dumped(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return orjson.dumps(value, default=str).decode()
    except (TypeError, ValueError):
        return str(value)


def _short(text: str, most: int = 400) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"
