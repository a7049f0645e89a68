"""Messages, runs, questions and thumbs by REST, on both databases."""

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from live import Live
from scripted import open_conversations

from dragoman.store import open_store
from servers.hubs import until

pytestmark = pytest.mark.anyio


async def posted(live: Live, text: str, thread: str | None = None, **facts: Any) -> Any:
    """The run, once it has ended or waits."""
    path = f"/api/threads/{thread}/messages" if thread else "/api/messages"
    reply = await live.ask("POST", f"{path}?wait=true", {"text": text, **facts})
    assert reply.status in (200, 202), reply.body
    assert reply.headers["Location"] == f"/api/runs/{reply.value['run']['id']}"
    return reply.value["run"]


async def ended(live: Live, run: Any, status: str = "done", within: float = 10) -> None:
    async def has() -> bool:
        return (await live.ask("GET", f"/api/runs/{run['id']}")).value["run"]["status"] == status

    await until(has, within)


def flat(steps: list[Any]) -> list[str]:
    return [step["kind"] for step in steps]


async def test_a_message_is_accepted_worked_on_and_answered(tmp_path: Path, database_url: str) -> None:
    async with open_conversations(tmp_path, database_url=database_url) as (live, script):
        accepted = await live.ask("POST", "/api/messages", {"text": "hold on"})
        assert accepted.status == 202
        run, message = accepted.value["run"], accepted.value["message"]
        assert (message["number"], message["author"], message["run"]) == (1, "person", run["id"])
        assert run["status"] in ("queued", "running")
        too_early = await live.ask("POST", f"/api/runs/{run['id']}/thumb", {"thumb": 1})
        assert (too_early.status, too_early.value["code"]) == (409, "conflict")
        script.held.set()
        await ended(live, run)
        again = await posted(live, "sum it", run["thread"], max_tools=5, limits={"calls": 9}, cost_limit=1)
        assert (again["status"], again["answer"]) == ("done", "done: sum it [3, 7, 10]")
        assert (again["limits"]["calls"], again["limits"]["cost"]) == (9, 1.0)
        assert again["usage"]["calls"] == 3

        messages = (await live.ask("GET", f"/api/threads/{run['thread']}/messages")).value["messages"]
        assert [one["author"] for one in messages] == ["person", "agent", "person", "agent"]
        later = await live.ask("GET", f"/api/threads/{run['thread']}/messages?after=2&limit=1")
        assert [one["number"] for one in later.value["messages"]] == [3]

        listed = (await live.ask("GET", f"/api/runs?thread={run['thread']}&limit=1")).value
        assert [one["id"] for one in listed["runs"]] == [again["id"]]
        older = (await live.ask("GET", f"/api/runs?before={listed['next_before']}")).value
        assert [one["id"] for one in older["runs"]] == [run["id"]]
        longest = (await live.ask("GET", "/api/runs?sort=longest&limit=1")).value
        assert longest["next"] == longest["runs"][0]["id"]
        rest = (await live.ask("GET", f"/api/runs?sort=longest&after={longest['next']}")).value
        took = [
            datetime.fromisoformat(one["finished_at"]) - datetime.fromisoformat(one["started_at"])
            for one in (*longest["runs"], *rest["runs"])
        ]
        assert took == sorted(took, reverse=True)
        assert ({longest["next"], rest["runs"][0]["id"]}, rest["next"]) == ({run["id"], again["id"]}, None)
        for wrong, status in (("sort=oldest", 422), ("after=run_nobody", 422)):
            assert (await live.ask("GET", f"/api/runs?{wrong}")).status == status
        assert (await live.ask("GET", "/api/runs?status=failed")).value["runs"] == []
        one = (await live.ask("GET", f"/api/runs/{again['id']}")).value
        assert one["run"] == one["family"][0] == again


async def test_a_thumb_is_kept_with_the_answer(tmp_path: Path, database_url: str) -> None:
    async with open_conversations(tmp_path, database_url=database_url) as (live, _):
        run = await posted(live, "hello")
        path = f"/api/threads/{run['thread']}/messages"
        for thumb in (1, -1, 0):
            reply = await live.ask("POST", f"/api/runs/{run['id']}/thumb", {"thumb": thumb})
            assert reply.value == {"run": run["id"], "thumb": thumb}
            asked, answer = (await live.ask("GET", path)).value["messages"]
            assert (answer["details"]["thumb"], answer["details"]["status"]) == (thumb, "done")
            assert "thumb" not in asked["details"]
        assert (await live.ask("POST", f"/api/runs/{run['id']}/thumb", {"thumb": 2})).status == 422


