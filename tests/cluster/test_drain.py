"""A node that is told to stop: readiness first, then runs, streams and itself; and what waits is told."""

import http.client
import signal
import time
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from api.live import open_service
from cluster.nats_server import NatsServer
from cluster.nodes import KEY
from cluster.processes import ServiceProcess
from patience import patient, wait_until

pytestmark = pytest.mark.anyio
WAIT = patient(2)


def _says_last(connection: http.client.HTTPConnection) -> bool:
    """Whether an answer says that its connection takes no further request."""
    connection.request("GET", "/health")
    with connection.getresponse() as answer:
        answer.read()
        return answer.headers.get("Connection") == "close"


@pytest.mark.slow
async def test_a_node_that_is_told_to_stop_answers_until_requests_go_elsewhere(
    tmp_path: Path, postgres_url: str
) -> None:
    async with NatsServer(tmp_path / "nats") as nats:
        environment = {
            "DRAGOMAN_KEY": KEY,
            "DRAGOMAN_CLUSTER_URL": nats.url,
            "DRAGOMAN_DRAIN_WAIT": str(WAIT),
        }
        with (
            ServiceProcess(tmp_path / "node", postgres_url, environment=environment) as service,
            ExitStack() as stack,
        ):
            token = (tmp_path / "node" / "token").read_text().strip()
            assert service.get("/ready")[0] == 200
            address = urlsplit(service.facts["url"])
            stream = http.client.HTTPConnection(str(address.hostname), address.port, timeout=patient(20))
            stack.callback(stream.close)
            stream.request("GET", "/api/events", headers={"Authorization": f"Bearer {token}"})
            answer = stack.enter_context(stream.getresponse())
            assert answer.readline() == b": listening\n"
            kept = http.client.HTTPConnection(str(address.hostname), address.port, timeout=patient(20))
            stack.callback(kept.close)
            assert not _says_last(kept)
            began = time.monotonic()
            service.signal(signal.SIGTERM)
            wait_until(lambda: service.get("/ready")[0] == 503, within=WAIT / 2)
            assert service.get("/ready")[1]["cause"] == "shutting_down"
            assert service.get("/health")[0] == 200
            assert _says_last(kept), "a request sent into a connection that closes would have no answer"
            status, found = service.get("/api/cluster", token)
            assert status == 200
            (node,) = found["nodes"]
            assert node["roles"] == ["doors", "work"], "it takes no more places"
            assert node["is_draining"]
            rest = answer.read()
            assert time.monotonic() - began >= WAIT, "streams end once nobody is sent here any more"
            assert rest.endswith(b"retry: 1000\n\n")
            assert service.ended() == 0


async def test_what_waits_for_a_process_is_told_with_how_long(tmp_path: Path) -> None:
    async with open_service(tmp_path, roles=("doors",)) as live:
        before = (await live.ask("GET", "/api/cluster")).value
        assert (before["runs_waiting"], before["longest_wait"], before["runs_at_work"]) == (0, 0.0, 0)
        posted = await live.hub.messages.post("Is anybody there?")
        await live.hub.messages.post("Hello?", thread=posted.run.thread)
        found = (await live.ask("GET", "/api/cluster")).value
        assert found["runs_waiting"] == 1, "the second has to wait for the first"
        assert found["longest_wait"] >= 0
        text = (await live.ask("GET", "/metrics")).body.decode()
        assert "dragoman_installation_runs_waiting 1.0" in text
        assert "dragoman_installation_runs_waiting_seconds " in text
        assert 'roles="doors"' in text
        assert "dragoman_places_held 0.0" in text
        assert "dragoman_cluster_nodes 1.0" in text
        assert "dragoman_cluster_connected 1.0" in text, "nothing is wrong where no cluster is set"
