"""What browsers are told of every page of the console: nothing runs that stands in the page or elsewhere."""

import re
from pathlib import Path

import pytest
from starlette.responses import Response

from api.live import open_service
from dragoman.console.app import ROUTES

pytestmark = pytest.mark.anyio
INLINE = re.compile(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son[a-z]+=|javascript:", re.IGNORECASE)
LASTING = ("/log/events",)


async def test_no_page_of_the_console_runs_what_is_not_its_own(tmp_path: Path) -> None:
    async with open_service(tmp_path) as live:
        signed_in = Response()
        await live.doors.sessions.begin(signed_in, live.token)
        cookie = signed_in.headers["set-cookie"].partition(";")[0]
        plain = [one.path for one in ROUTES if "GET" in (one.methods or ()) and "{" not in one.path]
        pages = [path for path in plain if path not in LASTING]
        assert len(pages) > 20
        for path in (*pages, "/connectors/missing", "/agents/missing", "/chat/missing"):
            reply = await live.ask("GET", path, Cookie=cookie)
            policy = dict(
                directive.strip().split(" ", 1)
                for directive in reply.headers["content-security-policy"].split(";")
            )
            assert policy.pop("img-src").split() == ["'self'", "data:"]
            assert policy["default-src"] == "'none'", path
            assert set(policy.values()) == {"'none'", "'self'"}, path
            if reply.headers.get("content-type", "").startswith("text/html"):
                assert INLINE.findall(reply.body.decode()) == [], path
