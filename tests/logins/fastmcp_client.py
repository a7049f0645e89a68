"""fastmcp's own OAuth client logs in by URL, lists, calls, refreshes. Its browser is `BROWSER`."""

import asyncio
import json
import sys

from fastmcp import Client  # pyright: ignore[reportMissingImports]
from fastmcp.client.auth import OAuth  # pyright: ignore[reportMissingImports]


async def main(url: str) -> None:
    auth = OAuth(url, client_name="fastmcp", callback_host="127.0.0.1")
    async with Client(url, auth=auth) as client:
        names = [tool.name for tool in await client.list_tools()]
        called = await client.call_tool("mcp_mail_echo", {"text": "caffè"})
        first = auth.context.current_tokens
        auth.context.token_expiry_time = 1.0
        again = await client.call_tool("mcp_mail_echo", {"text": "again"})
        texts = [one.content[0].text for one in (called, again)]
        is_refreshed = auth.context.current_tokens.refresh_token != first.refresh_token
        print(json.dumps({"names": names, "texts": texts, "is_refreshed": is_refreshed}), flush=True)


asyncio.run(main(sys.argv[1]))
