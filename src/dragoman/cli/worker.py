"""`dragoman worker`: a process that executes runs and serves nobody, until it is told to stop."""

from dataclasses import replace
from typing import TYPE_CHECKING

from dragoman.cli.screen import Screen
from dragoman.cli.session import AsJson, failures_on
from dragoman.settings import Settings

if TYPE_CHECKING:
    from dragoman.telemetry.redaction import Redactor

_LAST_CALLS = 3.0  # seconds that calls of runs which must not be made twice may take to end


def worker(
    as_json: AsJson = False,
) -> None:
    """Execute runs of agents until Ctrl-C or SIGTERM. Serves no door.

    \b
    DRAGOMAN_DATABASE_URL=postgresql://… dragoman worker

    A service executes runs by itself; further workers on the same database share the work, and take over
    the runs of one that died.
    """
    import asyncio

    from dragoman.telemetry.logs import configure_logging
    from dragoman.telemetry.redaction import Redactor

    screen = Screen(as_json)
    with failures_on(screen):
        settings = Settings.load()
        settings = replace(settings, roles=tuple(role for role in settings.roles if role != "doors"))
        redactor = Redactor()
        configure_logging(settings.log_level, settings.log_json, redactor)
        asyncio.run(_work(settings, redactor, screen))


async def _work(settings: Settings, redactor: "Redactor", screen: Screen) -> None:
    import asyncio
    import signal

    from dragoman.hub import Hub

    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    async with Hub(settings, redactor=redactor) as hub:
        dispatch = await hub.open_engine()
        if screen.as_json:
            print(f'{{"worker": "{dispatch.worker}"}}', flush=True)
        else:
            screen.note(f"Dragoman executes runs as {dispatch.worker} (Ctrl-C stops it)")
        failing = asyncio.ensure_future(hub.failure())
        failing.add_done_callback(lambda _: stopped.set())
        await stopped.wait()
        if failing.done():
            raise failing.result()
        failing.cancel()
        if not screen.as_json:
            held = len(dispatch.held)
            screen.note(f"stopping; {held} runs are left to the next worker" if held else "stopping")
        await hub.drain(_LAST_CALLS)
