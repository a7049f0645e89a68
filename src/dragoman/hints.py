"""Hints in the words of the door: what a command is called in Python, in REST, on a page, in plain English.

A hint is written once, in the words of the command line (`dragoman connectors enable time`), and is kept and
passed on so, as `command_hint`. Each door says once, where requests come in, in which words it speaks
(`speaking`); whatever has a `hint` then has it in those words. Outside of every door they are Python's.
"""

import json
import re
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import Literal
from urllib.parse import quote

Words = Literal["command", "python", "rest", "plain"]
_SPOKEN: ContextVar[Words] = ContextVar("hint_words", default="python")


@dataclass(frozen=True, slots=True)
class CommandWords:
    """What one command is called elsewhere. Words in capitals stand for what the command was given.

    `plain` is for models and MCP clients, who have no commands. Empty: no page, or nothing but a shell.
    """

    command: str
    python: str
    rest: str
    page: str
    plain: str


_TABLE = """
connectors add time -- uvx mcp-server-time | hub.connectors.add("time", command="uvx", args=["mcp-server-time"]) | POST /api/connectors {"name": "time", "command": "uvx", "args": ["mcp-server-time"]} | /connectors | a connector named time with the command uvx and the argument mcp-server-time
connectors list | hub.connectors.list() | GET /api/connectors | /connectors | the list of connectors
connectors show NAME | hub.connectors.get(NAME) | GET /api/connectors/NAME | /connectors/NAME | the state of the connector NAME
connectors connect NAME | hub.connectors.connect(NAME) | POST /api/connectors/NAME/connect | /connectors/NAME | connect the connector NAME
connectors enable NAME | hub.connectors.enable(NAME) | POST /api/connectors/NAME/enable | /connectors/NAME | enable the connector NAME
connectors remove | hub.connectors.remove(…) | DELETE /api/connectors/… | /connectors | remove a connector
connectors update | hub.connectors.update(…) | PATCH /api/connectors/… | /connectors | change the connector
connectors homes NAME --clear --yes | hub.connectors.clear_homes(NAME) | DELETE /api/connectors/NAME/homes | /connectors/NAME | clear what the program of the connector NAME keeps
connectors update NAME | hub.connectors.update(NAME, …) | PATCH /api/connectors/NAME | /connectors/NAME | change the connector NAME
connectors update NAME --limit KIND=… | hub.connectors.update(NAME, limits={"KIND": …}) | PATCH /api/connectors/NAME {"limits": {"KIND": …}} | /connectors/NAME | raise the limit KIND of the connector NAME
connectors update NAME --personal auth | hub.connectors.update(NAME, personal=["auth"]) | PATCH /api/connectors/NAME {"personal": ["auth"]} | /connectors/NAME | let each user bring a credential of their own to the connector NAME
connectors update NAME --secret-env VAR=… | hub.connectors.update(NAME, env={"VAR": …}, secret=["VAR"]) | PATCH /api/connectors/NAME {"env": {"VAR": "…"}, "secret": ["VAR"]} | /connectors/NAME | give the connector NAME the environment variable VAR
connectors update NAME --bearer TOKEN | hub.connectors.update(NAME, bearer=TOKEN) | PATCH /api/connectors/NAME {"bearer": "TOKEN"} | /connectors/NAME | give the connector NAME a bearer token
connectors update NAME --bearer TOKEN, or --oauth | hub.connectors.update(NAME, bearer=TOKEN), or auth={"kind": "oauth"} | PATCH /api/connectors/NAME {"bearer": "TOKEN"}, or {"auth": {"kind": "oauth"}} | /connectors/NAME | give the connector NAME a bearer token, or OAuth
connectors update NAME --oauth-scope SCOPE | hub.connectors.update(NAME, auth={"scopes": [SCOPE, …]}) | PATCH /api/connectors/NAME {"auth": {"scopes": ["SCOPE"]}} | /connectors/NAME | let the connector NAME ask for the scope SCOPE
connectors update NAME --oauth-client-credentials --oauth-client-id ID --oauth-client-secret-env VAR | hub.connectors.update(NAME, auth={"flow": "client_credentials", "client_id": ID}, oauth_client_secret=…) | PATCH /api/connectors/NAME {"auth": {"flow": "client_credentials", "client_id": "ID"}, "oauth_client_secret": "…"} | /connectors/NAME | give the connector NAME a client of OAuth with its secret
tools list | hub.tools.list() | GET /api/tools | /tools | the list of tools
tools show NAME | hub.tools.get(NAME) | GET /api/tools/NAME | /tools/NAME | the description of the tool NAME
tools enable NAME | hub.tools.enable(NAME) | POST /api/tools/NAME/enable | /tools/NAME | enable the tool NAME
tools accept NAME | hub.tools.accept(NAME) | POST /api/tools/NAME/accept | /tools/NAME | accept the tool NAME as it is now
resources list | hub.resources.list() | GET /api/resources | - | the list of resources
prompts list | hub.prompts.list() | GET /api/prompts | - | the list of prompts
agents list | hub.agents.list() | GET /api/agents | /agents | the list of agents
agents start NAME | hub.agents.start(NAME) | POST /api/agents/NAME/start | /agents/NAME | start the agent NAME
runs list | hub.runs.list() | GET /api/runs | /runs | the list of runs
runs show NAME | hub.runs.view(NAME) | GET /api/runs/NAME | /runs/NAME | the run NAME
runs follow NAME | hub.runs.follow(NAME) | GET /api/runs/NAME/events | /runs/NAME | the stream of the run NAME
recipes list | hub.recipes.list() | GET /api/recipes | /recipes | the list of recipes
recipes edit | hub.recipes.edit(…) | PATCH /api/recipes/… | /recipes | edit the recipe
recipes delete | hub.recipes.delete(…) | DELETE /api/recipes/… | /recipes | delete a recipe
workspaces update WORKSPACE --recipes | hub.people.update_workspace(WORKSPACE, recipes=True) | PATCH /api/workspaces/WORKSPACE {"recipes": true} | /settings | switch recipes on in the workspace
bundles list | hub.bundles.list() | GET /api/bundles | /bundles | the list of bundles
bundles show NAME | hub.bundles.get(NAME) | GET /api/bundles/NAME | /bundles/NAME | the bundle NAME
bundles remove | hub.bundles.remove(…) | DELETE /api/bundles/… | /bundles | remove a bundle
threads list | hub.threads.list() | GET /api/threads | /chat | the list of threads
threads show THREAD | hub.threads.get(THREAD) | GET /api/threads/THREAD | /chat | see the thread THREAD
threads add THREAD NAME | hub.threads.add(THREAD, NAME) | POST /api/threads/THREAD/add {"connectors": ["NAME"]} | /chat | add the connector NAME to the thread THREAD
approvals list | hub.approvals.list() | GET /api/approvals | /approvals | the list of approvals
approvals answer ID once | hub.approvals.answer(ID, "once") | POST /api/approvals/ID/answer {"answer": "once"} | /approvals | have a person decide on the approval ID
approvals allowed | hub.approvals.allowances() | GET /api/approvals/allowed | /approvals | the list of what is allowed
approvals withdraw | hub.approvals.withdraw(…) | DELETE /api/approvals/allowed/… | /approvals | withdraw the approval
questions list | hub.runs.questions() | GET /api/questions | /approvals | the list of questions
credentials authorize | hub.credentials.authorize(…) | POST /api/credentials/…/authorize | /credentials | authorise the connector
credentials authorize NAME | hub.credentials.authorize(NAME) | POST /api/credentials/NAME/authorize | /credentials | authorise the connector NAME
credentials set | hub.credentials.set(…) | PUT /api/credentials/… | /credentials | set the credential
credentials set NAME SECRETS | hub.credentials.set(NAME, SECRETS) | PUT /api/credentials/NAME {"values": SECRETS} | /credentials | set SECRETS for the connector NAME
credentials rotate | hub.credentials.rotate() | POST /api/credentials/rotate | - | rotate the master key
keys add NAME | hub.people.add_key(NAME) | POST /api/keys {"name": "NAME"} | /keys | make an API key
keys add NAME --scope SCOPE | hub.people.add_key(NAME, scopes=[SCOPE]) | POST /api/keys {"name": "NAME", "scopes": ["SCOPE"]} | /keys | make an API key with the scope SCOPE
clients list | hub.clients.list() | GET /api/clients | /clients | the list of connected clients
keys list | hub.people.keys() | GET /api/keys | /keys | the list of API keys
users add | hub.people.add_user(…) | POST /api/users | /users | add a user
users list | hub.people.users() | GET /api/users | /users | the list of users
users update NAME --active | hub.people.update_user(NAME, is_active=True) | PATCH /api/users/NAME {"is_active": true} | /users | making the user active
users update NAME --role admin | hub.people.update_user(NAME, role="admin") | PATCH /api/users/NAME {"role": "admin"} | /users | change the role of a user
workspaces list | hub.people.workspaces() | GET /api/workspaces | /settings | the list of workspaces
workspaces add NAME | hub.people.add_workspace(NAME) | POST /api/workspaces {"name": "NAME"} | /settings | add a workspace
whoami | hub.people.me() | GET /api/me | /settings | your account
preferences set --limit max_connectors_per_thread=… | hub.preferences.update(limits={"max_connectors_per_thread": …}) | PATCH /api/preferences {"limits": {"max_connectors_per_thread": …}} | /settings | change how many connectors a thread may have
models add NAME | hub.models.set_provider("NAME", key=…) | PUT /api/models/providers/NAME {"key": …} | /settings?tab=models | give the provider NAME its key
models providers | hub.models.providers() | GET /api/models/providers | /settings?tab=models | the list of model providers
models test | hub.models.test() | POST /api/models/test | /settings?tab=models | a test of the model
models | hub.models.list() | GET /api/models | /settings?tab=models | the list of models
cluster status | hub.cluster.status() | GET /api/cluster | - | the state of the cluster
hooks list | hub.hooks.list() | GET /api/hooks | /hooks | the list of hooks
usage show | hub.usage.show() | GET /api/usage | /settings | the report of usage
discover WORD | hub.discovery.search(WORD) | GET /api/discover?search=WORD | /transfer | a search of the registry
serve | - | - | - | start the service
serve --port PORT | - | - | - | start the service with port PORT
console | - | - | - | the command of the console
token | - | - | - | the command line tells it
doctor | - | - | - | the check of the installation
--help | - | GET /api/openapi.json | - | the description
"""  # noqa: E501 - a table is read by its rows
COMMANDS = tuple(
    CommandWords(*("" if cell.strip() == "-" else cell.strip() for cell in row.split(" | ")))
    for row in _TABLE.strip().splitlines()
)


