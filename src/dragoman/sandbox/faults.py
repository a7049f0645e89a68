"""What went wrong in the sandbox, in words by which a model can mend its code. Pure."""

from collections.abc import Sequence

from pydantic_monty import MontyCrashedError, MontyError, MontyRuntimeError, MontySyntaxError

from dragoman.sandbox.namespace import MODULES
from dragoman.sandbox.outcome import CodeError, CodeFault, CodeLimits

_LONGEST = 4000
_HINT = "\nhint: "
_UNSUPPORTED = "The monty syntax parser does not yet support "
# Code has a function of this name, and an agent that is not told of that has another.
FIND_IT = "look for the tool with search_tools"
# What the sandbox says, and what to write instead; the first that fits.
_INSTEAD: Sequence[tuple[str, str]] = (
    ("class inheritance", "write one class without a base, or use plain functions and dicts"),
    ("yield", "build a list and return it; a generator expression works"),
    ("'del' statement", "use x.pop(key), or build a new list or dict without the item"),
    ("method decorators", "write a plain method, or a function outside of the class"),
    ("async context managers", "call the tool directly: await group.tool(…)"),
    ("async for", "await each result in a plain for loop, or all with asyncio.gather"),
    ("async comprehensions", "use await asyncio.gather(*[group.tool(x) for x in items])"),
    ("exception groups", "use except without the star"),
    ("gather() does not yet support keyword", "wrap each call in an async function that catches its error"),
    ("no attribute 'create_task'", "use await asyncio.gather(first(), second()) instead"),
    ("no attribute 'wait_for'", "calls have their own time limits: await them directly"),
    ("named 'statistics'", "compute it: sum(values) / len(values), sorted(values)[len(values) // 2]"),
    ("named 'enum'", "use plain constants or a dict"),
    ("named 'heapq'", "use sorted(items, key=…)[:n]"),
    ("named 'string'", "write the letters out, or use str methods such as isalpha()"),
    ("named 'operator'", "use a lambda"),
    ("No module named", f"there are only: {', '.join(sorted(MODULES))}; tools are called without import"),
    ("'coroutine' object", "a tool is async: write await before the call"),
    (
        "is not supported in this environment",
        "there are no files, no network and no environment; call a tool",
    ),
    ("Permission denied:", "there are no files here; call a tool that reads or writes them"),
    ("recursion depth", "use a loop instead of recursion"),
    ("is not defined", FIND_IT),
)


def fault_of(error: MontyError, limits: CodeLimits) -> CodeError:
    """The error of a run that the sandbox itself ended."""
    if isinstance(error, MontyCrashedError):
        return _crashed(error, limits)
    if isinstance(error, MontySyntaxError):
        return _told(error, "code_syntax")
    if isinstance(error, MontyRuntimeError):
        return _limit(error, limits) or _told(
            error, "code_syntax" if _UNSUPPORTED in str(error) else "code_error"
        )
    return CodeError(code="code_error", message=_short(str(error)), hint=_instead(str(error)))


def timed_out(limits: CodeLimits) -> CodeError:
    return CodeError(
        code="code_timeout",
        message=f"the code and its calls took longer than {limits.wall:g} s",
        hint="make fewer calls, or make them at once with asyncio.gather; do the rest in a second run",
    )


def busy(limits: CodeLimits) -> CodeError:
    return CodeError(
        code="code_busy",
        message=f"no place to run code became free within {limits.wall:g} s",
        hint=f"of one user {limits.per_user} run at once; try again when another has ended",
    )


def too_many_calls(limits: CodeLimits) -> CodeError:
    return CodeError(
        code="code_calls",
        message=f"the code made more than {limits.calls} calls",
        hint="use a tool that returns many items at once, or split the work over several runs",
    )


def too_much_output(limits: CodeLimits) -> CodeError:
    return CodeError(
        code="code_output",
        message=f"the code printed and returned more than {limits.output:,} bytes",
        hint="filter, count or summarise in the code; print or return only what you need to read",
    )


def not_returnable(why: str) -> CodeError:
    return CodeError(
        code="code_error",
        message=f"the result cannot be returned: {why}"[:500],
        hint="return dicts, lists, text and numbers: turn objects into dicts, bytes into text by .decode()",
    )


def _limit(error: MontyRuntimeError, limits: CodeLimits) -> CodeError | None:
    text = error.display("type-msg")
    if text.startswith(("TimeoutError: feed time limit", "TimeoutError: turn time limit")):
        return _told(
            error,
            "code_timeout",
            message=f"the code computed for more than {limits.execution:g} s",
            hint="look for a loop that does not end; let a tool filter or sort what is large",
        )
    if text.startswith("TimeoutError: sleep limit"):
        return _told(
            error, "code_timeout", message="the code slept too long", hint="do not sleep: just await"
        )
    if text.startswith(("MemoryError: memory limit", "MemoryError: the worker exceeded")):
        return _told(
            error,
            "code_memory",
            message=f"the code used more than {limits.memory // 2**20} MB",
            hint="keep only the fields that you need of each result; work on it in parts",
        )
    if text.startswith("RuntimeError: suspension limit"):
        return too_many_calls(limits)
    return None


def _crashed(error: MontyCrashedError, limits: CodeLimits) -> CodeError:
    if error.timed_out:
        return CodeError(
            code="code_timeout",
            message=f"the code computed for more than {limits.execution:g} s and was ended",
            hint="one operation took too long: use smaller numbers, texts or patterns",
        )
    return CodeError(
        code="code_crashed",
        message="the process that ran the code has died",
        hint="run it again; if it dies again, do less in one run",
    )


def _told(
    error: MontyRuntimeError | MontySyntaxError,
    code: CodeFault,
    *,
    message: str | None = None,
    hint: str | None = None,
) -> CodeError:
    frames = error.traceback()
    text = error.display("type-msg").replace(_UNSUPPORTED, "the sandbox does not support ")
    return CodeError(
        code=code,
        message=message or _short(text.partition(_HINT)[0]),
        hint=hint or _of_call(text) or _instead(text),
        traceback=_tail(error.display("traceback").replace(_UNSUPPORTED, "the sandbox does not support ")),
        line=frames[-1].line if frames else None,
    )


def _of_call(text: str) -> str | None:
    """A call that failed brings its own hint as its last line."""
    _, found, hint = text.rpartition(_HINT)
    return hint[:500] if found else None


def _instead(text: str) -> str | None:
    return next((hint for sign, hint in _INSTEAD if sign in text), None)


def _tail(text: str) -> str:
    """The end of a traceback is what matters; the file has no name of its own."""
    text = text.replace('File "<python-input-0>", line', "line")
    return text if len(text) <= _LONGEST else f"…{text[-_LONGEST:]}"


def _short(text: str) -> str:
    return text if len(text) <= 2000 else f"{text[:2000]}…"
