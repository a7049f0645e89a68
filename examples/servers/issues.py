"""Repositories and their issues on disk, for the tracker sample. Knows no protocol.

What is asked for and does not exist is a `LookupError` that says what there is; a new file begins with
three repositories and eight issues.
"""

from dataclasses import asdict, dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

from account import ME, person
from state import Document, State, ago, moment, now, weekday

StateOfIssue = Literal["open", "closed"]


@dataclass(frozen=True, kw_only=True)  # no slots: the SDK takes their descriptors for defaults
class Comment:
    author: str
    body: str
    created: str


@dataclass(frozen=True, kw_only=True)
class Issue:
    """`repository` is its full name; a number counts within it."""

    repository: str
    number: int
    title: str
    body: str
    state: StateOfIssue
    author: str
    assignee: str | None
    labels: list[str]
    due: str | None
    created: str
    updated: str
    closed_as: str | None = None
    comments: list[Comment] = field(default_factory=list[Comment])

    @property
    def uri(self) -> str:
        return f"tracker://{self.repository}/issues/{self.number}"


@dataclass(frozen=True, kw_only=True)
class Repository:
    full_name: str
    description: str
    language: str
    open_issues: int


@dataclass(frozen=True, kw_only=True)
class Question:
    """What an issue must have to be listed; what is None does not matter."""

    repository: str | None = None
    assignee: str | None = None
    state: StateOfIssue | None = None
    label: str | None = None
    since: str | None = None
    due_before: str | None = None
    text: str | None = None

    def admits(self, issue: Issue) -> bool:
        words = f"{issue.title}\n{issue.body}".lower()
        return (
            self.repository in (None, issue.repository)
            and (self.assignee is None or person(self.assignee) == (issue.assignee or "").lower())
            and self.state in (None, issue.state)
            and (self.label is None or self.label.lower() in issue.labels)
            and (self.since is None or moment(issue.updated) >= moment(self.since))
            and (self.due_before is None or bool(issue.due and moment(issue.due) < moment(self.due_before)))
            and (self.text is None or self.text.lower() in words)
        )


class Issues:
    """Holds no file open between two calls."""

    def __init__(self, path: Path) -> None:
        self._state = State(path, _seeded)

    def list_repositories(self, query: str = "") -> list[Repository]:
        """Those whose name or description has every word of the query, by name."""
        document = self._state.read()
        opened = [issue["repository"] for issue in document["issues"] if issue["state"] == "open"]
        found = [
            Repository(**fields, open_issues=opened.count(fields["full_name"]))
            for fields in document["repositories"]
        ]
        words = query.lower().split()
        return sorted(
            (one for one in found if all(word in _words_of(one) for word in words)),
            key=lambda one: one.full_name,
        )

    def find(self, question: Question) -> list[Issue]:
        """Last changed first."""
        document = self._state.read()
        if question.repository is not None:
            question = replace(question, repository=_full_name(document, question.repository))
        issues = [issue for fields in document["issues"] if question.admits(issue := _issue(fields))]
        return sorted(issues, key=lambda issue: moment(issue.updated), reverse=True)

    def get(self, repository: str, number: int) -> Issue:
        return _issue(_fields(self._state.read(), repository, number))

    def create(self, repository: str, title: str, **more: Any) -> Issue:
        with self._state.changing() as document:
            name = _full_name(document, repository)
            numbers = [issue["number"] for issue in document["issues"] if issue["repository"] == name]
            assignee = more.pop("assignee", None)
            if more.get("due"):
                moment(more["due"])
            time = now()
            issue = Issue(
                repository=name,
                number=max(numbers, default=0) + 1,
                title=title,
                state="open",
                author=ME,
                assignee=person(assignee) if assignee else None,
                created=time,
                updated=time,
                **more,
            )
            document["issues"].append(asdict(issue))
        return issue

    def comment(self, repository: str, number: int, body: str) -> Issue:
        with self._state.changing() as document:
            fields = _fields(document, repository, number)
            fields["updated"] = now()
            fields["comments"].append({"author": ME, "body": body, "created": fields["updated"]})
        return _issue(fields)

    def close(self, repository: str, number: int, reason: str) -> Issue:
        """One that is closed stays as it was."""
        with self._state.changing() as document:
            fields = _fields(document, repository, number)
            if fields["state"] == "open":
                fields |= {"state": "closed", "closed_as": reason, "updated": now()}
        return _issue(fields)