class speaking:  # used as a function, and no generator: every request enters it
    """Within the block, and in the tasks that it starts, hints are in these words."""

    __slots__ = ("_token", "_words")

    def __init__(self, words: Words) -> None:
        self._words: Words = words

    def __enter__(self) -> None:
        self._token = _SPOKEN.set(self._words)

    def __exit__(self, *_: object) -> None:
        _SPOKEN.reset(self._token)


def told(hint: str | None) -> str | None:
    """The hint in the words of the door that is spoken through."""
    return worded(hint, _SPOKEN.get())


class Hinted:
    """Something with a `command_hint`: its `hint` is what to do next, in the words of the door."""

    __slots__ = ()

    @property
    def hint(self) -> str | None:
        """What to do next, in the words of who asks: Python here, a request in REST, plain English by MCP."""
        return told(getattr(self, "command_hint"))  # noqa: B009 - a field of those who inherit


def worded(hint: str | None, words: Words) -> str | None:
    """The hint as `words` say it. What only a shell has a command for is in plain words."""
    if not hint or words == "command":
        return hint
    told, end = "", 0
    for found, row in _commands_in(hint):
        template: str = getattr(row, words)
        if words == "plain" or not template:
            said = _filled(row.plain, found, "plain")
        else:
            said = f"{found['tick']}{_filled(template, found, words)}{found['tick']}"
        told += hint[end : found.start()] + said
        end = found.end()
    return told + hint[end:]


