"""What can be typed in a chat beside messages: `/help`, `/agents`, `/cost` …"""

from collections.abc import Callable, Mapping
from typing import Any

from dragoman.cli.agent_tables import agents_table
from dragoman.cli.door import Door, path_of
from dragoman.cli.run_lines import usage_line
from dragoman.cli.screen import Screen, ago, plain
from dragoman.cli.tables import connectors_table
from dragoman.cli.threads import show_tools
from dragoman.cli.timeline import runs_table, timeline_table
from dragoman.names import did_you_mean

COMMANDS: Mapping[str, str] = {
    "/help": "this list",
    "/agents": "who can be talked to: @name …",
    "/tools": "what can be called in this thread, and why the rest cannot",
    "/connectors": "where tools come from",
    "/threads": "your conversations",
    "/thread": "/thread ID goes to another one",
    "/new": "begins a new one",
    "/runs": "what was worked on here",
    "/show": "what happened in the last run, step by step",
    "/cost": "what this conversation has used",
    "/stop": "stops whatever is still under way here",
    "/good": "the last answer was good",
    "/bad": "it was not",
    "/quit": "leaves (Ctrl-D does too)",
}
_UNFINISHED = ("queued", "running", "waiting")


class Leave(Exception):
    """The person wants to go."""


class ChatCommands:
    """`thread` is where the conversation is, None before its first message; `last_run` was watched last."""

    def __init__(self, door: Door, screen: Screen) -> None:
        self._door = door
        self._screen = screen
        self.thread: str | None = None
        self.last_run: str | None = None

    def run(self, line: str) -> None:
        word, _, rest = line.partition(" ")
        word = {"/exit": "/quit", "/q": "/quit", "/?": "/help"}.get(word.lower(), word.lower())
        if word not in COMMANDS:
            hint = did_you_mean(word, [*COMMANDS]) or "/help shows them"
            return self._screen.fail({"detail": f"there is no command {word}", "hint": hint})
        if word == "/thread":
            return self._go_to(rest.strip())
        act: Callable[[], None] = getattr(self, "_" + word[1:])
        return act()

    def _help(self) -> None:
        for name, what in COMMANDS.items():
            self._screen.show(f"[bold cyan]{name:<12}[/] {what}")

    def _agents(self) -> None:
        self._screen.show(agents_table(self._door.ask("GET", path_of("agents"))["agents"]))

    def _tools(self) -> None:
        path = path_of("threads", self.thread, "tools") if self.thread else path_of("tools")
        show_tools(self._screen, self._door.ask("GET", path), "there is no tool: dragoman connectors add")

    def _connectors(self) -> None:
        self._screen.show(connectors_table(self._door.ask("GET", path_of("connectors"))["connectors"]))

    def _threads(self) -> None:
        for thread in self._door.ask("GET", path_of("threads"), limit=20)["threads"]:
            here = "[green]●[/]" if thread["id"] == self.thread else " "
            title = plain(thread["title"], 60)
            self._screen.show(f"{here} {plain(thread['id'])}  {title} [dim]{ago(thread['updated_at'])}[/]")

    def _go_to(self, thread: str) -> None:
        if not thread:
            return self._screen.note(f"this is {self.thread or 'a new thread'}; /thread ID goes to another")
        found = self._door.ask("GET", path_of("threads", thread))
        self.thread = found["id"]
        return self._screen.note(f"now in {found['id']} {found['title']}")

    def _new(self) -> None:
        self.thread = None
        self._screen.note("the next message begins a new thread")

    def _runs(self) -> None:
        if runs := self._runs_here():
            self._screen.show(runs_table(runs))
        else:
            self._screen.note("nothing was worked on here yet")

    def _show(self) -> None:
        if self.last_run is None:
            return self._screen.note("nothing was worked on yet")
        timeline = self._door.ask("GET", path_of("runs", self.last_run, "timeline"))
        return self._screen.show(timeline_table(timeline))

    def _cost(self) -> None:
        runs = self._runs_here()
        if not runs:
            return self._screen.note("nothing was used here yet")
        names = runs[0]["usage"].keys()
        total = {name: sum(run["usage"][name] for run in runs) for name in names}
        models = ", ".join(dict.fromkeys(run["model"] for run in runs if run["model"]))
        self._screen.show(f"{len(runs)} runs · {usage_line({'model': models, 'usage': total})}")
        if not total["cost"]:
            self._screen.note("it cost nothing, or the price of the model is not known")
        return None

    def _stop(self) -> None:
        left = [run for run in self._runs_here() if run["status"] in _UNFINISHED]
        for run in left:
            self._door.ask("POST", path_of("runs", run["id"], "cancel"))
        self._screen.note(f"{len(left)} stopped" if left else "nothing is under way")

    def _good(self) -> None:
        self._thumb(1)

    def _bad(self) -> None:
        self._thumb(-1)

    def _thumb(self, thumb: int) -> None:
        if self.last_run is None:
            return self._screen.note("there is no answer yet")
        self._door.ask("POST", path_of("runs", self.last_run, "thumb"), {"thumb": thumb})
        return self._screen.note("noted")

    def _quit(self) -> None:
        raise Leave

    def _runs_here(self) -> list[dict[str, Any]]:
        if self.thread is None:
            return []
        return self._door.ask("GET", path_of("runs"), thread=self.thread, limit=500)["runs"]
