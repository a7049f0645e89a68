"""Questions to people as people handle them: list, look, answer, take back what was allowed for longer."""

from dragoman.access import Approvals
from dragoman.calls.audit import Auditor
from dragoman.scope import Caller
from dragoman.store import Store


class Answers:
    """Every method acts for `caller`, by default the hub's own. Only a person answers: never an agent."""

    def __init__(self, *, caller: Caller, store: Store, approvals: Approvals, auditor: Auditor) -> None:
        self._caller = caller
        self._store = store
        self._approvals = approvals
        self._auditor = auditor
