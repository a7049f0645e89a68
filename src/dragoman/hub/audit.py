"""The audit trail as people read it, and the check that nobody has changed it."""

from dragoman.calls.audit import Auditor
from dragoman.scope import Caller
from dragoman.store import Store


class Audit:
    """Every method acts for `caller`, by default the hub's own."""

    def __init__(self, *, caller: Caller, store: Store, auditor: Auditor) -> None:
        self._caller = caller
        self._store = store
        self._auditor = auditor
