"""Everything that can go wrong, split by whose fault it is.

    DragomanError
    ├── CallerFault            who asked must change something
    │   ├── NotFound           not_found
    │   ├── InvalidName        invalid_name
    │   ├── InvalidConfig      invalid_config
    │   ├── InvalidArguments   invalid_arguments
    │   ├── Conflict           conflict
    │   │   └── Outdated       conflict         it was changed by somebody else since it was read
    │   ├── Denied             denied
    │   │   ├── ApprovalPending approval_pending  a person has not answered yet; call again
    │   │   ├── ApprovalRefused approval_refused  a person said no
    │   │   └── HookRefused    hook_refused     a hook lets the call, or its result, not pass
    │   ├── Unauthenticated    unauthenticated
    │   └── NotOpen            not_open         a hub is used before it was opened or after it was closed
    ├── ToolFault
    │   ├── ToolFailed         tool_failed      the tool ran and says no
    │   ├── InputRequired      input_required   the tool asks something that was not answered
    │   │   └── NobodyAnswered nobody_answered  a person was asked and the time is over
    │   ├── ToolChanged        tool_changed     a pinned definition changed; a person must accept it
    │   └── ToolDisabled       tool_disabled
    ├── ServerFault            the server out there
    │   ├── Unreachable        unreachable      no connection; the request never left
    │   ├── ConnectTimeout     connect_timeout
    │   ├── Timeout            timeout          a call that is safe to repeat got no answer in time
    │   ├── Uncertain          uncertain        it may have happened: never repeated by itself
    │   ├── NeedsAuth          needs_auth
    │   ├── Forbidden          forbidden
    │   ├── RateLimited        rate_limited
    │   ├── ServerError        server_error
    │   └── ProtocolFault      protocol_fault   an answer that is no valid MCP
    ├── ModelFault             the language model, or who serves it
    │   ├── ModelUnavailable   model_unavailable   no connection, or it says that it is down
    │   ├── ModelTimeout       model_timeout
    │   ├── ModelRateLimited   model_rate_limited
    │   ├── ModelQuotaSpent    model_quota_spent   the account has no credit left: waiting does not help
    │   ├── ModelRefusedKey    model_refused_key   the key is missing, wrong, or not allowed this
    │   ├── ModelNotFound      model_not_found
    │   ├── ModelRefused       model_refused       the request, or the answer, was held back
    │   ├── ModelGarbage       model_garbage       an answer that nobody can read
    │   ├── AnswerCut          answer_cut          it ends in the middle: too long, or held back
    │   └── ContextTooLong     context_too_long
    ├── LimitReached           limit_reached    one of Dragoman's own limits
    └── OwnFault               Dragoman itself
        ├── StoreUnavailable   store_unavailable
        │   └── StoreFull      store_full       nothing was written; reading still works
        ├── KeyFault           key_fault        the master key is missing, wrong or of the wrong length
        ├── NotInstalled       not_installed    it needs an extra that is not installed
        ├── ClusterFault       cluster_fault    this process cannot be a node of the cluster
        ├── ClusterUnavailable cluster_unavailable  no node is known that holds the connection
        ├── HookFailed         hook_failed      a hook that must decide could not; nothing was sent
        ├── ShuttingDown       shutting_down
        └── Internal           internal

No HTTP and no JSON-RPC number appears here: each door has its own table.
Nothing in a message or hint may hold a secret.
"""

from typing import Any, ClassVar

from dragoman.hints import Hinted


class DragomanError(Hinted, Exception):
    """The root. `code` and `retryable` belong to the class, message and hint to the instance."""

    code: ClassVar[str] = "error"
    retryable: ClassVar[bool] = False

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        cause: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.command_hint = hint
        self.cause = cause
        self.retry_after = retry_after
        self.attempts = 1  # how often a call was tried before it failed so


class CallerFault(DragomanError):
    """Who asked must change something."""

    code = "bad_request"


class NotFound(CallerFault):
    """There is no such thing, or the caller may not see it."""

    code = "not_found"


class InvalidName(CallerFault):
    """The name will not do."""

    code = "invalid_name"


class InvalidConfig(CallerFault):
    """The configuration cannot work; nothing was written."""

    code = "invalid_config"


class InvalidArguments(CallerFault):
    """The arguments do not fit what is called."""

    code = "invalid_arguments"


class Conflict(CallerFault):
    """It collides with what exists."""

    code = "conflict"


class Outdated(Conflict):
    """Somebody else has changed it since it was read; nothing was written."""


class Denied(CallerFault):
    """The caller may not do this."""

    code = "denied"


class ApprovalPending(Denied):
    """A person has not answered yet; call again later."""

    code = "approval_pending"
    retryable = True


class ApprovalRefused(Denied):
    """A person said no."""

    code = "approval_refused"


