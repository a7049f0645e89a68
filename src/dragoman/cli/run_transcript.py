"""What the events of one run, and of those under it, add to a transcript."""

from datetime import datetime

from dragoman.cli import run_lines
from dragoman.cli.active_agents import ActiveAgents
from dragoman.cli.run_events import Event
from dragoman.cli.screen import plain
from dragoman.cli.transcript import Transcript

_BRIEF = 200
_MENTION = "mention:"  # how the call of a run begins that several were asked for by a person


class RunTranscript:
    """Text of the agent that the person wrote to comes as it is said; of others, when they are done."""

    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript
        self._said = ""
        self._turn: int = 0
        self._mentioned: set[str] = set()
        self._began: datetime | None = None
        self._time: datetime | None = None
        self.at_work = ActiveAgents()

    @property
    def seconds(self) -> float | None:
        return (self._time - self._began).total_seconds() if self._began and self._time else None

    def hear(self, event: Event) -> None:
        self.at_work.hear(event)
        self._time = datetime.fromisoformat(event["time"])
        if event["kind"].startswith("run."):
            self._hear_run(event)
        elif event["kind"].startswith("call."):
            self._hear_call(event)
        elif event["kind"] == "text" and _is_root(event):
            self._text(event)
        elif event["kind"] == "text.discarded" and _is_root(event) and self._said:
            self._said = ""
            self._line(event, "[dim]… begins again[/]")
        elif event["kind"] == "plan.stated":
            for line in ["[dim]plan[/]", *run_lines.plan_lines(event["data"]["steps"])]:
                self._line(event, line)
        self._transcript.working(self.at_work.line())

    def _hear_run(self, event: Event) -> None:
        data = event["data"]
        match event["kind"]:
            case "run.started" if _is_root(event):
                self._began = self._time
                if event["agent"]:
                    self._transcript.heading(event["agent"])
            case "run.started":
                if str(data.get("call", "")).startswith(_MENTION):
                    self._mentioned.add(event["run"])
            case "run.resumed":
                self._line(event, "[dim]goes on after an interruption[/]")
            case "run.finished" if _is_root(event):
                if data["answer"] and not self._said.strip():
                    self._transcript.text(data["answer"])
                self._transcript.end_text()
            case "run.finished":
                self._child_ended(event)
            case _:
                pass

    def _child_ended(self, event: Event) -> None:
        data = event["data"]
        error = str(data["error"]["message"] if data["error"] else data["status"])
        if event["run"] not in self._mentioned:
            if data["status"] == "done":
                said = plain(data["answer"] or "", _BRIEF)
                self._line(event, f"[green]✓[/] [dim]{said or 'done'}[/]")
            else:
                self._line(event, f"[red]✗[/] [red]{plain(error, _BRIEF)}[/]")
            return
        self._transcript.heading(event["agent"])
        if data["status"] == "done":
            self._transcript.text(data["answer"] or "")
            self._transcript.end_text()
        else:
            self._transcript.line(f"[red]✗[/] {plain(error)}")

    def _hear_call(self, event: Event) -> None:
        data = event["data"]
        title = self.at_work.titles.get((event["run"], data["call"])) or str(data.get("tool", ""))
        match event["kind"]:
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

    def _text(self, event: Event) -> None:
        if event["data"]["turn"] != self._turn:
            self._transcript.end_text()
            self._turn, self._said = event["data"]["turn"], ""
        self._said += event["data"]["delta"]
        self._transcript.text(event["data"]["delta"])

    def _line(self, event: Event, markup: str) -> None:
        """What happens under a delegation is set in, with the name of who does it."""
        depth = self.at_work.depth(event["run"])
        if depth or event["run"] in self._mentioned:
            markup = f"{'  ' * depth}[bold]{plain(event['agent'])}[/] {markup}"
        self._transcript.line(markup)


def _is_root(event: Event) -> bool:
    return event["run"] == event["root"]
