"""The audit trail as people read it, and the check that nobody has changed it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Literal

from dragoman.errors import Denied, NotFound
from dragoman.hub import user_rights
from dragoman.hub.bound import BoundService
from dragoman.names import dotted_name, spellings
from dragoman.store.audit_chain import ChainVerdict, verify
from dragoman.store.protocols import AuditStore
from dragoman.store.records import AuditEntry

_PAGE = 500
_LONGEST_NAME = 100
AuditSort = Literal["newest", "oldest"]


class Audit(BoundService):
    """Members see what they did, admins the whole workspace, the operator any workspace, by id or name."""

    __slots__ = ()

    async def list(
        self,
        *,
        user: str | None = None,
        action: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        query: str = "",
        after: int = 0,
        limit: int = 100,
        workspace: str | None = None,
        sort: AuditSort = "newest",
    ) -> Sequence[AuditEntry]:
        """`after` the entry of that number come those that follow it in the order. `until` is not included.

        `query` are words of what it was done to, of the action, the outcome or the agent's name; a tool
        as it is stored (`mcp_email_send`) or as it is shown (`email.send`).
        """
        place = await self._workspace(workspace)
        await self._runtime.auditor.flush()
        return await self._runtime.store.audit.read(
            place,
            after=after,
            limit=limit,
            user=await self._whose(user, place),
            action=action,
            since=since,
            until=until,
            words=spellings(" ".join(query.split())),
            newest_first=sort == "newest",
        )

    async def names(self, entries: Sequence[AuditEntry]) -> Mapping[str, str]:
        """How people call the users of these entries, and what was done to: by id, as far as there is a name.

        Chats and runs of others have none: what they are about is theirs.
        """
        found: dict[str, str] = {}
        for entry in entries:
            if self._caller.role != "operator" and entry.workspace != self._caller.workspace:
                continue
            if entry.user not in found:
                person = await self._runtime.directory.find(entry.workspace, entry.user)
                found[entry.user] = person.user.name if person else entry.user
            if entry.subject not in found and (name := await self._name_of(entry)):
                found[entry.subject] = name
        return found

    async def _name_of(self, entry: AuditEntry) -> str | None:
        """Of what it was done to; None where that is a name already, or is gone."""
        store, place, subject = self._runtime.store, entry.workspace, entry.subject
        is_own = (place, entry.user) == (self._caller.workspace, self._caller.user)
        match entry.action.partition(".")[0]:
            case "user" | "preferences":
                person = await self._runtime.directory.find(place, subject)
                return person.user.name if person else _told_name(entry)
            case "key" | "client":
                key = await store.people.find_key_by_id(subject)
                return key.name if key and key.workspace == place else _told_name(entry)
            case "workspace" | "retention" if subject == place or self._caller.role == "operator":
                workspace = await store.people.find_workspace(subject)
                return workspace.name if workspace else _told_name(entry)
            case "thread" if is_own:
                thread = await store.threads.find(place, entry.user, subject)
                return thread.title or None if thread else None
            case "run" if is_own:
                run = await store.runs.find(place, subject)
                return run.request[:_LONGEST_NAME] or None if run and run.user == entry.user else None
            case "approval":
                approval = await store.approvals.find(place, subject)
                return dotted_name(approval.binding.tool) if approval else None
            case "call" | "tool" if (shown := dotted_name(subject)) != subject:
                return shown
            case _:
                return None

    async def export(
        self,
        *,
        after: int = 0,
        limit: int = _PAGE,
        workspace: str | None = None,
    ) -> Sequence[AuditEntry]:
        """A page as it was written, oldest first: entries with a greater number than `after`."""
        place = await self._workspace(workspace)
        await self._runtime.auditor.flush()
        whose = await self._whose(None, place)
        return await self._runtime.store.audit.read(place, after=after, limit=limit, user=whose)

    async def verify(self, *, workspace: str | None = None) -> ChainVerdict:
        """Follows the whole chain page by page, and says where it is broken."""
        if not self._caller.is_admin:
            raise Denied("only admins verify the audit trail", hint="ask an admin of your workspace")
        place = await self._workspace(workspace)
        await self._runtime.auditor.flush()
        anchor = await self._runtime.store.audit.anchor(place)
        verdict = await self._follow(place, anchor)
        if not verdict.is_whole and anchor != (anchor := await self._runtime.store.audit.anchor(place)):
            # Old entries were forgotten while we read: begin after those that are gone now.
            verdict = await self._follow(place, anchor)
        return verdict

    async def _follow(self, workspace: str, anchor: tuple[int, str]) -> ChainVerdict:
        # The head is read first: what is appended meanwhile comes after it.
        head, hash = await self._runtime.store.audit.head(workspace)
        verdict = ChainVerdict(True, anchor[0], None, 0, anchor[1])
        is_head_right = head == anchor[0] and hash == anchor[1]
        while page := await self._runtime.store.audit.read(workspace, after=verdict.number, limit=_PAGE):
            found = verify(page, (verdict.number, verdict.head))
            unexplained = Counter(verdict.unexplained)
            unexplained.update(found.unexplained)
            verdict = replace(
                found,
                count=verdict.count + found.count,
                erased=verdict.erased + found.erased,
                unexplained=unexplained,
            )
            if not verdict.is_whole:
                return verdict
            is_head_right = is_head_right or any(one.number == head and one.hash == hash for one in page)
        if more := sum(count for count in verdict.unexplained.values() if count > 0):
            problem = f"{more} entries have lost their content, and no entry says why"
            return replace(verdict, is_whole=False, problem=problem)
        if verdict.number < head:
            return replace(verdict, is_whole=False, problem=f"entry {verdict.number + 1} is missing")
        if not is_head_right:
            return replace(verdict, is_whole=False, problem=f"entry {head} is not the one that was written")
        return verdict

    async def _workspace(self, named: str | None) -> str:
        store, caller = self._runtime.store, self._caller
        if found := await self._find_workspace(named):
            return found.id
        # Its trail outlives a workspace.
        if named and caller.role == "operator" and named in await store.audit.workspaces():
            return named
        raise user_rights.no_workspace(named or caller.workspace)

    async def _whose(self, user: str | None, workspace: str) -> str | None:
        """The id of the user whose entries are meant; None for everybody's."""
        caller = self._caller
        if not caller.is_admin:
            if user is not None and user != caller.user:
                raise NotFound(f"there is no user {user[:80]!r}", hint="members see their own entries")
            return caller.user
        if user is None:
            return None
        people = {one.id: one.name for one in await self._runtime.store.people.users(workspace)}
        if user in people:
            return user
        # Entries outlive their user: an id that is nobody's any more is still a good question.
        return next((id for id, name in people.items() if name == user), user)


def _told_name(entry: AuditEntry) -> str | None:
    """What it was called when it was done: of something that may be gone by now."""
    name = entry.details.get("name")
    return name if isinstance(name, str) and name else None


async def forget_entries(rows: AuditStore, before: datetime) -> int:
    """Forgets older entries of every workspace; what stays can still be verified."""
    return sum([await rows.forget(place, before) for place in await rows.workspaces()])
