"""What a user has used and may still use."""

from dragoman.identity.directory import Directory
from dragoman.scope import Caller
from dragoman.store import Store


class Usage:
    """Every method acts for `caller`, by default the hub's own."""

    def __init__(self, *, caller: Caller, store: Store, directory: Directory) -> None:
        self._caller = caller
        self._store = store
        self._directory = directory
