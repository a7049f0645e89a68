"""What a model is told of the sandbox before it writes code."""

from dragoman.sandbox.limits import CodeLimits


def guide(limits: CodeLimits) -> str:
    """The description of `run_code`."""
    return f"""Run Python that calls tools. Use it for many calls, many rows, or steps that need each other's
results: intermediate results stay in the sandbox; only what you print or return comes back.

Tools are async functions in groups named after their connectors (a hyphen becomes an underscore):
    issues = await github.list_issues(repo="a/b", state="open")
    first, second = await asyncio.gather(github.get_issue(number=1), github.get_issue(number=2))
Native tools stand alone: await add(1, 2). Required parameters may be given by position, others by name.
    await search_tools("open an issue", limit=5)   # [{{"name": "github.create_issue", "description": …}}]
    print(await describe_tool("github.create_issue"))   # signature, parameters, what it returns
    await call_tool("mcp_github_create_issue", {{"title": "…"}})   # by any name
A call that fails raises RuntimeError whose text is code, message and hint: catch it where you can go on.

The value of the last expression, or of `return`, is the result; it must be JSON (dict, list, str, numbers).
Works: functions, async functions, classes without inheritance, dataclasses, comprehensions, match, f-strings,
asyncio.gather, json, re, datetime, collections, itertools, functools, math, csv, decimal, random, base64.
Missing: class inheritance, @property, @staticmethod, yield, del, async with, async for,
asyncio.create_task, wait_for, gather(return_exceptions=…), statistics, enum, heapq, string, operator,
and every other module.
There are no files, no network, no environment, no processes.

Limits: {limits.execution:g} s of computing, {limits.wall:g} s in all, {limits.memory // 2**20} MB,
{limits.calls} calls, {limits.output // 1024} KB printed and returned together."""
