"""Why a program ended before it was a server: the line of its stderr that says so, and whether to try again.

Pure: knows lines of text. What package runners, interpreters and servers print was read from the real ones.
"""

import re
from dataclasses import dataclass

_CAUSE = 300
_NPM = re.compile(r"^npm (?:error|ERR!)\s*(?:code\s+\S+$|(?:\d{3}|E[A-Z]{3,})\b)?")
_NPM_NOISE = re.compile(r"A complete log of this run|^Not Found - GET")
_TREE = re.compile(r"^\s*(?:╰─▶|├─▶|×|cause:)\s*")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_EXCEPTION = re.compile(r"^(?:Uncaught )?[\w.]*(?:Error|Exception|Exit|NotFound)\b(?: \[\w+\])?:\s*\S")
_SAYS_SO = re.compile(
    r"\b(?:error|fatal|failed|failure|cannot|can't|could not|couldn't|unable to|missing|required|must be"
    r"|not set|not provided|not found|no such|invalid|unknown (?:option|argument|command)|unrecognized"
    r"|denied|unauthorized|unsupported|refused|please (?:set|provide|specify))\b",
    re.IGNORECASE,
)
_STARTS_USAGE = re.compile(r"^usage:", re.IGNORECASE)

_NO_PACKAGE = re.compile(
    r"\bE404\b|404 Not Found|is not in this registry|not found in the package registry|No solution found"
    r"|could not be found or you do not have permission|No matching version|ETARGET|Cannot find module"
    r"|No module named|manifest unknown|pull access denied",
)
_USAGE = re.compile(
    r"^usage:|(?:unknown|no such) (?:option|argument|command)|unrecognized (?:arguments?|options?)"
    r"|too (?:few|many) arguments"
    r"|(?:arguments?|options?) (?:is|are) required|missing required argument",
    re.IGNORECASE,
)
_VERSION = re.compile(
    r"requires? (?:node(?:\.js)?|python|npm)\b|unsupported (?:engine|python)|EBADENGINE"
    r"|current Python version .* does not satisfy",
    re.IGNORECASE,
)
_VARIABLE = re.compile(r"\b(?:process\.env\.|os\.environ\W*)?([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)\b")
_IS_MISSING = re.compile(
    r"\b(?:required|missing|not set|unset|not provided|not defined|undefined|must (?:set|provide|be)"
    r"|not found|please (?:set|provide|specify)|not configured|is empty|no .{0,30}(?:key|token))\b"
    r"|KeyError",
    re.IGNORECASE,
)
_NOT_VARIABLES = re.compile(r"^(?:ERR_|E[A-Z]+$|NODE_|HTTP_|UV_|MODULE_NOT)|_ERROR$")


@dataclass(frozen=True, slots=True)
class StartFailure:
    """`is_permanent`: it fails again in the same way until somebody changes something."""

    cause: str
    hint: str | None = None
    is_permanent: bool = False


class ErrorLines:
    """The first line that says what went wrong, found as lines come: the end of a long output is not it."""

    def __init__(self) -> None:
        self._first: str | None = None
        self._exception: str | None = None
        self._usage: str | None = None
        self._in_traceback = False

    def take(self, line: str) -> None:
        line = _COLOURS.sub("", line)
        if self._in_traceback:
            # Of Python's, the cause is the first line after it that is not indented.
            if line[:1].isspace():
                return
            self._in_traceback = False
            self._exception = self._exception or line.strip()
        elif line.startswith("Traceback (most recent call last)"):
            self._in_traceback = True
        elif _STARTS_USAGE.match(line):
            self._usage = self._usage or line.strip()
        elif self._exception is None and _EXCEPTION.match(line):
            self._exception = line.strip()
        elif (text := _told(line)) and (self._first is None or "No solution found" in self._first):
            self._first = text  # uv says why in its next line

    @property
    def first(self) -> str | None:
        """An exception has a name and a message; a line that only sounds like trouble is less than that."""
        found = self._exception or self._first or self._usage
        return found[:_CAUSE] if found else None


def diagnosed(slug: str, lines: tuple[str, ...], first: str | None) -> StartFailure:
    """Why a program ended before it said a word of MCP. `lines` are the last of its stderr."""
    text = "\n".join((first or "", *lines))
    cause = first or " | ".join(line for line in lines[-3:] if line)[-_CAUSE:]
    if name := missing_variable(text):
        hint = f"set it: dragoman connectors update {slug} --secret-env {name}=…"
        return StartFailure(cause, hint, is_permanent=True)
    if _NO_PACKAGE.search(text):
        return StartFailure(cause, "check the name and the version of the package", is_permanent=True)
    if _VERSION.search(text):
        return StartFailure(cause, "install the version that it needs, then connect again", is_permanent=True)
    if any(_USAGE.search(line) for line in text.splitlines()):
        return StartFailure(cause, "check the arguments of the command", is_permanent=True)
    return StartFailure(cause)


def missing_variable(text: str) -> str | None:
    """The environment variable that a program says it lacks."""
    for line in text.splitlines():
        if _IS_MISSING.search(line):
            for name in _VARIABLE.findall(line):
                if not _NOT_VARIABLES.search(name):
                    return name
    return None


def _told(line: str) -> str | None:
    """The line without what a package runner writes around it, where it tells of trouble."""
    if line.startswith(("npm error", "npm ERR!")):
        text = _NPM.sub("", line).strip()
        return None if not text or _NPM_NOISE.search(text) else text
    if line.startswith("npm "):
        return None  # notices and warnings
    if _TREE.match(line):
        return _TREE.sub("", line).strip() or None
    return line.strip() if not line[:1].isspace() and _SAYS_SO.search(line) else None
