"""A hook that somebody else decides, over real HTTP: signed, asked again once, and closed when it is away."""

import hmac
from base64 import b64encode
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from dragoman import Caller, Hub
from patience import patient
from servers.hubs import open_hub

pytestmark = pytest.mark.anyio
SECRET = "a secret for webhooks"
Answer = Callable[[dict[str, Any]], web.StreamResponse]


@asynccontextmanager
async def guard(answer: Answer, secret: str = SECRET) -> AsyncGenerator[tuple[str, list[dict[str, Any]]]]:
    """A service that checks signatures and answers as the test says."""
    asked: list[dict[str, Any]] = []

    async def handle(request: web.Request) -> web.StreamResponse:
        body = await request.read()
        signed = f"{request.headers['webhook-id']}.{request.headers['webhook-timestamp']}.".encode() + body
        mac = b64encode(hmac.new(secret.encode(), signed, sha256).digest()).decode()
        assert request.headers["webhook-signature"] == f"v1,{mac}"
        asked.append(await request.json())
        return answer(asked[-1])

    app = web.Application()
    app.router.add_post("/check", handle)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/check", asked
    finally:
        await runner.cleanup()


def guarded_hub(home: Path, url: str) -> AbstractAsyncContextManager[Hub]:
    return open_hub(home, hooks=(f"webhook {url} before",), hook_secret=SECRET)


def offer(hub: Hub) -> Callable[[str], Awaitable[Any]]:
    @hub.tool
    def echo(text: str) -> str:
        """Says it again."""
        return text

    return lambda text: hub.call("echo", {"text": text})


async def test_a_webhook_refuses_changes_and_notes(tmp_path: Path) -> None:
    def decide(asked: dict[str, Any]) -> web.StreamResponse:
        if asked["type"] == "tool.after":
            text = asked["output"]["content"][0]["text"]
            return web.json_response(
                {"output": {"content": [{"type": "text", "text": f"<{text}>"}]}, "notes": ["seen"]}
            )
        if asked["call"]["arguments"]["text"] == "bad":
            return web.json_response({"refuse": "it is bad"})
        return web.Response(status=204)

    async with (
        guard(decide) as (url, asked),
        open_hub(tmp_path, hooks=(f"webhook {url}",), hook_secret=SECRET) as hub,
    ):
        call = offer(hub)
        refused = await call("bad")
        assert refused.error is not None
        assert refused.error.message == "the hook webhook refuses this call: it is bad"
        good = await call("good")
        assert good.result == "<good>"
        assert good.metadata.warnings == ("webhook: seen",)
        assert [one["type"] for one in asked] == ["tool.before", "tool.before", "tool.after"]
        assert asked[0]["call"]["tool"] == "echo"
        assert asked[0]["call"]["user"] == "owner"


async def test_one_that_cannot_answer_now_is_asked_again_once(tmp_path: Path) -> None:
    answers = [web.Response(status=503), web.Response(status=204)]
    async with guard(lambda asked: answers.pop(0)) as (url, asked), guarded_hub(tmp_path, url) as hub:
        assert (await offer(hub)("hello")).ok
        assert len(asked) == 2


@pytest.mark.parametrize(
    "answer",
    [
        web.Response(status=500),
        web.Response(text="yes"),
        web.json_response(["yes"]),
        web.json_response({"allow": True}),
        web.json_response({"refuse": {"why": "no"}}),
        web.Response(status=302, headers={"Location": "http://127.0.0.1:1/"}),
    ],
    ids=["500", "no JSON", "a list", "unknown words", "no text", "a redirect"],
)
async def test_what_is_no_answer_refuses(tmp_path: Path, answer: web.Response) -> None:
    async with guard(lambda asked: answer) as (url, _), guarded_hub(tmp_path, url) as hub:
        output = await offer(hub)("hello")
        assert output.error is not None
        assert output.error.code == "hook_failed"


async def test_one_that_is_away_refuses_or_lets_pass_as_its_rule_says(tmp_path: Path) -> None:
    away = "webhook http://127.0.0.1:9/check before"
    async with open_hub(tmp_path, hook_secret=SECRET) as hub:
        call = offer(hub)
        await hub.people.update_workspace("local", hooks=[away])
        assert not (await call("hello")).ok
        await hub.people.update_workspace("local", hooks=[f"{away} open"])
        assert (await call("hello")).ok


async def test_in_a_shared_installation_a_workspaces_webhook_reaches_no_inside_address(
    tmp_path: Path,
) -> None:
    def yes(asked: dict[str, Any]) -> web.StreamResponse:
        return web.Response(status=204)

    async with guard(yes) as (url, asked), open_hub(tmp_path, hook_secret=SECRET, multi_user=True) as hub:
        call = offer(hub)
        await hub.people.update_workspace("local", hooks=[f"webhook {url} before timeout={patient(2)}"])
        output = await call("hello")
        assert output.error is not None
        assert output.error.code == "hook_failed"
        assert asked == []
        member = Caller(workspace="local", user="owner", role="admin")
        tried = await hub.acting_for(member).hooks.try_rule(f"webhook {url}", "hello")
        assert tried.refused is not None
        assert asked == []


async def test_what_people_ask_for_is_not_signed_as_the_operators(tmp_path: Path) -> None:
    def yes(asked: dict[str, Any]) -> web.StreamResponse:
        return web.Response(status=204)

    settings: dict[str, Any] = {"multi_user": True, "allowed_networks": ("127.0.0.0/8",)}
    own = hmac.new(SECRET.encode(), b"local", sha256).hexdigest()
    async with guard(yes, own) as (url, asked), open_hub(tmp_path, hook_secret=SECRET, **settings) as hub:
        call = offer(hub)
        await hub.people.update_workspace("local", hooks=[f"webhook {url} before"])
        assert (await call("hello")).ok
        assert len(asked) == 1
        member = hub.acting_for(Caller(workspace="local", user="ada"))
        assert (await member.hooks.try_rule(f"webhook {url}", "hello")).refused is not None, (
            "another's secret"
        )
