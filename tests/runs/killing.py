"""Kills at writes of the journal, and what must be true after the restart. For the suite and the bench."""

import json
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Any, Self

PROGRAM = Path(__file__).parent / "kill_program.py"
LONG = "a long story"
CALLS = {  # by id and turn, in the order in which the model is told
    "look": ["a", "c after <post of b after <look of a>>", "d"],
    "post": ["b after <look of a>", "e", "f"],
    "pay": ["g"],
}


class Lives:
    """The program of `kill_program`: one process at a time works on a home, and may die at it."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, str(PROGRAM)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()

    def live(self, home: Path, ledger: str, **order: Any) -> int:
        """How the process ended: 0, or minus the signal."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(
            json.dumps({"home": str(home), "ledger": ledger, **order}), file=self._process.stdin, flush=True
        )
        return json.loads(self._process.stdout.readline())["ended"]


class Scene:
    """A home with a connector to the ledger server; every story has a copy of it, and a ledger of its own."""

    def __init__(self, lives: Lives, folder: Path, url: str) -> None:
        self._lives = lives
        self._folder = folder
        self._template = folder / "template"
        self._template.mkdir()
        self._stories = 0
        assert lives.live(self._template, "none", prepare=True, url=url) == 0

    def repetition(self, number: int) -> bool:
        """The same of a run whose model asks for the same call again and again."""
        name, home = self._prepared(f"repeat{number}")
        ended = self._lives.live(home, name, die_at=number, moment="after", request="repeat")
        if ended:
            assert self._lives.live(home, name) == 0
        result = json.loads((home / "result.json").read_text())
        check_repetition(result, executed(self._folder, name, "began"), name)
        shutil.rmtree(home)
        return ended != 0

    def recipe(self, number: int) -> bool:
        """Dies at the n-th write of keeping and sharing a recipe, and does both once more."""
        name, home = self._prepared(f"recipe{number}")
        assert self._lives.live(home, name, request="@ledger look") == 0
        ended = self._lives.live(home, name, recipe=number)
        assert ended in (0, -signal.SIGKILL)
        if ended:
            assert self._lives.live(home, name, recipe=0) == 0
        told = json.loads((home / "result.json").read_text())
        recipes = {"recipe": "1. mcp_ledger_look(text: string, ledger: string)", "shared": "1. look twice"}
        assert told == {"recipes": recipes, "is_whole": True}, name
        shutil.rmtree(home)
        return ended != 0

    def long_story(self, number: int, moment: str, url: str) -> bool:
        """The same in a long thread: a summary, a file, a server that asks, an answer that is continued.

        `url` is of the server that asks.
        """
        talked = self._folder / "talked"
        if not talked.exists():
            shutil.copytree(self._template, talked)
            assert self._lives.live(talked, "none", talk=True, request=LONG, url=url) == 0
        name, home = self._prepared(f"long{moment}{number}", talked)
        ended = self._lives.live(home, name, die_at=number, moment=moment, request=LONG)
        assert ended in (0, -signal.SIGKILL)
        if ended:
            assert self._lives.live(home, name, request=LONG) == 0
        check_long_story(json.loads((home / "result.json").read_text()), name)
        shutil.rmtree(home)
        return ended != 0

    def _prepared(self, title: str, template: Path | None = None) -> tuple[str, Path]:
        """The name of another story, and a home for it."""
        self._stories += 1
        name = f"{title}-{self._stories}"
        shutil.copytree(template or self._template, self._folder / name)
        return name, self._folder / name

    def story(self, number: int, moment: str) -> bool:
        """Dies at the n-th write, lives again, is checked. False when there was no n-th write to die at."""
        name, home = self._prepared(f"{moment}{number}")
        ended = self._lives.live(home, name, die_at=number, moment=moment)
        assert ended in (0, -signal.SIGKILL)
        finished = _finished(home)
        before = executed(self._folder, name, "began")
        if ended:
            assert self._lives.live(home, name) == 0
        check(json.loads((home / "result.json").read_text()), executed(self._folder, name, "began"), name)
        for call in finished:  # what was finished before the kill was not done again
            assert executed(self._folder, name, "began")[call] == before[call] == 1, (name, call)
        shutil.rmtree(home)
        return ended != 0


