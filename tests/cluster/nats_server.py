"""A real NATS server of the tests: started, killed, wiped and started again on the same port."""

import asyncio
import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import TracebackType

from patience import deadline
from servers.ports import listen

PROGRAM = Path(sys.executable).with_name("nats-server")


class NatsServer:
    """`lines` are added to its configuration."""

    def __init__(self, folder: Path, lines: str = "", has_jetstream: bool = True) -> None:
        self.folder = folder
        self._lines = lines
        self._has_jetstream = has_jetstream
        self._port = -1
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self._port}"

    async def __aenter__(self) -> "NatsServer":
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    async def start(self) -> None:
        ports = self.folder / "ports"
        shutil.rmtree(ports, ignore_errors=True)
        ports.mkdir(parents=True)
        jetstream = f'jetstream {{ store_dir: "{self.folder / "data"}" }}' if self._has_jetstream else ""
        configuration = self.folder / "nats.conf"
        configuration.write_text(
            f'listen: "127.0.0.1:{self._port}"\nports_file_dir: "{ports}"\n{jetstream}\n{self._lines}\n'
        )
        self._process = subprocess.Popen(
            [PROGRAM, "-c", configuration], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        async with deadline(15):
            # The file is there before its words are.
            while not (written := "".join(one.read_text() for one in ports.glob("*.ports"))):
                await asyncio.sleep(0.02)
            self._port = int(json.loads(written)["nats"][0].rpartition(":")[2])

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def wipe(self) -> None:
        """It forgets everything. Only while it does not run."""
        shutil.rmtree(self.folder / "data", ignore_errors=True)


def three_servers(folder: Path) -> list[NatsServer]:
    """Of one cluster."""
    with listen() as first, listen() as second, listen() as third:
        ports = [int(one.getsockname()[1]) for one in (first, second, third)]
    routes = ", ".join(f'"nats://127.0.0.1:{port}"' for port in ports)
    return [
        NatsServer(
            folder / f"nats{number}",
            f'server_name: "s{number}"\n'
            f'cluster {{ name: "three", listen: "127.0.0.1:{port}", routes: [{routes}] }}',
        )
        for number, port in enumerate(ports)
    ]
