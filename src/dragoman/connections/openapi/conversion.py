"""A document as tools: every operation a definition with a plan. Pure; runs in the worker process."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from urllib.parse import urlsplit

import jsonschema_rs

from dragoman.connections.openapi.body_schemas import BodySchemas, is_json
from dragoman.connections.openapi.components import Components
from dragoman.connections.openapi.operation_plan import META_KEY, OperationPlan
from dragoman.connections.openapi.parameters import InputSchemaBuilder, Parameters
from dragoman.connections.openapi.parsing import OpenApiDocument
from dragoman.connections.openapi.references import References
from dragoman.connections.openapi.schemes import SecuritySchemes, ServiceServers, resolved
from dragoman.connections.openapi.untrusted_json import (
    Json,
    Object,
    OperationFault,
    as_list,
    as_object,
    as_text,
    is_object,
)

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")
_ILLEGAL = re.compile(r"[^A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class FoundOperation:
    """One operation where it stands in the document."""

    name: str
    method: str
    path: str
    item: Object
    operation: Object

    @property
    def where(self) -> str:
        return f"{self.method.upper()} {self.path}"


@dataclass(frozen=True, slots=True)
class OperationFilter:
    """Which operations become tools: each list that is not empty narrows, and `exclude` wins."""

    tags: Sequence[str] = ()
    paths: Sequence[str] = ()
    methods: Sequence[str] = ()
    include: Sequence[str] = ()
    exclude: Sequence[str] = ()

    def takes(self, found: FoundOperation) -> bool:
        tags = [as_text(tag) for tag in as_list(found.operation.get("tags"))]
        names = (found.name, as_text(found.operation.get("operationId")), found.where)
        return (
            (not self.tags or any(_fits(tag, self.tags) for tag in tags))
            and (not self.paths or _fits(found.path, self.paths))
            and (not self.methods or found.method in {method.lower() for method in self.methods})
            and (not self.include or any(_fits(name, self.include) for name in names if name))
            and not any(_fits(name, self.exclude) for name in names if name)
        )


class OperationNames:
    """Gives each operation of a document one name: its id, else method and path; no two alike."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def take(self, method: str, path: str, operation: Object) -> str:
        fallback = _legal(f"{method} {path}")
        own = _legal(str(operation.get("operationId") or ""))
        for name in (own or fallback, f"{own}_{fallback}" if own else fallback):
            if name not in self._taken:
                self._taken.add(name)
                return name
        number = 2
        while f"{fallback}_{number}" in self._taken:
            number += 1
        self._taken.add(f"{fallback}_{number}")
        return f"{fallback}_{number}"


def description_of(found: FoundOperation) -> str:
    """Summary, then description; the path where there is neither."""
    operation, item = found.operation, as_object(found.item)
    summary = as_text(operation.get("summary") or item.get("summary")).strip()
    text = as_text(operation.get("description") or item.get("description")).strip()
    parts = [summary] if summary and not text.startswith(summary) else []
    parts += [text] if text else []
    words = "\n\n".join(parts) or found.where
    if operation.get("deprecated") is True:
        words = f"(deprecated) {words}"
    return words if len(words) <= 4000 else f"{words[:3999]}…"


def _legal(text: str) -> str:
    return _ILLEGAL.sub("_", text).strip("_")[:200]


def _fits(word: str, patterns: Sequence[str]) -> bool:
    return any(word == pattern or fnmatchcase(word, pattern) for pattern in patterns)


_LARGEST_INPUT = 48_000
_LARGEST_CUT_INPUT = 128_000
_LARGEST_OUTPUT = 8_000


@dataclass(frozen=True, slots=True)
class DocumentOrigin:
    """Where a document is from: `source` is its address, `base` what a missing server means."""

    source: str | None = None
    base: str | None = None


