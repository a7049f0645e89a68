"""`dragoman chat`: a conversation at the prompt. Ctrl-C stops an answer, not the conversation."""

import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from dragoman.cli import run_lines
from dragoman.cli.attachments import names_of, with_files
from dragoman.cli.chat_commands import COMMANDS, ChatCommands, Leave
from dragoman.cli.door import Door, Refused, path_of
from dragoman.cli.interrupts import Interrupts
from dragoman.cli.line_editor import LineEditor, open_editor
from dragoman.cli.models import HOW_TO, OFFLINE, default_of
from dragoman.cli.prompts import Prompter
from dragoman.cli.run_endings import tell_end
from dragoman.cli.run_watcher import RunWatcher
from dragoman.cli.screen import Screen, ago, plain
from dragoman.cli.session import session
from dragoman.cli.transcript import PipedTranscript, Terminal, Transcript, markdown
from dragoman.settings import Settings

_LAST = 6  # messages of a thread that is taken up again
_YOU = "you › "


def chat(
    thread: Annotated[str | None, typer.Option(help="Take up this thread; else a new one begins.")] = None,
    last: Annotated[bool, typer.Option("--last", help="Take up the thread that changed last.")] = False,
    agent: Annotated[
        str | None, typer.Option(help="Talk to this agent, whatever a message mentions.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="A model for this conversation.")] = None,
) -> None:
    """Talk to the assistant and to other agents: @name sends a message to one.

    \b
    dragoman chat
    dragoman chat --last
    dragoman chat --thread thr_4f… --agent mailer

    \b
    Where an agent needs a yes or an answer, you are asked. /help shows the commands.
    Ctrl-C stops an answer, Ctrl-D leaves; what is under way then goes on where a service runs.
    Lines of a pipe are messages too, one each.
    """
    with session(as_json=False) as (door, screen):
        if last and thread is None:
            thread = _newest(door)
        names = _agents(door, agent)
        words = [*COMMANDS, *(f"@{name}" for name in names)]
        history = Settings.load().home / "chat_history"
        with open_editor(history, lambda: words) as editor, Interrupts() as interrupts:
            Chat(door, screen, editor, interrupts, {"agent": agent, "model": model}).talk(thread)


class Chat:
    def __init__(
        self,
        door: Door,
        screen: Screen,
        editor: LineEditor,
        interrupts: Interrupts,
        options: Mapping[str, Any],
    ) -> None:
        self._door = door
        self._screen = screen
        self._editor = editor
        self._interrupts = interrupts
        self._options = {name: value for name, value in options.items() if value is not None}
        self._transcript: Transcript = Terminal(screen) if screen.is_terminal else PipedTranscript(screen)
        self._commands = ChatCommands(door, screen)
        self._watching = RunWatcher(door, self._transcript, interrupts, Prompter(door, screen, editor))

    def talk(self, thread: str | None) -> None:
        self._commands.thread = thread
        self._greet()
        if thread is not None:
            self._take_up(thread)
        while (text := self._said()) is not None:
            try:
                if text.startswith("/"):
                    with self._interrupts.waiting():
                        self._commands.run(text)
                else:
                    self._follow(self._posted(text))
            except Leave:
                break
            except KeyboardInterrupt:
                self._screen.note("not waited for; /runs shows whether it arrived")
            except Refused as refused:
                self._screen.fail(refused.problem)
        if self._commands.thread:
            self._screen.note(f"go on with: dragoman chat --thread {self._commands.thread}")

    def _said(self) -> str | None:
        """The next message; None when the person leaves. Ctrl-C drops the line."""
        while True:
            try:
                with self._interrupts.waiting():
                    text = self._editor.say(_YOU)
            except KeyboardInterrupt:
                self._screen.aside("\n[dim]Ctrl-D or /quit leaves[/]")
                continue
            except EOFError:
                if sys.stdin.isatty():
                    self._screen.aside("")
                return None
            if text:
                return text

    def _posted(self, text: str) -> str:
        thread = self._commands.thread
        path = path_of("threads", thread, "messages") if thread else path_of("messages")
        text, files = with_files(text) if sys.stdin.isatty() else (text, {})
        if files:
            self._screen.note(f"attached: {plain(names_of(files))}")
        with self._interrupts.waiting():
            run = self._door.ask("POST", path, {"text": text, **self._options, **files})["run"]
        self._commands.thread = run["thread"]
        return run["id"]

    def _follow(self, run: str) -> None:
        self._blank()
        ending = self._watching.follow(run)
        self._commands.last_run = run
        tell_end(self._door, self._screen, run, ending)
        for line in run_lines.ending(ending.facts, ending.seconds) if ending.facts else ():
            self._transcript.line(f"[dim]{line}[/]")
        self._blank()

    def _blank(self) -> None:
        if self._screen.is_terminal:
            self._transcript.line("")

    def _greet(self) -> None:
        with self._screen.busy("looking for a model …"):
            found = self._door.ask("GET", path_of("models"))["models"]
        model = self._options.get("model") or default_of(found) or OFFLINE
        if model == OFFLINE:
            self._screen.aside(
                "[bold]Dragoman[/] answers with its offline model: it matches words with tools,"
                " it does not think."
            )
            self._screen.aside(f"[dim]For a language model {HOW_TO}.[/]")
        else:
            self._screen.aside(f"[bold]Dragoman[/] answers with [bold]{plain(model)}[/].")
        if sys.stdin.isatty():
            self._screen.aside("[dim]/help shows commands, Ctrl-C stops an answer, Ctrl-D leaves.[/]\n")

    def _take_up(self, thread: str) -> None:
        """The last messages, and whatever is still under way."""
        messages = self._door.ask("GET", path_of("threads", thread, "messages"), limit=_LAST)["messages"]
        _show_messages(self._screen, messages)
        runs = self._door.ask("GET", path_of("runs"), thread=thread, limit=20)["runs"]
        for run in reversed([one for one in runs if one["status"] in ("queued", "running", "waiting")]):
            self._follow(run["id"])


def _show_messages(screen: Screen, messages: Sequence[Mapping[str, Any]]) -> None:
    for message in messages:
        is_person = message["author"] == "person"
        name = "you" if is_person else message["agent"] or message["author"]
        colour = "cyan" if is_person else "magenta"
        heading = f"[bold {colour}]{plain(name)}[/] [dim]{ago(message['created_at'])}[/]"
        if screen.is_terminal:
            screen.show(heading, markdown(message["text"]), "")
        else:
            screen.aside(heading, plain(message["text"], 500))


def _newest(door: Door) -> str | None:
    threads = door.ask("GET", path_of("threads"), limit=1)["threads"]
    return threads[0]["id"] if threads else None


def _agents(door: Door, wanted: str | None) -> list[str]:
    """The names to complete; asks for the wanted one, so that a wrong name is told at once."""
    if wanted is not None:
        door.ask("GET", path_of("agents", wanted.removeprefix("@")))
    return [agent["name"] for agent in door.ask("GET", path_of("agents"))["agents"]]
