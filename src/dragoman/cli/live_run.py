"""A run as it happens, for whoever watches it: what is said, what is done, and who is at work."""

from datetime import datetime

from dragoman.cli import run_lines
from dragoman.cli.screen import plain
from dragoman.cli.transcript import Transcript
from dragoman.run import RunEvent
from dragoman.run_progress import RunProgress, RunTree

_BRIEF = 200
_TO_PERSON = "ask_person"


class LiveRun:
    """Text of the agent that the person wrote to comes as it is said; of others, when they are done."""

    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript
        self._said = ""  # since the last call, and as far as it counts
        self._turn: int = 0
        self._began: datetime | None = None
        self._time: datetime | None = None
        self.tree = RunTree()

    @property
    def seconds(self) -> float | None:
        return (self._time - self._began).total_seconds() if self._began and self._time else None

    def hear(self, event: RunEvent) -> None:
        self.tree.hear(event)
        self._time = event.time
        if event.kind.startswith("run."):
            self._hear_run(event)
        elif event.kind.startswith("call."):
            self._hear_call(event)
        elif event.kind == "text" and _is_root(event):
            self._text(event)
        elif event.kind == "text.discarded" and _is_root(event):
            if self._said and self._turn >= event.data["turn"]:
                self._said = ""
                self._line(event, "[dim]… begins again[/]")
        elif event.kind == "notice":
            self._line(event, f"[yellow]![/] {plain(event.data['text'])}")
        elif event.kind == "plan.stated":
            for line in ["[dim]plan[/]", *run_lines.plan_lines(event.data["steps"])]:
                self._line(event, line)
        self._transcript.working(at_work(self.tree))

    def _hear_run(self, event: RunEvent) -> None:
        data = event.data
        match event.kind:
            case "run.started" if _is_root(event):
                self._began = self._time
                if event.agent:
                    self._transcript.heading(event.agent)
            case "run.resumed":
                self._line(event, "[dim]goes on after an interruption[/]")
            case "run.finished" if _is_root(event):
                if data["answer"] and not self._said.strip():
                    self._transcript.text(data["answer"])
                self._transcript.end_text()
                # What was streamed is on the screen with its marks; that some lead nowhere is said below it.
                note = str(data["answer"] or "").rpartition("\n\n")[2]
                if self._said.strip() and note and note not in self._said and note.endswith("removed.)"):
                    self._line(event, f"[dim]{plain(note)}[/]")
            case "run.finished":
                self._child_ended(event)
            case _:
                pass

    def _child_ended(self, event: RunEvent) -> None:
        data = event.data
        error = str(data["error"]["message"] if data["error"] else data["status"])
        if not self.tree.runs[event.run].is_mentioned:
            if data["status"] == "done":
                said = plain(data["answer"] or "", _BRIEF)
                self._line(event, f"[green]✓[/] [dim]{said or 'done'}[/]")
            else:
                self._line(event, f"[red]✗[/] [red]{plain(error, _BRIEF)}[/]")
            return
        self._transcript.heading(event.agent)
        if data["status"] == "done":
            self._transcript.text(data["answer"] or "")
            self._transcript.end_text()
            for one in data.get("contexts", ()):
                self._line(event, f"[dim]{run_lines.source(one)}[/]")
        else:
            self._transcript.line(f"[red]✗[/] {plain(error)}")

    def _hear_call(self, event: RunEvent) -> None:
        data = event.data
        call = self.tree.call(event.run, data["call"])
        title = run_lines.title_of(call.facts if call is not None else data)
        match event.kind:
            case "call.started":
                if _is_root(event):
                    self._said = ""
                if run_lines.is_shown(data["tool"]):
                    self._line(event, run_lines.call_started(data))
            case "call.progress" if data.get("message") or data.get("total"):
                self._line(event, run_lines.progress(data, title))
            case "call.finished" if run_lines.tells_end(data):
                self._line(event, run_lines.call_finished(data, title))
            case _:
                pass

    def _text(self, event: RunEvent) -> None:
        if event.data["turn"] != self._turn:
            self._transcript.end_text()
            self._turn, self._said = event.data["turn"], ""
        self._said += event.data["delta"]
        self._transcript.text(event.data["delta"])

    def _line(self, event: RunEvent, markup: str) -> None:
        """What happens under a delegation is set in, with the name of who does it."""
        depth = self.tree.depth(event.run)
        if depth or self.tree.runs[event.run].is_mentioned:
            markup = f"{'  ' * depth}[bold]{plain(event.agent)}[/] {markup}"
        self._transcript.line(markup)


def at_work(tree: RunTree) -> str:
    """`email runs Read emails · tracker is typing`: exactly those at work, and what they execute."""
    return " · ".join(filter(None, (_activity(tree, run) for run in tree.active())))


def _activity(tree: RunTree, run: RunProgress) -> str:
    if not run.agent or tree.active_children(run):
        return ""
    path = f"{_chain(tree, run)}{run.agent}"
    calls = [call for call in run.calls() if call.is_open]
    if not calls:
        return f"{path} is typing"
    titles = [run_lines.title_of(call.facts) for call in calls if call.tool != _TO_PERSON]
    if not titles or any(ask.is_open and ask.kind == "approval" for ask in run.asks()):
        return f"{path} waits for you"
    return f"{path} runs {', '.join(dict.fromkeys(titles))}"


def _chain(tree: RunTree, run: RunProgress) -> str:
    """Who asked it, and who asked them."""
    parent = tree.runs.get(run.parent or "")
    if parent is None or not parent.is_active or not parent.agent:
        return ""
    return f"{_chain(tree, parent)}{parent.agent} › "


def _is_root(event: RunEvent) -> bool:
    return event.run == event.root