class Conversion:
    """Turns one document into tools, one by one. `skipped` grows on the way."""

    def __init__(self, document: OpenApiDocument, origin: DocumentOrigin, wanted: OperationFilter) -> None:
        self.skipped: list[str] = []
        self._root = document.root
        self._origin = origin
        self._wanted = wanted
        self._references = References(document.root)
        self._inputs = Components(self._references, document.version, "input")
        self._outputs = Components(self._references, document.version, "output")
        self._parameters = Parameters(document, self._references, self._inputs)
        self._contents = BodySchemas(document, self._references, self._inputs)
        self._schemes = SecuritySchemes(document, self._references)
        self._servers = ServiceServers(document, origin.source)

    def tools(self) -> Iterator[Object]:
        """Definitions in their plain form, in the order of the document."""
        for found in self._operations():
            try:
                yield self._tool(found)
            except OperationFault as fault:
                self.skipped.append(f"{found.where}: {fault}")
            except (TypeError, ValueError, AttributeError, KeyError, RecursionError) as error:
                # A document can be malformed in more ways than anybody can name.
                words = f"{type(error).__name__}: {error!s:.150}"
                self.skipped.append(f"{found.where}: it cannot be read ({words})")

    def about(self) -> Object:
        """What the document says of the whole service."""
        info = as_object(self._root.get("info"))
        return {
            "name": as_text(info.get("title")) or "OpenAPI service",
            "version": str(info.get("version", "")),
            "openapi": str(self._root.get("openapi", self._root.get("swagger"))),
            "description": as_text(info.get("description"))[:2000],
        }

    def _operations(self) -> Iterator[FoundOperation]:
        names = OperationNames()
        for path, raw in as_object(self._root.get("paths")).items():
            if path.startswith("x-"):
                continue
            try:
                item = {**self._references.followed(raw), **as_object(raw)} if is_object(raw) else {}
            except OperationFault as fault:
                self.skipped.append(f"{path}: {fault}")
                continue
            for method in METHODS:
                operation = item.get(method)
                if operation is None:
                    continue
                if not is_object(operation):
                    self.skipped.append(f"{method.upper()} {path}: it is no object")
                    continue
                found = FoundOperation(names.take(method, path, operation), method, path, item, operation)
                if self._wanted.takes(found):
                    yield found

    def _tool(self, found: FoundOperation) -> Object:
        choices, wants_credentials = self._schemes.choices(found.operation)
        covered = self._schemes.covered(choices)
        arguments = self._parameters.collect(found.path, found.item, found.operation, covered)
        body = self._contents.add_body(found.item, found.operation, arguments)
        server = self._servers.server_of(found.item, found.operation)
        plan = OperationPlan(
            method=found.method.upper(),
            path=found.path if found.path.startswith("/") else f"/{found.path}",
            server=server,
            base=self._origin.source if server is not None else self._origin.base,
            parameters=tuple(arguments.parameters),
            body=body,
            security=choices,
            wants_credentials=wants_credentials,
        )
        self.skipped += [f"{found.where}: {note}" for note in arguments.notes]
        is_closed = body is not None and not body.argument and not body.is_open
        return {
            "name": found.name,
            "title": as_text(found.operation.get("summary")).strip()[:120] or None,
            "description": description_of(found),
            "input": self._input(arguments, self._target(plan), is_closed),
            "output": self._output(found.operation),
            "annotations": _ANNOTATIONS.get(found.method, {}),
            "meta": {META_KEY: plan.as_meta()},
        }

    def _target(self, plan: OperationPlan) -> str:
        """What is called, said in the schema so that a change of it is a change of the tool."""
        server = resolved(plan.server, plan.base, None)
        own = urlsplit(self._origin.source or "").netloc
        place = urlsplit(server or "")
        path = place.path if server and place.netloc == own else server or ""
        return f"{plan.method} {path}{plan.path}"

    def _input(self, arguments: InputSchemaBuilder, target: str, is_closed: bool) -> Object:
        schema: Object = {"$comment": target, "type": "object", "properties": arguments.schemas}
        if arguments.required:
            schema["required"] = list(dict.fromkeys(arguments.required))
        if is_closed:
            schema["additionalProperties"] = False
        closed = self._inputs.close(schema, _LARGEST_INPUT)
        if closed is None:
            closed = self._inputs.close_cut(schema, _LARGEST_CUT_INPUT)
        return closed if _is_valid(closed) else _mended(closed)

    def _output(self, operation: Object) -> Object | None:
        """The schema of the good answer, where there is one and it is small; it is not worth a failure."""
        try:
            raw = self._answer_schema(operation)
            closed = self._outputs.close(self._outputs.translate(raw), _LARGEST_OUTPUT) if raw else None
        except OperationFault:
            return None
        return closed if closed and _is_valid(closed) else None

    def _answer_schema(self, operation: Object) -> Json:
        answers = as_object(operation.get("responses"))
        good = [code for code in answers if code.startswith("2")] or ["default"]
        answer = self._references.followed(answers.get(min(good)))
        if "schema" in answer:
            return answer["schema"]
        for kind, media in as_object(answer.get("content")).items():
            if is_json(kind):
                return as_object(media).get("schema")
        return None


_ANNOTATIONS: dict[str, dict[str, bool]] = {
    "get": {"read_only": True, "idempotent": True},
    "head": {"read_only": True, "idempotent": True},
    "options": {"read_only": True, "idempotent": True},
    "trace": {"read_only": True, "idempotent": True},
    "query": {"read_only": True, "idempotent": True},
    "put": {"read_only": False, "idempotent": True},
    "delete": {"read_only": False, "destructive": True, "idempotent": True},
}


def _is_valid(schema: Object) -> bool:
    try:
        return jsonschema_rs.meta.is_valid({"$schema": _DRAFT, **schema})
    except (ValueError, jsonschema_rs.ValidationError):
        return False


def _mended(schema: Object) -> Object:
    """Without the members that no validator would read: the operation itself can still be called."""
    mended = {name: part for name, part in schema.items() if name not in ("properties", "$defs")}
    for word in ("properties", "$defs"):
        if word in schema:
            mended[word] = {
                name: part if _is_valid({"properties": {name: part}}) else {}
                for name, part in schema[word].items()
            }
    return mended


_DRAFT = "https://json-schema.org/draft/2020-12/schema"