async def test_a_question_is_answered_by_its_door_or_by_a_message(tmp_path: Path, database_url: str) -> None:
    async with open_conversations(tmp_path, database_url=database_url) as (live, _):
        run = await posted(live, "which one")
        assert run["status"] == "waiting"
        (question,) = (await live.ask("GET", f"/api/questions?thread={run['thread']}")).value["questions"]
        assert (question["text"], question["root"], question["status"]) == (
            "Which colour?",
            run["id"],
            "pending",
        )
        path = f"/api/questions/{question['id']}"
        assert (await live.ask("POST", path, {"answer": ""})).value["code"] == "invalid_arguments"
        assert (await live.ask("POST", path, {"answer": "red"})).value["status"] == "answered"
        assert (await live.ask("POST", path, {"answer": "blue"})).value["code"] == "conflict"
        assert (await live.ask("GET", path)).value["answer"] == "red"

        await ended(live, run)
        assert (await live.ask("GET", "/api/questions")).value["questions"] == []
        assert len((await live.ask("GET", "/api/questions?status=all")).value["questions"]) == 1

        asking = await posted(live, "which one", run["thread"])
        told = await posted(live, "green", run["thread"])
        assert (told["id"], told["status"]) == (asking["id"], "done")
        assert "green" in told["answer"]


async def test_a_timeline_tells_what_was_offered_asked_called_and_allowed(
    tmp_path: Path, database_url: str
) -> None:
    async with open_conversations(tmp_path, database_url=database_url) as (live, _):
        assert (await live.ask("POST", "/api/agents", {"name": "helper"})).status == 201
        run = await posted(live, "delegate it", agent="assistant")
        timeline = (await live.ask("GET", f"/api/runs/{run['id']}/timeline")).value
        assert timeline["run"]["id"] == run["id"]
        kinds = flat(timeline["steps"])
        assert kinds[0] == "started"
        assert kinds[-1] == "finished"
        assert {"offered", "model", "call"} <= set(kinds)
        model = next(step for step in timeline["steps"] if step["kind"] == "model")["details"]
        assert model["input_tokens"] > 0
        assert model["duration_ms"] >= 0
        call = next(step for step in timeline["steps"] if step["details"].get("tool") == "ask_agent")
        (inner,) = call["runs"]
        assert inner["run"]["agent"] == "helper"
        assert inner["run"]["parent_call"] == call["details"]["call"]
        assert flat(inner["steps"]).count("finished") == 1
        above, below = (await live.ask("GET", f"/api/runs/{run['id']}/prompts")).value["prompts"]
        assert (above["run"], below["run"]) == (run["id"], inner["run"]["id"])
        assert above["instructions"][0].startswith("You are the assistant of Dragoman")
        assert "ask_agent" in above["functions"]
        assert [one["role"] for one in above["messages"]] == ["user", "model", "call", "result", "model"]
        assert below["instructions"][0].startswith("You are helper")

        kept = await posted(live, "keep it", agent="assistant")
        (asked,) = (await live.ask("GET", "/api/approvals")).value["approvals"]
        await live.ask("POST", f"/api/approvals/{asked['id']}/answer", {"answer": "once"})
        await ended(live, kept)
        reply = await live.ask("GET", f"/api/runs/{kept['id']}/timeline")
        steps = reply.value["steps"]
        approval = next(step for step in steps if step["kind"] == "approval")["details"]
        assert (approval["approval"], approval["status"]) == (asked["id"], "answered")
        call = next(step for step in steps if step["kind"] == "call")["details"]
        assert (call["tool"], call["status"], call["attempts"]) == ("keep", "done", 1)
        assert call["arguments"]["text"] == "a note"
        assert b"canary-77aa" not in reply.body, "a token is not shown"


