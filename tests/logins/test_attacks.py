"""Nothing that somebody tries against a login by OAuth works, and what would let it work is noticed."""

from collections.abc import AsyncGenerator

import pytest

from logins.attacked_service import Attacked, open_attacked
from logins.attacks import ATTACKS
from logins.planted_faults import FAULTS

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def attacked(tmp_path_factory: pytest.TempPathFactory, anyio_backend: str) -> AsyncGenerator[Attacked]:
    async with open_attacked(tmp_path_factory.mktemp("attacked")) as attacked:
        yield attacked


@pytest.mark.parametrize("name", ATTACKS)
async def test_no_attack_works(attacked: Attacked, name: str) -> None:
    assert await ATTACKS[name](attacked) is None


async def test_there_are_many_attacks() -> None:
    assert len(ATTACKS) > 400


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_planted_fault_is_noticed(attacked: Attacked, fault: str) -> None:
    family, plant = FAULTS[fault]
    noticed: list[str] = []
    with plant():
        for name in ATTACKS:
            if name.startswith(family) and (got := await ATTACKS[name](attacked)):
                noticed.append(f"{name}: {got}")
    assert noticed