def executed(folder: Path, ledger: str, moment: str) -> Counter[tuple[str, str]]:
    path = folder / f"{ledger}.ledger"
    lines = path.read_text().splitlines() if path.exists() else []
    parts = [line.split(" ", 2) for line in lines]
    return Counter((tool, text) for word, tool, text in parts if word == moment)


def _finished(home: Path) -> set[tuple[str, str]]:
    """Tool and argument of each call whose end is in the journal, as the ledger names them."""
    (database,) = home.rglob("*.db")
    with closing(sqlite3.connect(database)) as connection:
        rows = connection.execute("SELECT content FROM run_steps WHERE kind = 'call.finished'").fetchall()
    told = [json.loads(content) for (content,) in rows]
    found: set[tuple[str, str]] = set()
    for one in told:
        if one["ok"]:
            content = one["content"]
            brought = content["result"] if isinstance(content, dict) else content
            tool, _, text = str(brought).partition(" of ")
            found.add((tool, text.replace("\n", " ")))
    return found


def check(result: dict[str, Any], began: Counter[tuple[str, str]], name: str) -> None:
    assert result["status"] == "done", (name, result["error"])
    told = json.loads(result["answer"].removeprefix("All of it: "))
    assert [call for call, _ in told] == ["1", "1", "1", "x", "y", "z", "1"], name
    look_a, post_b, look_c, look_d, post_e, post_f, pay_g = [text for _, text in told]
    assert look_a == "look of a", (name, told)
    assert look_c == f"look of c after <{post_b}>", name
    assert look_d == "look of d", name
    certain = {("post", "b after <look of a>"): post_b, ("post", "e"): post_e, ("post", "f"): post_f}
    certain[("pay", "g")] = pay_g
    for (tool, text), answer in certain.items():
        if "not known whether" in answer:
            assert began[(tool, text)] <= 1, (name, tool, text)
        else:
            assert answer == f"{tool} of {text}", name  # no result of another call
            assert began[(tool, text)] == 1, (name, tool, text)
    assert sum("not known whether" in answer for answer in certain.values()) <= 2, name
    assert all(count <= 2 for count in began.values()), name
    check_story(result, name)


def check_long_story(result: dict[str, Any], name: str) -> None:
    assert result["status"] == "done", (name, result["error"])
    assert result["answer"] == "The first half, and the second, the file, the summary.", name
    assert result["questions"] == ["answered"], name  # asked once
    calls = [key for kind, key in result["steps"] if kind == "call.finished"]
    assert len(calls) == 1, (name, calls)
    said = [author for author, _ in result["messages"]]
    talk = ["person", "agent"] * 3
    assert said == [*talk, "person", "system", "agent"], (name, said)  # summed up once
    assert result["messages"][-2][1].endswith("They talked."), name
    kinds = Counter(kind for _, kind in result["events"])
    assert (kinds["run.started"], kinds["run.finished"]) == (1, 1), (name, kinds)
    numbers = [number for number, _ in result["events"]]
    assert numbers == sorted(set(numbers)), name


def check_repetition(result: dict[str, Any], began: Counter[tuple[str, str]], name: str) -> None:
    """Two results, three times told, then the end; a call that was under way at the kill is one more."""
    assert result["error"]["code"] == "limit_reached", (name, result["error"])
    calls = [key for kind, key in result["steps"] if kind == "call.finished"]
    is_uncertain = len(calls) > 5
    assert len(calls) <= 7, (name, calls)
    assert began[("post", "the same")] == 2 or is_uncertain, (name, began)


def check_story(result: dict[str, Any], name: str) -> None:
    """What a person saw of it."""
    numbers = [number for number, _ in result["events"]]
    assert numbers == sorted(set(numbers)), name
    kinds = Counter(kind for _, kind in result["events"])
    assert (kinds["run.queued"], kinds["run.started"], kinds["run.finished"]) == (1, 1, 1), (name, kinds)
    assert kinds["message.added"] == 1, name
    assert [author for author, _ in result["messages"]] == ["person", "agent"], name
    assert [status for _, status in result["approvals"]] == ["used"], name  # asked once, used once
    keys = [key for kind, key in result["steps"] if kind == "call.finished"]
    assert len(keys) == len(set(keys)) == 7, (name, keys)
