"""How every failure is told to a model: in plain text, with what to do next in its own functions.

Three lines at most: what failed and its code, what a person can do about it, what the model does now. Never
a command of the command line, a path of REST or JSON, whatever the error was worded for.
"""

from typing import TYPE_CHECKING

from dragoman.agents.offers import ToolReply
from dragoman.hints import worded

if TYPE_CHECKING:
    from dragoman.errors import DragomanError
    from dragoman.run import RunError
    from dragoman.tool import CallError

_CORRECT = "Correct the arguments by the function's description and call it again."
_STOP = "Do not call it again and do not try another way. Tell the person, and do the rest."
_WITHOUT = "Go on without it, and tell the person what is missing."
_ONCE_MORE = "Call it once more if you need it. If it fails again, go on without it and say so."
_LESS = "Ask for less at once, or answer with what you have."
_CODE = "Correct the code and run it again, without the calls that have taken effect already."
NEXT = {
    "answer_cut": _LESS,
    "approval_pending": "A person has not decided yet. Say that it waits for them; do not call it again now.",
    "approval_refused": "The person refused this. Do not repeat it and do not reach the same another way. Say"
    " that it was refused, and do the rest.",
    "bad_request": _CORRECT,
    "cluster_fault": _WITHOUT,
    "cluster_unavailable": _ONCE_MORE,
    "conflict": "Look at how it is now with a function that reads, then decide anew.",
    "connect_timeout": _ONCE_MORE,
    "context_too_long": _LESS,
    "denied": _STOP,
    "error": _WITHOUT,
    "forbidden": _STOP,
    "hook_failed": _WITHOUT,
    "hook_refused": "A rule of this installation forbids it. Do not repeat it and do not reach the same in"
    " another way. Say what was refused, and do the rest.",
    "input_required": "Find the value in the conversation or ask for it with ask_person, then call it again.",
    "internal": _WITHOUT,
    "invalid_arguments": _CORRECT,
    "invalid_config": _CORRECT,
    "invalid_name": _CORRECT,
    "key_fault": _WITHOUT,
    "limit_reached": "Call nothing more of this kind. Answer with what you have, and say what is missing.",
    "model_fault": _WITHOUT,
    "model_garbage": _ONCE_MORE,
    "model_not_found": _WITHOUT,
    "model_quota_spent": _WITHOUT,
    "model_rate_limited": _WITHOUT,
    "model_refused": _STOP,
    "model_refused_key": _WITHOUT,
    "model_timeout": _ONCE_MORE,
    "model_unavailable": _WITHOUT,
    "needs_auth": "Only the person can authorise it. Tell them, and go on without it.",
    "nobody_answered": "Do not ask again. Do what can be done without the answer, and say what is open.",
    "not_found": "Look for the right name with your functions. If you do not find it, ask with ask_person.",
    "not_installed": _WITHOUT,
    "not_open": _WITHOUT,
    "own_fault": _WITHOUT,
    "protocol_fault": _WITHOUT,
    "rate_limited": _WITHOUT,
    "server_error": _ONCE_MORE,
    "server_fault": _WITHOUT,
    "shutting_down": _WITHOUT,
    "store_full": _WITHOUT,
    "store_unavailable": _ONCE_MORE,
    "timeout": _ONCE_MORE,
    "tool_changed": "A person must accept the tool as it is now. Tell them, and go on without it.",
    "tool_disabled": _WITHOUT,
    "tool_failed": "Read why. Correct the arguments and call it again, or tell the person.",
    "tool_fault": _WITHOUT,
    "unauthenticated": _WITHOUT,
    "uncertain": "It may have taken effect: do not repeat it. Look with a function that reads; if that does"
    " not tell, say that it is uncertain.",
    "unreachable": _ONCE_MORE,
}
"""By code of `errors`. Other codes are those of code that failed, or why a connector's agent did not work."""


def failure(
    code: str,
    message: str,
    command_hint: str | None = None,
    *,
    cause: str = "",
    before: str = "",
    is_own_words: bool = False,
) -> ToolReply:
    """`cause` is the code of what went wrong in particular, `before` what came of it all the same."""
    hint = worded(command_hint, "plain")
    codes = f"{code}, {cause}" if cause else code
    lines = [before, f"{message.rstrip('.')} (failed: {codes}).", hint and f"Hint: {hint}"]
    lines.append(f"Next: {_next(cause or code)}")
    content = "\n".join(filter(None, lines))
    return ToolReply(content=content, ok=False, code=code, message=message, is_own_words=is_own_words)


def failed(error: "DragomanError | CallError | RunError", *, is_own_words: bool = False) -> ToolReply:
    return failure(error.code, error.message, error.command_hint, is_own_words=is_own_words)


def split_next(told: str) -> tuple[str, str]:
    """What came of it, which others may have written, and the model's next step, which they have not."""
    came, found, step = told.rpartition("\nNext: ")
    return (came, f"Next: {step}") if found and step in _STEPS else (told, "")


def _next(code: str) -> str:
    return NEXT.get(code, _CODE if code.startswith("code_") else _WITHOUT)


_STEPS = frozenset({*NEXT.values(), _CODE, _WITHOUT})