async def test_several_mentions_are_runs_of_one_family(tmp_path: Path) -> None:
    async with open_conversations(tmp_path) as (live, _):
        for name in ("ann", "bob"):
            await live.ask("POST", "/api/agents", {"name": name})
        run = await posted(live, "@ann and @bob say hello")
        family = (await live.ask("GET", f"/api/runs/{run['id']}")).value["family"]
        assert family[0]["agent"] == ""
        assert {one["agent"] for one in family[1:]} == {"ann", "bob"}
        steps = (await live.ask("GET", f"/api/runs/{run['id']}/timeline")).value["steps"]
        assert flat(steps) == ["started", "run", "run", "finished"]
        listed = (await live.ask("GET", "/api/runs?children=true")).value["runs"]
        assert len(listed) == 3
        assert len((await live.ask("GET", "/api/runs")).value["runs"]) == 1
        stopped = await live.ask("POST", "/api/agents/ann/stop")
        assert stopped.value["status"] == "stopped"
        answer = await posted(live, "@ann hello", run["thread"])
        assert (answer["status"], answer["error"]["code"]) == ("failed", "not_found")
        assert answer["error"]["message"] == "@ann is stopped"
        assert answer["error"]["hint"].startswith("POST /api/agents/ann/start")


async def test_a_run_is_stopped(tmp_path: Path, database_url: str) -> None:
    async with open_conversations(tmp_path, database_url=database_url) as (live, _):
        run = (await live.ask("POST", "/api/messages", {"text": "hold"})).value["run"]
        path = f"/api/runs/{run['id']}"
        assert (await live.ask("POST", f"{path}/cancel")).status == 200
        await ended(live, run, "cancelled", within=2)
        again = await live.ask("POST", f"{path}/cancel")
        assert (again.status, again.value["code"]) == (409, "conflict")
        assert (await posted(live, "hello", run["thread"]))["status"] == "done", "the thread stays usable"


async def test_a_model_that_fails_is_a_failed_run_and_not_a_problem(tmp_path: Path) -> None:
    async with open_conversations(tmp_path) as (live, _):
        reply = await live.ask("POST", "/api/messages", {"text": "break"}, Prefer="respond-async, wait=60")
        run = reply.value["run"]
        assert (reply.status, run["status"]) == (200, "failed")
        assert run["error"]["code"]
        assert (await posted(live, "hello", run["thread"]))["status"] == "done"
        steps = (await live.ask("GET", f"/api/runs/{run['id']}/timeline")).value["steps"]
        assert steps[-1]["details"]["error"] == run["error"]


async def test_who_waits_gets_the_run_as_it_is_when_the_time_is_over(tmp_path: Path) -> None:
    async with open_conversations(tmp_path) as (live, script):
        reply = await live.ask("POST", "/api/messages", {"text": "hold"}, Prefer="wait=1")
        assert (reply.status, reply.value["run"]["status"]) == (202, "running")
        script.held.set()


async def test_who_waits_behind_a_question_is_not_kept_waiting(tmp_path: Path) -> None:
    async with open_conversations(tmp_path) as (live, _):
        first = await posted(live, "which one")
        behind = await posted(live, "hello", first["thread"], agent="assistant")
        assert (first["status"], behind["status"]) == ("waiting", "queued")


