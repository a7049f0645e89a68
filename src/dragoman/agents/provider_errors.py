"""What a model's provider did wrong, in words that help. The one table from pydantic-ai's errors to ours.

Knows no run. A provider's own words are repeated only in `cause`, shortened and without anything like a key;
those of one that refused a key are not repeated at all: they quote it.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, cast

from pydantic_ai import exceptions as theirs

from dragoman.agents.providers import find_provider
from dragoman.errors import (
    ContextTooLong,
    DragomanError,
    Internal,
    InvalidConfig,
    LimitReached,
    ModelFault,
    ModelGarbage,
    ModelNotFound,
    ModelQuotaSpent,
    ModelRateLimited,
    ModelRefused,
    ModelRefusedKey,
    ModelTimeout,
    ModelUnavailable,
)
from dragoman.remote_data import BodyTooLarge

_LONGEST_CAUSE = 300
# What is named as one, what begins as one, and any long word with digits.
_SECRETS = (
    re.compile(r"(?i)\b(bearer|authorization|x-api-key|api[-_ ]?key)([\"':= ]+)[^\s\"',}]+"),
    re.compile(r"\b(?:sk|pk|gsk|xai|key|AIza)[-_]?[A-Za-z0-9*][\w*.-]{5,}"),
    re.compile(r"\b(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[A-Za-z0-9_-]{24,}\b"),
)
_TOO_LONG = re.compile(
    r"context[ _](?:length|window)|maximum context|prompt is too long|too many tokens|input is too long"
    r"|exceeds? the (?:maximum|limit).{0,40}token|request_too_large",
    re.IGNORECASE,
)
_SHORTER = "start a new thread, ask for less at once, or choose a model with a larger window"
_LATER = "try again later, or name a fallback model"


def explained(error: BaseException, model: str) -> DragomanError:
    """`error` as one of ours, for the person who waits for an answer of `model`: "openai:gpt-5".

    A model with fallbacks is named with all of them, commas between: the one that failed is told.
    """
    if isinstance(error, DragomanError):
        return error
    if isinstance(error, BaseExceptionGroup):
        return _of_all(cast(BaseExceptionGroup[BaseException], error), model)
    name = _which(error, [part.strip() for part in model.split(",")])
    for kind, explain in _TABLE.items():
        if isinstance(error, kind):
            return explain(error, name)
    return Internal(
        f"the run with {name} failed inside Dragoman ({type(error).__name__})", hint="its log has the details"
    )


def _which(error: BaseException, names: list[str]) -> str:
    """The error knows its model without the provider."""
    bare = getattr(error, "model_name", None)
    return next((name for name in names if name.partition(":")[2] == bare), names[0])


def _of_all(group: BaseExceptionGroup[BaseException], model: str) -> DragomanError:
    """Of a model and its fallbacks. The one worth another try speaks for all of them."""
    faults = [explained(error, model) for error in group.exceptions]
    if len(faults) == 1:
        return faults[0]
    speaker = next((fault for fault in faults if fault.retryable), faults[0])
    return type(speaker)(
        "no model answered: " + "; ".join(dict.fromkeys(fault.message for fault in faults)),
        hint=speaker.command_hint,
        cause=speaker.cause,
        retry_after=speaker.retry_after,
    )


def _too_long(error: BaseException, model: str) -> ModelFault:
    return ContextTooLong(
        f"the conversation is longer than {model} can read", hint=_SHORTER, cause=_said(error)
    )


def _refused_key(error: BaseException, model: str) -> ModelFault:
    provider = find_provider(model.partition(":")[0])
    who = provider.title if provider else f"the provider of {model}"
    where = " or ".join(provider.keys) if provider else "the provider's key"
    if getattr(error, "status_code", 401) == 403:
        return ModelRefusedKey(
            f"{who} does not let this key use {model}",
            hint=f"allow it in the account that {where} belongs to, or choose another model",
        )
    return ModelRefusedKey(
        f"{who} refused the key", hint=f"check {where} where Dragoman runs, and restart it after a change"
    )


def _not_found(error: BaseException, model: str) -> ModelFault:
    hint = "`dragoman models` shows what can be used"
    if suggested := getattr(error, "suggested_model_id", None):
        hint = f"did you mean {suggested}? {hint}"
    elif model.startswith("ollama:"):
        hint = f"fetch it: ollama pull {model.partition(':')[2]}"
    elif model.startswith("openai:"):
        chat = model.replace("openai:", "openai-chat:", 1)
        hint = f"{hint}; a server at OPENAI_BASE_URL that knows only chat completions is spoken to as {chat}"
    return ModelNotFound(f"the provider has no model {model}", hint=hint, cause=_said(error))


def _rate_limited(error: BaseException, model: str) -> ModelFault:
    wait = _wait(error)
    when = f"in {wait:g} s" if wait is not None else "in a minute"
    return ModelRateLimited(
        f"the provider of {model} wants fewer requests",
        hint=f"try again {when}, or name a fallback model",
        cause=_said(error),
        retry_after=wait,
    )


def _quota(error: BaseException, model: str) -> ModelFault:
    return ModelQuotaSpent(
        f"the account that pays for {model} has no credit left",
        hint="add credit with the provider, or choose another model",
        cause=_said(error),
    )


def _unavailable(error: BaseException, model: str) -> ModelFault:
    status = getattr(error, "status_code", None)
    says = f" (status {status})" if isinstance(status, int) else ""
    return ModelUnavailable(
        f"the provider of {model} is down or overloaded{says}",
        hint=_LATER,
        cause=_said(error),
        retry_after=_wait(error),
    )


def _unconnected(error: BaseException, model: str) -> ModelFault:
    if isinstance(refusal := _behind(error, InvalidConfig), InvalidConfig):
        return ModelUnavailable(f"{model} cannot be reached: {refusal.message}", hint=refusal.command_hint)
    if too_large := _behind(error, BodyTooLarge):
        return ModelGarbage(
            f"{model} sent an answer of {too_large}",
            hint="ask for less at once, or choose another model",
        )
    if getattr(error, "phase", None) == "read" or getattr(error, "in_stream", False):
        return broken_off(model, _said(error))
    provider = find_provider(model.partition(":")[0])
    address = f" and {provider.base_url_variable}" if provider and provider.base_url_variable else ""
    hint = f"check the network{address}, or name a fallback model"
    if model.startswith("ollama:"):
        hint = "start Ollama, or say where it is with OLLAMA_HOST"
    return ModelUnavailable(f"{model} cannot be reached", hint=hint, cause=_said(error))


def _behind(error: BaseException | None, kind: type[BaseException]) -> BaseException | None:
    """What an SDK has wrapped, perhaps more than once."""
    while error is not None and not isinstance(error, kind):
        error = error.__cause__ or error.__context__
    return error


def broken_off(model: str, cause: str | None = None) -> ModelUnavailable:
    return ModelUnavailable(f"{model} broke off in the middle of its answer", hint=_LATER, cause=cause)


def stalled(model: str, what: str, setting: str) -> ModelTimeout:
    """A model that keeps silent; `setting` is the one that says how long it may."""
    return ModelTimeout(f"{model} {what}", hint=f"{_LATER}, or allow more time: DRAGOMAN_{setting}")


def _slow(error: BaseException, model: str) -> ModelFault:
    if isinstance(error, theirs.ModelRequestTimeout):
        return stalled(model, f"did not begin to answer within {error.timeout:g} s", "MODEL_FIRST_TOKEN")
    return ModelTimeout(f"{model} did not answer in time", hint=_LATER)


def _rejected(error: BaseException, model: str) -> ModelFault:
    said = _said(error)
    if _TOO_LONG.search(_whole(error)):
        return _too_long(error, model)
    return ModelRefused(
        f"the provider of {model} rejected the request",
        hint="the cause says why; another model may accept it",
        cause=said,
    )


def _by_status(error: BaseException, model: str) -> ModelFault:
    """Of a provider whose adapter gave no category."""
    status = cast(theirs.ModelHTTPError, error).status_code
    if status in (401, 403):
        return _refused_key(error, model)
    if status == 404:
        return _not_found(error, model)
    if status == 408:
        return _slow(error, model)
    if status == 429:
        return _rate_limited(error, model)
    if status >= 500:
        return _unavailable(error, model)
    return _rejected(error, model)


def _unreadable(error: BaseException, model: str) -> ModelFault:
    if "ended without a `finish_reason`" in str(error):
        return broken_off(model)
    return ModelGarbage(
        f"{model} sent an answer that cannot be read",
        hint="try again; if it lasts, choose another model",
        cause=_said(error),
    )


def _misbehaved(error: BaseException, model: str) -> ModelFault:
    whole = _whole(error).lower()
    if "content filter" in whole:
        return _filtered(error, model)
    if "token limit" in whole:
        return ModelGarbage(
            f"{model} reached the end of its allowed answer before it said anything",
            hint="ask for less at once, or allow longer answers",
        )
    if "exceeded" in whole and "retries" in whole:
        return ModelGarbage(
            f"{model} kept sending what the tools do not accept",
            hint="say it in other words, or choose a stronger model",
            cause=_said(error),
        )
    return _unreadable(error, model)


def _filtered(error: BaseException, model: str) -> ModelFault:
    return ModelRefused(
        f"the provider's content filter stopped {model}",
        hint="say it in other words, or choose another model",
    )


def _cut_off(error: BaseException, model: str) -> ModelFault:
    return ModelGarbage(
        f"{model} reached the end of its allowed answer in the middle of a tool call",
        hint="ask for less at once, or allow longer answers",
    )


def _limited(error: BaseException, model: str) -> DragomanError:
    said = str(error).partition(". Consider")[0].replace("`", "").rstrip(".")
    return LimitReached(
        f"this run reached its limit: {_clean(said)}", hint="ask for less, or raise the limit"
    )


def _timed_out(error: BaseException, model: str) -> DragomanError:
    return LimitReached("this run reached its time limit", hint="ask for less at once, or raise the limit")


def _misused(error: BaseException, model: str) -> DragomanError:
    said = str(error).partition(" To try Pydantic AI")[0]
    return InvalidConfig(f"{model} cannot be used: {_clean(said)}", hint="`dragoman models` shows what can")


# In this order: a narrower error before the wider ones that it is a kind of.
_TABLE: dict[type[BaseException], Callable[[BaseException, str], DragomanError]] = {
    theirs.ModelContextWindowExceededError: _too_long,
    theirs.ModelAuthenticationError: _refused_key,
    theirs.ModelNotFoundError: _not_found,
    theirs.ModelRateLimitError: _rate_limited,
    theirs.ModelQuotaExceededError: _quota,
    theirs.ModelRequestRejectedError: _rejected,
    theirs.ModelUnavailableError: _unavailable,
    theirs.ModelServerError: _unavailable,
    theirs.ModelTimeoutError: _slow,
    theirs.ModelRequestTimeout: _slow,
    theirs.ModelConnectionError: _unconnected,
    theirs.ModelHTTPError: _by_status,
    theirs.ModelAPIError: _unreadable,
    theirs.ContentFilterError: _filtered,
    theirs.IncompleteToolCall: _cut_off,
    theirs.UnexpectedModelBehavior: _misbehaved,
    theirs.UsageLimitExceeded: _limited,
    theirs.RunTimedOut: _timed_out,
    theirs.UserError: _misused,
    ImportError: _misused,
    TimeoutError: _slow,
    ConnectionError: _unconnected,
}


def _wait(error: BaseException) -> float | None:
    wait = getattr(error, "retry_after", None)
    return float(wait) if isinstance(wait, int | float) else None


def _said(error: BaseException) -> str | None:
    """What the provider itself says of it, in one line."""
    body = getattr(error, "body", None)
    if isinstance(body, Mapping):
        facts = cast(Mapping[str, Any], body)
        inner = facts.get("error")
        facts = cast(Mapping[str, Any], inner) if isinstance(inner, Mapping) else facts
        body = facts.get("message") or facts.get("detail") or ""
    text = body if isinstance(body, str) and body else "" if body is not None else str(error)
    return _clean(" ".join(text.split())) or None


def _whole(error: BaseException) -> str:
    return f"{error} {getattr(error, 'body', '')}"


def _clean(text: str) -> str:
    for at, pattern in enumerate(_SECRETS):
        text = pattern.sub(r"\1\2[hidden]" if at == 0 else "[hidden]", text)
    return text if len(text) <= _LONGEST_CAUSE else text[: _LONGEST_CAUSE - 1] + "…"