class HookRefused(Denied):
    """A hook lets the call, or what came of it, not pass."""

    code = "hook_refused"


class Unauthenticated(CallerFault):
    """Nobody knows who asks."""

    code = "unauthenticated"


class NotOpen(CallerFault):
    """A hub is used before it was opened or after it was closed."""

    code = "not_open"


class ToolFault(DragomanError):
    """The tool, not the way to it."""

    code = "tool_fault"


class ToolFailed(ToolFault):
    """The tool ran and says no."""

    code = "tool_failed"


class InputRequired(ToolFault):
    """The tool asks something that was not answered."""

    code = "input_required"


class NobodyAnswered(InputRequired):
    """A person was asked and the time is over."""

    code = "nobody_answered"


class ToolChanged(ToolFault):
    """A pinned definition changed; a person must accept it."""

    code = "tool_changed"


class ToolDisabled(ToolFault):
    """The tool was switched off."""

    code = "tool_disabled"


class ServerFault(DragomanError):
    """The server out there."""

    code = "server_fault"


class Unreachable(ServerFault):
    """No connection; the request never left."""

    code = "unreachable"
    retryable = True


class ConnectTimeout(ServerFault):
    """No connection in time; the request never left."""

    code = "connect_timeout"
    retryable = True


class Timeout(ServerFault):
    """A call that is safe to repeat got no answer in time."""

    code = "timeout"
    retryable = True


class Uncertain(ServerFault):
    """It may have happened: never repeated by itself."""

    code = "uncertain"


class NeedsAuth(ServerFault):
    """The server wants to know who we are."""

    code = "needs_auth"


class Forbidden(ServerFault):
    """The server knows who we are and refuses."""

    code = "forbidden"


class RateLimited(ServerFault):
    """The server wants fewer requests."""

    code = "rate_limited"
    retryable = True


class ServerError(ServerFault):
    """The server says that it failed."""

    code = "server_error"
    retryable = True


class ProtocolFault(ServerFault):
    """An answer that is no valid MCP."""

    code = "protocol_fault"


class ModelFault(DragomanError):
    """The language model, or who serves it."""

    code = "model_fault"


class ModelUnavailable(ModelFault):
    """No connection to the model, or it says that it is down."""

    code = "model_unavailable"
    retryable = True


class ModelTimeout(ModelFault):
    """The model did not answer in time."""

    code = "model_timeout"
    retryable = True


class ModelRateLimited(ModelFault):
    """The model's provider wants fewer requests."""

    code = "model_rate_limited"
    retryable = True


class ModelQuotaSpent(ModelFault):
    """The account has no credit left: waiting does not help."""

    code = "model_quota_spent"


class ModelRefusedKey(ModelFault):
    """The key is missing, wrong, or not allowed this."""

    code = "model_refused_key"


class ModelNotFound(ModelFault):
    """The provider has no such model."""

    code = "model_not_found"


class ModelRefused(ModelFault):
    """The request, or the answer, was held back."""

    code = "model_refused"


class ModelGarbage(ModelFault):
    """An answer that nobody can read."""

    code = "model_garbage"
    retryable = True


class AnswerCut(ModelFault):
    """The model's answer ends in the middle. `answer` is what there is of it, and says so at its end."""

    code = "answer_cut"

    def __init__(self, message: str, *, answer: str = "", **facts: Any) -> None:
        super().__init__(message, **facts)
        self.answer = f"{answer}\n\n[{message[0].upper()}{message[1:]}.]"


class ContextTooLong(ModelFault):
    """This is more than the model can read."""

    code = "context_too_long"


class LimitReached(DragomanError):
    """One of Dragoman's own limits."""

    code = "limit_reached"
    retryable = True


class OwnFault(DragomanError):
    """Dragoman itself."""

    code = "own_fault"


class StoreUnavailable(OwnFault):
    """The store does not answer."""

    code = "store_unavailable"
    retryable = True


class StoreFull(StoreUnavailable):
    """Nothing was written; reading still works."""

    code = "store_full"


class KeyFault(OwnFault):
    """The master key is missing, wrong or of the wrong length."""

    code = "key_fault"


class NotInstalled(OwnFault):
    """It needs an extra of Dragoman that is not installed."""

    code = "not_installed"


class ClusterFault(OwnFault):
    """This process cannot be a node of the cluster."""

    code = "cluster_fault"


class ClusterUnavailable(OwnFault):
    """It is not known which node holds the connection; the call was not made."""

    code = "cluster_unavailable"
    retryable = True


class HookFailed(OwnFault):
    """A hook that must decide could not, and nothing was sent."""

    code = "hook_failed"
    retryable = True


class ShuttingDown(OwnFault):
    """Dragoman is stopping."""

    code = "shutting_down"
    retryable = True


class Internal(OwnFault):
    """Something that nobody foresaw; the log has the details."""

    code = "internal"