async def test_bad_input_is_told_clearly_and_starts_nothing(tmp_path: Path, database_url: str) -> None:
    async with open_conversations(tmp_path, database_url=database_url) as (live, script):
        thread = (await live.ask("POST", "/api/threads", {"title": "t"})).value["id"]
        here = f"/api/threads/{thread}/messages"
        expected: list[tuple[str, str, Any, int, str]] = [
            ("POST", here, {"text": ""}, 422, "invalid_arguments"),
            ("POST", here, {"text": " \n"}, 422, "invalid_arguments"),
            ("POST", here, {"text": "x" * 1_000_000}, 422, "invalid_arguments"),
            ("POST", here, {}, 422, "invalid_request"),
            ("POST", here, {"text": "x", "agnt": "a"}, 422, "invalid_request"),
            ("POST", here, {"text": "x", "agent": "nobody"}, 404, "not_found"),
            ("POST", here, {"text": "x", "model": "no-such-model"}, 422, "invalid_config"),
            ("POST", here, {"text": "x", "model": "openai:gpt-5"}, 422, "invalid_config"),
            ("POST", here, {"text": "x", "exposure": "all"}, 422, "invalid_request"),
            ("POST", here, {"text": "x", "limits": {"cost": -1}}, 422, "invalid_request"),
            ("POST", "/api/threads/none/messages", {"text": "x"}, 404, "not_found"),
            ("POST", "/api/threads/none/messages", {"text": ""}, 404, "not_found"),
            ("GET", "/api/threads/none/messages", None, 404, "not_found"),
            ("GET", "/api/threads/none/events", None, 404, "not_found"),
            ("GET", f"/api/threads/{thread}/events?after=zero", None, 422, "invalid_request"),
            ("GET", "/api/runs/none", None, 404, "not_found"),
            ("GET", "/api/runs/none/timeline", None, 404, "not_found"),
            ("GET", "/api/runs/none/events", None, 404, "not_found"),
            ("POST", "/api/runs/none/cancel", None, 404, "not_found"),
            ("POST", "/api/runs/none/thumb", {"thumb": 1}, 404, "not_found"),
            ("GET", "/api/runs?status=odd", None, 422, "invalid_request"),
            ("GET", "/api/runs?before=0001-01-01T00:00:00%2B14:00", None, 422, "invalid_request"),
            ("GET", "/api/questions/none", None, 404, "not_found"),
            ("POST", "/api/questions/none", {"answer": "x"}, 404, "not_found"),
            ("POST", "/api/questions/none", {"answer": 1}, 422, "invalid_request"),
        ]
        for method, path, body, status, code in expected:
            reply = await live.ask(method, path, body)
            where = (method, path, str(body)[:80], reply.body)
            assert (reply.status, reply.value.get("code")) == (status, code), where
        for text in ("\x00", "half \ud800"):
            reply = await live.ask("POST", here, {"text": text})
            assert reply.status in (202, 422), reply.body
        odd = await live.ask("GET", "/api/runs/none/events", **{"Last-Event-ID": "x"})
        assert odd.status == 422
        assert (await live.ask("GET", here)).status == 200
        assert (await posted(live, "hello", thread))["status"] == "done"
        assert script.asked <= 3


async def test_an_answer_must_fit_the_fields_that_a_tool_asked_for(tmp_path: Path) -> None:
    from datetime import UTC, datetime, timedelta

    from dragoman.run import Question

    async with open_conversations(tmp_path) as (live, script):
        run = (await live.ask("POST", "/api/messages", {"text": "hold"})).value["run"]
        caller = live.hub.caller
        fields = {"type": "object", "properties": {"size": {"type": "integer"}}, "required": ["size"]}
        question = Question(
            id="qst_1",
            workspace=caller.workspace,
            user=caller.user,
            thread=run["thread"],
            run=run["id"],
            root=run["id"],
            key="t1:c1",
            agent="assistant",
            text="How large?",
            fields=fields,
            expires_at=datetime.now(UTC) + timedelta(hours=1),
        )
        async with open_store(live.hub.settings.store_url) as store:
            await store.runs.ask(question)
        for answer in ("three", {"size": "three"}, {}):
            refused = await live.ask("POST", "/api/questions/qst_1", {"answer": answer})
            assert (refused.status, refused.value["code"]) == (422, "invalid_arguments"), answer
        taken = await live.ask("POST", "/api/questions/qst_1", {"answer": {"size": 3}})
        assert taken.value["answer"] == {"size": 3}
        script.held.set()


async def test_a_file_by_rest_is_either_text_or_bytes(tmp_path: Path) -> None:
    async with open_conversations(tmp_path) as (live, _):
        for file in (
            {"name": "a.txt"},
            {"name": "a.txt", "text": "x", "data": "eA=="},
            {"name": "a", "data": "?"},
        ):
            refused = await live.ask("POST", "/api/messages", {"text": "look", "attachments": [file]})
            assert (refused.status, refused.value["code"]) == (422, "invalid_request"), file
        file = {"name": "a.txt", "data": "aGVyb24="}
        accepted = await live.ask("POST", "/api/messages", {"text": "look", "attachments": [file]})
        (told,) = accepted.value["message"]["details"]["attachments"]
        assert (told["name"], told["media_type"], told["size"]) == ("a.txt", "text/plain", 5)
        assert (await live.ask("GET", f"/api/results/{told['handle']}")).body == b"heron"
