"""Who holds which public name. One name, one tool of one connector, for one owner in one workspace."""

from collections.abc import Iterator
from itertools import count

from dragoman.connector import Connector
from dragoman.names import MAX_NAME, public_name


class NameAllocator:
    """A name is held from the moment it is given out, so that two refreshes never both take it."""

    def __init__(self) -> None:
        self._holders: dict[tuple[str, str, str], tuple[str, str]] = {}

    def __len__(self) -> int:
        return len(self._holders)

    def hold(self, connector: Connector, tool: str, name: str) -> None:
        """Takes a name that was given out in an earlier life."""
        self._holders[connector.workspace, connector.owner, name] = (connector.id, tool)

    def name_for(self, connector: Connector, tool: str) -> str | None:
        """The name of a tool, held from now on; None when a native tool's own name is taken or illegal."""
        holder = (connector.id, tool)
        for name in self._candidates(connector, tool):
            if self._holders.setdefault((connector.workspace, connector.owner, name), holder) == holder:
                return name
        return None

    def release(self, connector: Connector, name: str) -> None:
        key = (connector.workspace, connector.owner, name)
        if self._holders.get(key, ("", ""))[0] == connector.id:
            del self._holders[key]

    @staticmethod
    def _candidates(connector: Connector, tool: str) -> Iterator[str]:
        if connector.kind == "native":
            if len(tool) <= MAX_NAME and tool.isascii() and tool.replace("-", "_").isidentifier():
                yield tool
            return
        # Eight hex digits can be made to collide: then the next salt is tried.
        for salt in count():
            yield public_name(connector.slug, tool, salt)
