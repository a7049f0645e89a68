"""Everything that can go wrong, split by whose fault it is.

    DragomanError
    ├── CallerFault            who asked must change something
    │   ├── NotFound           not_found
    │   ├── InvalidName        invalid_name
    │   ├── InvalidConfig      invalid_config
    │   ├── InvalidArguments   invalid_arguments
    │   ├── Conflict           conflict
    │   ├── Denied             denied
    │   │   ├── ApprovalPending approval_pending  a person has not answered yet; call again
    │   │   └── ApprovalRefused approval_refused  a person said no
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
    │   └── ContextTooLong     context_too_long
    ├── LimitReached           limit_reached    one of Dragoman's own limits
    └── OwnFault               Dragoman itself
        ├── StoreUnavailable   store_unavailable
        │   └── StoreFull      store_full       nothing was written; reading still works
        ├── KeyFault           key_fault        the master key is missing, wrong or of the wrong length
        ├── ShuttingDown       shutting_down
        └── Internal           internal

No HTTP and no JSON-RPC number appears here: each door has its own table.
Nothing in a message or hint may hold a secret.
"""

from typing import ClassVar

from dragoman.hints import worded


class DragomanError(Exception):
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

    @property
    def hint(self) -> str | None:
        """What to do next, in Python; `command_hint` says it as the command line does."""
        return worded(self.command_hint, "python")


class CallerFault(DragomanError):
    code = "bad_request"


class NotFound(CallerFault):
    code = "not_found"


class InvalidName(CallerFault):
    code = "invalid_name"


class InvalidConfig(CallerFault):
    code = "invalid_config"


class InvalidArguments(CallerFault):
    code = "invalid_arguments"


class Conflict(CallerFault):
    code = "conflict"


class Denied(CallerFault):
    code = "denied"


class ApprovalPending(Denied):
    code = "approval_pending"
    retryable = True


class ApprovalRefused(Denied):
    code = "approval_refused"


class Unauthenticated(CallerFault):
    code = "unauthenticated"


class NotOpen(CallerFault):
    code = "not_open"


class ToolFault(DragomanError):
    code = "tool_fault"


class ToolFailed(ToolFault):
    code = "tool_failed"


class InputRequired(ToolFault):
    code = "input_required"


class NobodyAnswered(InputRequired):
    code = "nobody_answered"


class ToolChanged(ToolFault):
    code = "tool_changed"


class ToolDisabled(ToolFault):
    code = "tool_disabled"


class ServerFault(DragomanError):
    code = "server_fault"


class Unreachable(ServerFault):
    code = "unreachable"
    retryable = True


class ConnectTimeout(ServerFault):
    code = "connect_timeout"
    retryable = True


class Timeout(ServerFault):
    code = "timeout"
    retryable = True


class Uncertain(ServerFault):
    code = "uncertain"


class NeedsAuth(ServerFault):
    code = "needs_auth"


class Forbidden(ServerFault):
    code = "forbidden"


class RateLimited(ServerFault):
    code = "rate_limited"
    retryable = True


class ServerError(ServerFault):
    code = "server_error"
    retryable = True


class ProtocolFault(ServerFault):
    code = "protocol_fault"


class ModelFault(DragomanError):
    code = "model_fault"


class ModelUnavailable(ModelFault):
    code = "model_unavailable"
    retryable = True


class ModelTimeout(ModelFault):
    code = "model_timeout"
    retryable = True


class ModelRateLimited(ModelFault):
    code = "model_rate_limited"
    retryable = True


class ModelQuotaSpent(ModelFault):
    code = "model_quota_spent"


class ModelRefusedKey(ModelFault):
    code = "model_refused_key"


class ModelNotFound(ModelFault):
    code = "model_not_found"


class ModelRefused(ModelFault):
    code = "model_refused"


class ModelGarbage(ModelFault):
    code = "model_garbage"
    retryable = True


class ContextTooLong(ModelFault):
    code = "context_too_long"


class LimitReached(DragomanError):
    code = "limit_reached"
    retryable = True


class OwnFault(DragomanError):
    code = "own_fault"


class StoreUnavailable(OwnFault):
    code = "store_unavailable"
    retryable = True


class StoreFull(StoreUnavailable):
    code = "store_full"


class KeyFault(OwnFault):
    code = "key_fault"


class ShuttingDown(OwnFault):
    code = "shutting_down"
    retryable = True


class Internal(OwnFault):
    code = "internal"
