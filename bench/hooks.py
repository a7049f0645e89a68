"""What hooks cost: a call of a function of this process without any, with one that looks at nothing, and with
the three built-in ones that look for something, for a result of 4 KB of published text. CPU, not time; of
many rounds the least, for what else the machine does only adds to it.
"""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

from dragoman import Hook, Hub
from dragoman.settings import Settings

DATA = Path(__file__).parent.parent / "tests" / "data" / "tool-search" / "restbench" / "tools.jsonl"
SIZE = 4096
CALLS, ROUNDS = 100, 25
FORMS = {
    "no hook": (),
    "no hook, again": (),
    "a hook that does nothing": ("nothing",),
    "secrets": ("secrets",),
    "personal_data": ("personal_data",),
    "injection": ("injection",),
    "the three": ("secrets", "personal_data", "injection"),
}


async def main() -> None:
    whole = DATA.read_text()
    texts = [whole[start : start + SIZE] for start in range(0, 20 * SIZE, SIZE)]
    figures: dict[str, list[float]] = {name: [] for name in FORMS}
    with TemporaryDirectory() as folder:
        async with Hub(Settings(home=Path(folder))) as hub:

            @hub.tool
            def page(number: int) -> str:
                """A page of text."""
                return texts[number]

            hub.hooks.add("nothing", lambda values: Hook())
            for _ in range(ROUNDS):
                for name, rules in FORMS.items():
                    await hub.people.update_workspace("local", hooks=list(rules))
                    await hub.call("page", {"number": 0})
                    began = process_time()
                    for number in range(CALLS):
                        await hub.call("page", {"number": number % len(texts)})
                    figures[name].append((process_time() - began) / CALLS * 1000)
    base = min(figures["no hook"])
    print("| hooks | CPU of a call, ms | more than without, ms |")
    print("|---|--:|--:|")
    for name, found in figures.items():
        print(f"| {name} | {min(found):.3f} | {min(found) - base:+.3f} |")


if __name__ == "__main__":
    asyncio.run(main())
