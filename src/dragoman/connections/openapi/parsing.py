"""From bytes to a document: JSON first, then YAML as it occurs in the wild, and which version it is.

Knows no network. YAML is read by the rules of 1.2: `on` and `no` are words, dates are text, keys are text.
"""

import json
import re
from dataclasses import dataclass
from typing import Any, Literal

import orjson

from dragoman.connections.openapi.untrusted_json import DocumentFault, Json, Object, is_list, is_object

Version = Literal["2.0", "3.0", "3.1"]
_MOST_YAML = 16 * 1024 * 1024
_MOST_NODES = 2_000_000
_MOST_NESTED = 400
_HTML = re.compile(rb"\s*(?:<\?xml[^>]*>\s*)?<(?:!doctype html|html|head|body)", re.IGNORECASE)
_HINT = "give the address of an OpenAPI 3.0, 3.1 or Swagger 2.0 document, in JSON or YAML"


@dataclass(frozen=True, slots=True)
class OpenApiDocument:
    """A parsed document. `version` is the family whose rules apply."""

    root: Object
    version: Version


def is_html(data: bytes) -> bool:
    return _HTML.match(data[:2000].removeprefix(b"\xef\xbb\xbf")) is not None


def parse(data: bytes) -> OpenApiDocument:
    """Raises `DocumentFault` that says what was found instead of a document."""
    if not data.strip():
        raise DocumentFault("the document is empty", _HINT)
    if is_html(data):
        raise DocumentFault("this is an HTML page, not an OpenAPI document", _HINT)
    value = _json_or_yaml(data)
    if not is_object(value):
        raise DocumentFault(f"the document is {_kind(value)}, not an object", _HINT)
    return OpenApiDocument(value, _version(value))


def _version(root: Object) -> Version:
    """Accepts versions written as numbers: YAML turns `openapi: 3.0` into one."""
    said = root.get("openapi", root.get("swagger"))
    if said is None:
        raise DocumentFault("the document says neither `openapi` nor `swagger`: it is no OpenAPI one", _HINT)
    text = str(said).strip()
    if "openapi" in root and re.match(r"3\.\d+", text):
        if not is_object(root.get("paths")) and not is_object(root.get("webhooks")):
            raise DocumentFault("the document has no `paths`: there is nothing to call", _HINT)
        return "3.0" if text.startswith("3.0") else "3.1"
    if "openapi" in root and text == "3":
        return "3.0"
    if "swagger" in root and re.match(r"2(\.0)*$", text):
        if not is_object(root.get("paths")):
            raise DocumentFault("the document has no `paths`: there is nothing to call", _HINT)
        return "2.0"
    word = "openapi" if "openapi" in root else "swagger"
    raise DocumentFault(f"the document says `{word}: {text[:40]}`, a version that is not known here", _HINT)


def _json_or_yaml(data: bytes) -> Json:
    try:
        return orjson.loads(data.removeprefix(b"\xef\xbb\xbf"))
    except orjson.JSONDecodeError as error:
        complaint = str(error)
    text = _decoded(data)
    if text.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(text, strict=False)  # control characters, NaN, lone surrogates
        except RecursionError:
            raise DocumentFault("the document is nested too deep to be read") from None
        except ValueError as error:
            complaint = str(error)
    return _yaml(text, complaint)


def _decoded(data: bytes) -> str:
    for encoding in ("utf-8-sig", "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8"):
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            continue
    return data.decode("latin-1")


def _yaml(text: str, complaint: str) -> Json:
    # Here and not above: most documents are JSON, and a megabyte of memory is left free.
    import yaml

    if len(text) > _MOST_YAML:
        raise DocumentFault(
            f"the document is no JSON ({complaint[:200]}), and more than {_MOST_YAML:,} bytes of YAML"
            " are not read",
            "write it as JSON",
        )
    try:
        return _Plain().take(_loaded(text))
    except yaml.YAMLError as error:
        where = " ".join(str(error).split())[:300]
        raise DocumentFault(
            f"the document is neither JSON ({complaint[:200]}) nor YAML ({where})", _HINT
        ) from None
    except (RecursionError, ValueError) as error:
        raise DocumentFault(f"the document cannot be read as YAML: {str(error)[:200]}", _HINT) from None


def _loaded(text: str) -> Json:
    import yaml

    try:
        return yaml.load(text, Loader=_loader())  # noqa: S506 - made of the safe loader
    except yaml.YAMLError:
        if "\t" not in text:
            raise
        return yaml.load(text.replace("\t", "  "), Loader=_loader())  # noqa: S506


class _Plain:
    """YAML's values as JSON has them. Aliases can make a small text immense: nodes are counted."""

    def __init__(self) -> None:
        self._left = _MOST_NODES

    def take(self, value: Json, depth: int = 0) -> Json:
        self._left -= 1
        if self._left < 0:
            raise ValueError(f"it holds more than {_MOST_NODES:,} values once its aliases are followed")
        if depth > _MOST_NESTED:
            raise ValueError(f"it is nested more than {_MOST_NESTED} levels deep")
        if is_object(value):
            return {_key(key): self.take(item, depth + 1) for key, item in value.items()}
        if is_list(value):
            return [self.take(item, depth + 1) for item in value]
        return value if isinstance(value, str | int | float | None) else str(value)


def _key(key: Json) -> str:
    if isinstance(key, str):
        return key
    if key is None:
        return "null"
    return str(key).lower() if isinstance(key, bool) else str(key)


def _loader() -> type[Any]:
    import yaml

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(base):
        yaml_implicit_resolvers: Any = {}  # noqa: RUF012 - the parser's own way of being told

    for tag, pattern, first in _WORDS:
        Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(pattern), [*first])
    # Dates are text, and `=` is a sign like another.
    return Loader


_WORDS = (
    ("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", "tTfF"),
    ("int", r"^[-+]?(?:0|[1-9][0-9]*)$", "-+0123456789"),
    (
        "float",
        r"^[-+]?(?:(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+)$",
        "-+.0123456789",
    ),
    ("null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    ("merge", r"^(?:<<)$", "<"),
)


def _kind(value: Json) -> str:
    names = {
        "str": "a text",
        "list": "a list",
        "int": "a number",
        "float": "a number",
        "bool": "a truth value",
    }
    return names.get(value.__class__.__name__, "nothing")
