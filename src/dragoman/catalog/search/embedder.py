"""What search asks of an embedder. The hub brings one where the app wants it; nothing here knows a model."""

from collections.abc import Sequence
from typing import Protocol


class Embedder(Protocol):
    """May be slow and may fail: search goes on without it."""

    @property
    def name(self) -> str:
        """Vectors are kept under it: another model has another name."""
        ...

    async def documents(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """One vector for each text, all of one length."""
        ...

    async def queries(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """The same for questions, which some models read in another way."""
        ...