def _issue(fields: Document) -> Issue:
    facts: dict[str, Any] = {**fields, "comments": [Comment(**comment) for comment in fields["comments"]]}
    return Issue(**facts)


def _words_of(repository: Repository) -> str:
    return f"{repository.full_name} {repository.description} {repository.language}".lower()


def _full_name(document: Document, name: str) -> str:
    """A name without its owner will do where there is only one."""
    known = [repository["full_name"] for repository in document["repositories"]]
    asked = name.strip().lower()
    found = [one for one in known if asked in (one, one.partition("/")[2])]
    if len(found) == 1:
        return found[0]
    near = get_close_matches(asked, known, n=1, cutoff=0.4) or known
    raise LookupError(f"there is no repository {name!r}; there is {', '.join(near)}")


def _fields(document: Document, repository: str, number: int) -> Document:
    name = _full_name(document, repository)
    for fields in document["issues"]:
        if (fields["repository"], fields["number"]) == (name, number):
            return fields
    raise LookupError(f"there is no issue {number} in {name}; list_issues shows those there are")


def _seeded() -> Document:
    def issue(name: str, number: int, title: str, body: str, hours: float, **more: Any) -> Document:
        facts: dict[str, Any] = {
            "state": "open",
            "author": "mira",
            "assignee": None,
            "labels": [],
            "due": None,
        }
        facts |= {"created": ago((hours + 20) * 60), "updated": ago(hours * 60), **more}
        return asdict(Issue(repository=name, number=number, title=title, body=body, **facts))

    xyne, docs, site = "lantern/xyne", "lantern/handbook", "harbor/storefront"
    return {
        "repositories": [
            {"full_name": xyne, "description": "Search in all that a team writes", "language": "TypeScript"},
            {"full_name": docs, "description": "How the team works, as text", "language": "Markdown"},
            {"full_name": site, "description": "The shop that customers see", "language": "Python"},
        ],
        "issues": [
            issue(xyne, 11, "Search returns deleted documents", "A document stays in the index for an hour"
                  " after it was deleted.", 3, assignee=ME, labels=["bug"], due=weekday(4)),
            issue(xyne, 12, "Sign-in page is blank in Safari 17", "The console says: 'undefined is not an"
                  " object'. Reload does not help.", 26, assignee=ME, labels=["bug", "frontend"],
                  due=weekday(6)),
            issue(xyne, 13, "Explain ranking in the handbook", "New people ask for it every month.", 50,
                  assignee=ME, labels=["docs"], due=weekday(9)),
            issue(xyne, 14, "Index attachments larger than 10 MB", "They are skipped without a word.", 8,
                  assignee="mira", labels=["feature"]),
            issue(xyne, 15, "Rate limit of the import is too low", "Raised to 40 per second.", 70,
                  state="closed", closed_as="completed", assignee=ME, labels=["bug"],
                  comments=[{"author": "mira", "body": "Works, thank you.", "created": ago(70 * 60)}]),
            issue(docs, 3, "Write down how releases are made", "Steps, who decides, how to go back.", 30,
                  assignee=ME, labels=["docs"], due=weekday(4)),
            issue(docs, 4, "Table of contents is out of date", "Three chapters are missing.", 90),
            issue(site, 27, "Price with discount is rounded twice", "9.995 becomes 10.01.", 12,
                  assignee="tomas", labels=["bug"], due=weekday(4)),
        ],
    }  # fmt: skip