def first_page(hint: str) -> str | None:
    """The console's page for the first command in a hint: empty where it has none, None without a command."""
    for found, row in _commands_in(hint):
        return _filled(row.page, found, "rest")
    return None


def _commands_in(hint: str) -> Iterator[tuple[re.Match[str], CommandWords]]:
    for start in re.finditer("`?dragoman ", hint):
        for pattern, row in _patterns():
            if found := pattern.match(hint, start.start()):
                yield found, row
                break


@cache
def _patterns() -> list[tuple[re.Pattern[str], CommandWords]]:
    """How each command is recognised, the longest first; made when the first hint is shown."""
    value = r"[^\s,;()`]+"

    def pattern(part: str) -> str:
        if not part.isupper():
            return re.escape(part)
        return f"(?P<{part}>{value}{f'(?: {value})*' if part == 'SECRETS' else ''})"

    patterns: list[tuple[re.Pattern[str], CommandWords]] = []
    for row in sorted(COMMANDS, key=lambda row: len(row.command), reverse=True):
        command = "".join(map(pattern, re.split("([A-Z]{2,})", row.command)))
        patterns.append((re.compile(rf"(?P<tick>`?)dragoman {command}(?![\w-])(?P=tick)"), row))
    return patterns


def _filled(template: str, found: re.Match[str], words: Words) -> str:
    """The template with what the command was given; in quotes where it is a value of Python or JSON."""
    given = {name: value for name, value in found.groupdict().items() if name.isupper()}

    def told(at: re.Match[str]) -> str:
        value = given.get(at["name"])
        if value is None:
            return at[0]
        if at["name"] == "SECRETS":
            names = value.split()
            return (
                " and ".join(names)
                if words == "plain"
                else json.dumps(dict.fromkeys(names, "…"), ensure_ascii=False)
            )
        if words == "python" or at["quote"]:
            return json.dumps(value, ensure_ascii=False)
        return quote(value, safe="") if words == "rest" else value

    return re.sub(r'(?P<quote>"?)\b(?P<name>[A-Z]{2,})\b"?', told, template)
