"""Where trials are made: a lane is a hub with the connectors of the file, and makes one trial at a time.

A file with connectors of its own gets lanes of their own: a home and a folder for data, both temporary, so
that nothing of this installation is read or changed. Without, there is one hub, this installation's, and a
lane is only a place in the queue.
"""

import asyncio
import shutil
import sys
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from dragoman.agent import ASSISTANT
from dragoman.errors import InvalidConfig, Unreachable
from dragoman.evaluation.cases import Case, CaseVariant, EvaluationFile
from dragoman.evaluation.trials import Trial, Trials
from dragoman.examples import examples
from dragoman.hub import Hub
from dragoman.names import alias_name, did_you_mean
from dragoman.private_files import make_private_directory

_START_LIMIT = 60.0
_STOP_LIMIT = 10.0
FUNCTIONS = (
    *("manage", "ask_person", "ask_agent", "query_mcp_connector", "search_tools", "run_code", "state_plan"),
)


@dataclass(slots=True)
class Lane:
    """`data` is None where the connectors are this installation's own."""

    hub: Hub
    data: Path | None
    names: Mapping[str, str]
    instructions: str | None = None

    async def make(self, case: Case, name: str, variant: CaseVariant) -> Trial:
        """A trial that begins with fresh data, and leaves no agent or connector behind that it made."""
        if self.data is None:
            return await Trials(self.hub, self.names).make(case, name, variant)
        await asyncio.to_thread(_empty, self.data)
        if variant.instructions != self.instructions:
            await self.hub.agents.update(ASSISTANT, instructions=variant.instructions)
            self.instructions = variant.instructions
        agents, connectors = await self._made()
        trial = await Trials(self.hub, self.names).make(case, name, variant)
        agents_after, connectors_after = await self._made()
        for agent in agents_after - agents:
            await self.hub.agents.remove(agent)
        for connector in connectors_after - connectors:
            await self.hub.connectors.remove(connector)
        return trial

    async def _made(self) -> tuple[set[str], set[str]]:
        agents = {one.name for one in await self.hub.agents.list() if one.kind == "worker"}
        return agents, {one.connector.slug for one in await self.hub.connectors.list()}


@asynccontextmanager
async def open_lanes(
    file: EvaluationFile, folder: Path, open_hub: Callable[[Path | None], Hub], count: int
) -> AsyncGenerator[Sequence[Lane]]:
    """So many lanes, ready to make trials; all that they started ends with the block.

    `open_hub` makes a hub in a home of its own, or this installation's.
    """
    async with AsyncExitStack() as stack:
        if file.connectors:
            opened = [_open_own(file, folder, open_hub) for _ in range(count)]
            lanes = [await stack.enter_async_context(one) for one in opened]
        else:
            hub = await stack.enter_async_context(open_hub(None))
            lanes = [Lane(hub, None, _names(hub)) for _ in range(count)]
        _check_names(file, lanes[0].names)
        yield lanes


@asynccontextmanager
async def _open_own(
    file: EvaluationFile, folder: Path, open_hub: Callable[[Path | None], Hub]
) -> AsyncGenerator[Lane]:
    async with AsyncExitStack() as stack:
        place = Path(stack.enter_context(TemporaryDirectory(prefix="dragoman-eval-")))
        data = place / "data"
        make_private_directory(data)
        known = {
            "{python}": sys.executable,
            "{examples}": str(examples()),
            "{data}": str(data),
            "{folder}": str(folder),
        }
        configured: dict[str, dict[str, Any]] = {}
        for name, facts in file.connectors.items():
            given = _filled(dict(facts), known)
            if service := given.pop("service", None):
                url = await stack.enter_async_context(_started(name, service))
                given = _filled(given, {"{url}": url})
            configured[name] = given
        hub = await stack.enter_async_context(open_hub(place / "home"))
        await asyncio.gather(*(_add(hub, name, given) for name, given in configured.items()))
        yield Lane(hub, data, _names(hub))


async def _add(hub: Hub, name: str, facts: dict[str, Any]) -> None:
    view = await hub.connectors.add(name, **facts)
    if view.status.state not in ("connected", "disconnected"):
        raise Unreachable(
            f"the connector {name!r} of the evaluation is {view.status.state}: {view.status.cause}",
            hint="look at its table in the file; the server must start by itself",
        )


@asynccontextmanager
async def _started(name: str, words: Sequence[str]) -> AsyncGenerator[str]:
    """The first line that a service prints: where it listens."""
    try:
        process = await asyncio.create_subprocess_exec(
            *map(str, words), stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE
        )
    except OSError as error:
        raise InvalidConfig(
            f"the service of {name!r} does not start: {error}", hint="see `service`"
        ) from None
    try:
        async with asyncio.timeout(_START_LIMIT):
            line = await process.stdout.readline() if process.stdout else b""
        if not line.strip():
            raise Unreachable(f"the service of {name!r} ended before it said where it listens")
        yield line.decode().strip()
    except TimeoutError:
        raise Unreachable(f"the service of {name!r} did not say where it listens") from None
    finally:
        if process.returncode is None:
            process.terminate()
        try:
            async with asyncio.timeout(_STOP_LIMIT):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


def _filled(value: Any, known: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        for mark, text in known.items():
            value = value.replace(mark, text)
        return value
    if isinstance(value, list | tuple):
        return [_filled(one, known) for one in cast("Sequence[Any]", value)]
    if isinstance(value, Mapping):
        return {name: _filled(one, known) for name, one in cast("Mapping[str, Any]", value).items()}
    return value


def _names(hub: Hub) -> dict[str, str]:
    """From each spelling of a tool to its name."""
    names = {tool.name: tool.name for tool in hub.tools.list()}
    return names | {alias_name(tool.slug, tool.original_name): tool.name for tool in hub.tools.list()}


def _check_names(file: EvaluationFile, names: Mapping[str, str]) -> None:
    """A name with a typing error would fail for ever, or hold for ever."""
    actions = ("create_agent", "add_connector")  # what `manage` asks a person for
    for case in file.cases:
        wanted = {*case.expect.names, *(case.approve if isinstance(case.approve, tuple) else ())}
        for name in sorted(wanted):
            if name not in names and name not in FUNCTIONS and not name.endswith(("_agent", "_connector")):
                spellings = [one for one in names if "__" in one]
                hint = did_you_mean(name, [*spellings, *FUNCTIONS, *actions])
                raise InvalidConfig(
                    f"the case {case.name!r} expects {name!r}, which is no tool here",
                    hint=hint or f"there are: {', '.join(sorted(spellings)[:20])}",
                )


def _empty(folder: Path) -> None:
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
