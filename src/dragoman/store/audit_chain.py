"""How entries of the audit trail hang together: a hash over an entry and the hash of the one before it.

Who is erased leaves entries without a name: they keep their place and their hash, their content cannot be
checked any more, and a later entry (`user.erased`) says under which pseudonym and how many they are.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC
from hashlib import sha256

from dragoman.store.records import AuditEntry
from dragoman.tool import json_bytes


@dataclass(frozen=True, slots=True)
class ChainVerdict:
    """Whether a trail is whole. `number` is the last good entry, `problem` what is wrong after it.

    `count` is how many were followed, `erased` how many of them are nobody's any more. Whoever writes `head`
    down elsewhere (the hash of the last good entry) notices later even that the whole trail was written anew.
    """

    is_whole: bool
    number: int
    problem: str | None = None
    count: int = 0
    head: str = ""
    erased: int = 0
    unexplained: Mapping[str, int] = field(default_factory=dict[str, int], repr=False)
    """By pseudonym: how many were erased, less those of which an entry says so."""


ERASED = "erased"
"""Marks an entry whose content was taken out: beside it stands the pseudonym."""
ERASURE = "user.erased"
"""The action that says so."""


def verify(entries: Iterable[AuditEntry], after: tuple[int, str]) -> ChainVerdict:
    """Follows the chain from the entry after `after` (its number and hash) on."""
    number: int = after[0]
    hash: str = after[1]
    count, erased = 0, 0
    unexplained = Counter[str]()

    def broken(problem: str) -> ChainVerdict:
        return ChainVerdict(False, number, problem, count, hash)

    for entry in entries:
        if entry.number != number + 1:
            return broken(f"entry {number + 1} is missing")
        if entry.previous != hash:
            return broken(f"entry {entry.number} does not follow entry {number}")
        if pseudonym := entry.details.get(ERASED):
            erased += 1
            unexplained[str(pseudonym)] += 1
        elif entry.hash != link(entry):
            return broken(f"entry {entry.number} was changed")
        elif entry.action == ERASURE:
            unexplained[entry.subject] -= int(entry.details.get("entries", 0))
        number, hash, count = entry.number, entry.hash, count + 1
    return ChainVerdict(True, number, None, count, hash, erased, unexplained)


def link(entry: AuditEntry) -> str:
    """The hash of an entry, its number and the hash before it included. Its own, if it has one, is not."""
    facts = [
        entry.number,
        entry.previous,
        # To the microsecond and in UTC: what every database gives back as it was written.
        entry.time.astimezone(UTC).isoformat(timespec="microseconds"),
        entry.workspace,
        entry.user,
        entry.agent,
        entry.way,
        entry.action,
        entry.subject,
        entry.outcome,
        entry.arguments_hash,
        dict(entry.details),
    ]
    return sha256(json_bytes(facts)).hexdigest()
