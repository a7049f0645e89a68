"""An embedder at work for search: tools in the background, questions on the spot, and what to do without it.

Search never waits long and never fails for it: `None` means that the light vectors must do. Who opens
the embedder runs `work()` beside it and ends both.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from time import monotonic
from typing import Protocol
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from dragoman.catalog.search.vector_cache import Key, VectorCache
from dragoman.errors import DragomanError, InvalidConfig
from dragoman.telemetry.logs import get_logger


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


Vectors = NDArray[np.float32]
LONGEST = 2_000  # characters of one text: models read a few hundred words, and some refuse more
_BATCH = 64
_BATCH_PATIENCE = 120.0
_MOST_ASKED = 256
_MOST_PARTS = 16
_LONGEST_REST = 300.0


class Embeddings:
    """For one event loop; only `vectors` is read from other threads."""

    def __init__(
        self, embedder: Embedder, vectors: VectorCache, *, patience: float = 3.0, rest: float = 5.0
    ) -> None:
        self.vectors = vectors
        self.finished = 0
        """Another number each time that nothing is left to compute."""
        self._embedder = embedder
        self._patience = patience
        self._first_rest = self._next_rest = rest
        self._resting_until = 0.0
        self._is_failing = self._is_read = False
        self._wanted: dict[Key, str] = {}
        self._wake, self._settled = asyncio.Event(), asyncio.Event()
        self._settled.set()
        self._asked: OrderedDict[str, Vectors] = OrderedDict()
        self._asking: WeakValueDictionary[tuple[str, ...], asyncio.Lock] = WeakValueDictionary()

    @property
    def name(self) -> str:
        return self._embedder.name

    # Tools

    def want(self, texts: Mapping[Key, str]) -> None:
        """Has them computed, some time soon."""
        self._wanted |= {key: text for key, text in texts.items() if key not in self.vectors}
        if self._wanted:
            self._settled.clear()
            self._wake.set()

    async def settled(self) -> None:
        """Returns as soon as nothing is left to compute."""
        await self._settled.wait()

    async def work(self) -> None:
        """Runs until it is cancelled."""
        while True:
            await self._wake.wait()
            await asyncio.sleep(max(0.0, self._resting_until - monotonic()))
            batch = dict([*self._wanted.items()][:_BATCH])
            try:
                await self._compute(batch)
            except Exception as error:  # noqa: BLE001 - boundary: an embedder is a network or a model of others
                self._failed(error)
                continue
            self._recovered()
            for key in batch:
                del self._wanted[key]
            if not self._wanted:
                self.finished += 1
                self._wake.clear()
                self._settled.set()

    async def _compute(self, batch: Mapping[Key, str]) -> None:
        async with asyncio.timeout(_BATCH_PATIENCE):
            found = await self._embedder.documents([*batch.values()])
        await asyncio.to_thread(self.vectors.put, [*batch], self._checked(found, len(batch)))

    # Questions

    async def asked(self, texts: Sequence[str]) -> Mapping[str, Vectors] | None:
        """The vectors of a question and its parts; None when the embedder is of no use now."""
        if not self._is_read:
            await asyncio.to_thread(self._read)
        if self._wanted or not len(self.vectors):
            return None
        parts = tuple(dict.fromkeys(texts[:_MOST_PARTS]))
        async with self._asking.setdefault(parts, asyncio.Lock()):
            known = {text: self._asked[text] for text in parts if text in self._asked}
            new = [text for text in parts if text not in known]
            if not new:
                return self._remembered(known)
            found = await self._ask(new)
            return None if found is None else self._remembered({**known, **found})

    async def _ask(self, texts: Sequence[str]) -> Mapping[str, Vectors] | None:
        if monotonic() < self._resting_until:
            return None
        try:
            async with asyncio.timeout(self._patience):
                found = await self._embedder.queries([text[:LONGEST] for text in texts])
            vectors = self._checked(found, len(texts))
        except Exception as error:  # noqa: BLE001 - boundary: an embedder is a network or a model of others
            self._failed(error)
            return None
        self._recovered()
        return dict(zip(texts, vectors, strict=True))

    def _remembered(self, asked: Mapping[str, Vectors]) -> Mapping[str, Vectors]:
        for text, vector in asked.items():
            self._asked[text] = vector
            self._asked.move_to_end(text)
        while len(self._asked) > _MOST_ASKED:
            self._asked.popitem(last=False)
        return asked

    def _read(self) -> None:
        self.vectors.read()
        self._is_read = True

    # Bad days

    def _failed(self, error: Exception) -> None:
        """Rests, each time longer. Said once until it works again."""
        self._resting_until = monotonic() + self._next_rest
        self._next_rest = min(self._next_rest * 2, _LONGEST_REST)
        if self._is_failing:
            return
        self._is_failing = True
        hint = error.command_hint if isinstance(error, DragomanError) else None
        get_logger().warning(
            "search.embedder_failed",
            embedder=self.name,
            error=f"{type(error).__name__}: {error}"[:300],
            hint=hint or "search goes on with the vectors that come with Dragoman",
        )

    def _recovered(self) -> None:
        self._is_failing = False
        self._next_rest, self._resting_until = self._first_rest, 0.0

    def _checked(self, found: Sequence[Sequence[float]], count: int) -> Vectors:
        """As vectors of length one."""
        vectors = np.asarray(found, np.float32)
        if vectors.ndim != 2 or len(vectors) != count or not vectors.size or not np.isfinite(vectors).all():
            raise InvalidConfig(
                f"{self.name} made an array of {vectors.shape} out of {count} texts, or numbers without end",
                hint="choose another embedder: DRAGOMAN_SEARCH_EMBEDDER",
            )
        if (kept := self.vectors.width) not in (0, vectors.shape[1]):
            raise InvalidConfig(
                f"{self.name} makes vectors of {vectors.shape[1]} numbers; those that are kept have {kept}",
                hint=f"another model has taken the name: delete {self.vectors.folder} and start again",
            )
        return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), np.float32(1e-9))
