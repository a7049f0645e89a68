"""Where the example servers are: beside the package in an installed wheel, else in the checkout.

`python -m dragoman.examples` prints it, for scripts. They are programs of their own: nothing imports them.
"""

from pathlib import Path

_PACKAGE = Path(__file__).parent


def examples() -> Path:
    """The folder with `servers/` and `agent_configs/`."""
    installed = _PACKAGE / "_examples"
    return installed if installed.is_dir() else _PACKAGE.parents[1] / "examples"


if __name__ == "__main__":
    print(examples())
