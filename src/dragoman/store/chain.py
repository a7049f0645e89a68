"""How entries of the audit trail hang together: a hash over an entry and the hash of the one before it."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC
from hashlib import sha256

from dragoman.store.records import AuditEntry


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a trail is whole. `number` is the last good entry, `problem` what is wrong after it."""

    is_whole: bool
    number: int
    problem: str | None = None


def chained(entry: AuditEntry) -> AuditEntry:
    """The entry with its hash. Number and previous hash are part of it."""
    return replace(entry, hash=_hash(entry))


def verify(entries: Iterable[AuditEntry], after: tuple[int, str]) -> Verdict:
    """Follows the chain from the entry after `after` (its number and hash) on."""
    number, hash = after
    for entry in entries:
        if entry.number != number + 1:
            return Verdict(False, number, f"entry {number + 1} is missing")
        if entry.previous != hash:
            return Verdict(False, number, f"entry {entry.number} does not follow entry {number}")
        if entry.hash != _hash(entry):
            return Verdict(False, number, f"entry {entry.number} was changed")
        number, hash = entry.number, entry.hash
    return Verdict(True, number)


def _hash(entry: AuditEntry) -> str:
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
    return sha256(json.dumps(facts, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
