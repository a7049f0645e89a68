"""A hook that somebody else decides: an address that is asked about every call, result and list.

Requests are signed as Standard Webhooks has it: HMAC-SHA256 over id, time and body. Asked again once where it
could not be reached or says that it cannot answer now; what is no answer then is a fault of the hook.
"""

import asyncio
import hmac
from base64 import b64encode
from collections.abc import Mapping, Sequence
from hashlib import sha256
from time import time
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

import orjson

from dragoman.hook_rule import HookRule, Moment
from dragoman.hooks.protocol import Hook, HookedCall, Json, Verdict
from dragoman.loading import LateModule
from dragoman.remote_data import read_body
from dragoman.tool import ToolDefinition

if TYPE_CHECKING:
    import aiohttp
else:
    aiohttp = LateModule("aiohttp")


_LARGEST_ANSWER = 16 * 1024 * 1024
_TRIES = 2
_PAUSE = 0.2
_LATER = frozenset({429, 502, 503, 504})


class WebhookHook(Hook):
    def __init__(self, rule: HookRule, client: "aiohttp.ClientSession", secret: str | None) -> None:
        url = rule.values[0] if len(rule.values) == 1 else ""
        if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname or rule.action:
            raise ValueError("write it as `webhook https://guard.example.com/check timeout=3`")
        if not secret:
            raise ValueError("a webhook needs a secret to sign with: the operator sets DRAGOMAN_HOOK_SECRET")
        self._url = url
        self._client = client
        self._secret = secret.encode()

    async def before(self, call: HookedCall) -> Verdict | None:
        return _verdict(await self._asked("before", {"call": _told(call)}))

    async def after(self, call: HookedCall, output: Json) -> Verdict | None:
        return _verdict(await self._asked("after", {"call": _told(call), "output": output}))

    async def listed(self, connector: str, tools: Sequence[ToolDefinition]) -> Mapping[str, str]:
        told = [
            {"name": one.original_name, "description": one.description, "inputSchema": one.input_schema}
            for one in tools
        ]
        answer = await self._asked("listed", {"connector": connector, "tools": told})
        held: Any = answer.get("held", {})
        if not isinstance(held, dict):
            raise TypeError("its `held` is no object of names and reasons")
        return {str(name): str(why) for name, why in cast("dict[Any, Any]", held).items()}

    async def _asked(self, moment: Moment, facts: Mapping[str, Any]) -> Json:
        body = orjson.dumps({"type": f"tool.{moment}", **facts}, option=orjson.OPT_NON_STR_KEYS)
        for left in reversed(range(_TRIES)):
            try:
                status, answer = await self._posted(body)
            except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError):
                if not left:
                    raise
            else:
                if status == 200:
                    return _object(answer)
                if status == 204:
                    return {}
                if status not in _LATER or not left:
                    raise ValueError(f"it answered {status}")
            await asyncio.sleep(_PAUSE)
        raise AssertionError("the last try returns or raises")

    async def _posted(self, body: bytes) -> tuple[int, bytes]:
        headers = {"Content-Type": "application/json", **_signed(self._secret, body)}
        async with self._client.post(self._url, data=body, headers=headers, allow_redirects=False) as answer:
            return answer.status, await read_body(answer, _LARGEST_ANSWER)


def _signed(secret: bytes, body: bytes) -> dict[str, str]:
    stamp = str(int(time()))
    identity = f"msg_{sha256(body + stamp.encode()).hexdigest()[:24]}"
    mac = hmac.new(secret, f"{identity}.{stamp}.".encode() + body, sha256).digest()
    return {
        "webhook-id": identity,
        "webhook-timestamp": stamp,
        "webhook-signature": f"v1,{b64encode(mac).decode()}",
    }


def _told(call: HookedCall) -> dict[str, Any]:
    return {name: getattr(call, name) for name in call.__dataclass_fields__}


def _object(body: bytes) -> Json:
    answer: Any = orjson.loads(body)
    if not isinstance(answer, dict):
        raise TypeError("its answer is no JSON object")
    return cast("Json", answer)


def _verdict(answer: Json) -> Verdict | None:
    if not answer:
        return None
    unknown = answer.keys() - {"refuse", "ask", "arguments", "output", "notes", "found"}
    if unknown:
        raise ValueError(f"its answer says {sorted(unknown)[0][:40]!r}, which means nothing here")
    facts: dict[str, Any] = {**answer, "notes": tuple(answer.get("notes", ()))}
    return Verdict(**facts)
