"""The box of each connection: what its connector says, on this machine, for who answers for it."""

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePath
from typing import Literal

from dragoman.connections.addresses import read_networks
from dragoman.connections.boxes import machine
from dragoman.connections.boxes.box import Box, PackageCache
from dragoman.connections.boxes.homes import BoxHomes
from dragoman.connections.boxes.network import FULL, NetworkDecision, NetworkRule, NetworkUse
from dragoman.connections.boxes.visible_paths import (
    Mount,
    certificate_paths,
    check_mounts,
    is_seen,
    lies_in,
    own_paths,
    program_paths,
    read_mount,
    refused_paths,
    unseen_folders,
    unseen_paths,
)
from dragoman.connections.boxes.watchdog import BoxWatchdog
from dragoman.connector import BoxLimits, Configuration, Connector
from dragoman.errors import InvalidConfig
from dragoman.private_files import make_private_directory

UNBOXED = "DRAGOMAN_ALLOW_UNBOXED=1"
# Where package runners keep what they fetched, below a home.
_CACHES = {"npm": ".npm/_cacache", "uv": ".cache/uv"}
_RUNNERS = {"npx": "npm", "npm": "npm", "uvx": "uv", "uv": "uv"}
# What starts a container asks a service of the machine for it, which no box shows.
_CONTAINERS = ("docker", "podman", "nerdctl")


@dataclass(frozen=True, slots=True)
class ProgramStart:
    """What is to be started: the program that was found, its words, and where."""

    program: str
    args: Sequence[str]
    env: Mapping[str, str]
    cwd: str | None


@dataclass(frozen=True, slots=True)
class BoxFacts:
    """How a server is boxed and what it may reach, for people. `missing` says why it is not boxed; `sent` and
    `received` are bytes that went through its proxy on this machine since Dragoman was started.
    """

    mode: str
    network: str
    mounts: tuple[str, ...] = ()
    missing: str | None = None
    sent: int = 0
    received: int = 0

    @property
    def text(self) -> str:
        if self.mode == "none":
            why = f" ({self.missing})" if self.missing else ""
            return f"none, with the same access as Dragoman itself{why}"
        passed = f" ({_size(self.sent)} sent, {_size(self.received)} received)" if self.received else ""
        sees = f", sees {', '.join(self.mounts)}" if self.mounts else ""
        return f"{self.mode}, network {self.network}{passed}{sees}"


@dataclass(frozen=True, slots=True)
class BoxNeed:
    """What a server seems to need beyond its box: `value`, with which its setting `becomes` all of these."""

    setting: Literal["mounts", "network"]
    value: str
    cause: str
    becomes: tuple[str, ...]

    def notice(self, slug: str) -> str:
        flag = {"mounts": "--mount", "network": "--network"}[self.setting]
        given = " ".join(f"{flag} {one.removesuffix(':ro')}" for one in self.becomes)
        writable = " (:rw to let it write)" if self.value.endswith(":ro") else ""
        return f"{slug} {self.cause}: dragoman connectors update {slug} {given}{writable}"


class Boxes:
    """`home` is Dragoman's own, which no box sees; the homes of boxes lie in it."""

    def __init__(
        self,
        home: Path,
        *,
        multi_user: bool = False,
        of_everybody: bool = True,
        allow_unboxed: bool = False,
        allowed_networks: Iterable[str] = (),
        paths: Iterable[str] = (),
        on_decision: Callable[[Connector, str, NetworkDecision], None] = lambda connector, identity, told: (
            None
        ),
    ) -> None:
        self._kept_out = home.absolute()
        self._is_multi_user = multi_user
        self._of_everybody = of_everybody
        self._allow_unboxed = allow_unboxed
        self._allowed = read_networks(allowed_networks)
        self._paths = tuple(os.path.abspath(os.path.expanduser(path)) for path in paths)
        check_mounts([Mount(path, False) for path in self._paths], self._kept_out, can_hide=False)
        self._on_decision = on_decision
        self._refused: dict[str, set[str]] = {}
        self._uses: dict[str, NetworkUse] = {}
        self.watchdog = BoxWatchdog()
        self.homes = BoxHomes(self._kept_out / "boxes")

    def check(self, configuration: Configuration) -> None:
        """`InvalidConfig` for a command that cannot be boxed as it is wanted here."""
        if not configuration.command:
            return
        mode = machine.chosen(configuration.sandbox)
        if (
            mode == "none"
            and configuration.sandbox == "auto"
            and self._is_multi_user
            and not self._allow_unboxed
        ):
            missing = "; ".join(f"{way.mode}: {way.missing}" for way in machine.ways() if way.missing)
            raise InvalidConfig(
                f"this machine cannot box a program, so none is started for others ({missing})",
                hint=f"{machine.INSTALL}, or set {UNBOXED}",
            )
        if mode != "bubblewrap" and configuration.network != ("none",) and FULL not in configuration.network:
            raise InvalidConfig(
                f"a list of places cannot be enforced with the sandbox {mode!r}: only bubblewrap can",
                hint=f"{machine.INSTALL}, or set network to full or none",
            )
        if mode == "none" and configuration.network == ("none",):
            raise InvalidConfig(
                "without a sandbox a program cannot be kept from the network", hint="leave sandbox at auto"
            )
        mounts = [read_mount(text) for text in configuration.mounts]
        check_mounts(mounts, self._kept_out, can_hide=mode != "landlock")

    def box_for(
        self, connector: Connector, identity: str, start: ProgramStart, *, is_trusted: bool
    ) -> Box | None:
        """The box of one connection, with its home made; None where it has none.

        What is started for people whom the operator does not answer for sees no path that they name.
        """
        configuration = connector.configuration
        self.check(configuration)
        mode = self._mode(configuration, is_trusted=is_trusted)
        if mode == "none":
            return None
        rule = self._rule(configuration, is_trusted=is_trusted)
        if rule is not None and mode != "bubblewrap" and not (self._allow_unboxed or is_trusted):
            raise InvalidConfig(
                f"inside addresses cannot be refused with the sandbox {mode!r}: only bubblewrap can",
                hint=f"{machine.INSTALL}, set network to none, or set {UNBOXED}",
            )
        own = os.environ.get("PATH", os.defpath)
        path = start.env.get("PATH", own) if is_trusted else own
        read = [
            *program_paths(start.program, path, self._kept_out),
            *certificate_paths(os.environ),
            *self._paths,
        ]
        if mode == "container":  # what becomes the server inside
            read += program_paths(machine.own_python(), "", self._kept_out)
        if is_trusted:
            read += own_paths(start.program, start.args, start.cwd, self._kept_out)
        mounts = tuple(read_mount(text) for text in configuration.mounts)
        mounted = [mount.path for mount in mounts]
        home = self.homes.make(connector.id, identity)
        return Box(
            mode=mode,
            home=home,
            hidden=str(self._kept_out),
            read=tuple(path for path in dict.fromkeys(read) if not lies_in(path, mounted)),
            mounts=mounts,
            caches=self._caches(start.program, home) if is_trusted and mode == "bubblewrap" else (),
            has_network=configuration.network != ("none",),
            rule=rule if mode == "bubblewrap" else None,
            limits=configuration.limits,
            watchdog=self.watchdog,
            tell=partial(self._told, connector, identity),
            use=self._uses.setdefault(connector.id, NetworkUse()),
        )

    def _mode(self, configuration: Configuration, *, is_trusted: bool) -> machine.BoxMode:
        if configuration.sandbox == "auto" and is_trusted and self._left_alone(configuration):
            return "none"
        return machine.chosen(configuration.sandbox)

    def _left_alone(self, configuration: Configuration) -> str:
        """Why a program that the operator answers for runs without a box, although nothing was said of one.

        One that is to be kept to mounts, places or limits is boxed all the same.
        """
        if configuration.mounts or configuration.network != ("full",) or configuration.limits != BoxLimits():
            return ""
        if PurePath(configuration.command or "").name in _CONTAINERS:
            return f"{configuration.command} asks a service of the machine for a container"
        return "" if self._of_everybody else "DRAGOMAN_BOX_PROGRAMS=people"

    def facts(self, connector: Connector) -> BoxFacts | None:
        """None for what is no program."""
        configuration = connector.configuration
        if not configuration.command:
            return None
        is_trusted = not self._is_multi_user or connector.origin != "people"
        try:
            mode, missing = self._mode(configuration, is_trusted=is_trusted), None
        except InvalidConfig as error:
            mode, missing = "none", error.message
        if mode == "none" and configuration.sandbox == "auto":
            lacks = "; ".join(f"{way.mode}: {way.missing}" for way in machine.ways() if way.missing)
            missing = missing or (is_trusted and self._left_alone(configuration)) or lacks
        network = ", ".join(configuration.network)
        if mode == "bubblewrap" and self._is_multi_user and FULL in configuration.network:
            network = network.replace(FULL, "full without addresses inside", 1)
        mounts = tuple(read_mount(text).text for text in configuration.mounts)
        use = self._uses.get(connector.id, NetworkUse())
        return BoxFacts(mode, network, mounts, missing, use.sent, use.received)

    def needs(self, connector: Connector, said: Iterable[str] = ()) -> tuple[BoxNeed, ...]:
        """What a server seems to need beyond its box, each with the setting that gives it.

        `said` are lines of its stderr: a path that it was refused is in them. Who gives a command but not its
        mounts is not told which paths there are.
        """
        configuration = connector.configuration
        facts = self.facts(connector)
        if facts is None or facts.mode == "none":
            return ()
        may_mount = not self._is_multi_user or connector.origin != "people"
        found = self.named(configuration) if may_mount else []
        found += self._refused_paths(configuration, said) if may_mount else ()
        places = configuration.network
        if may_mount or FULL not in places:  # else no setting of theirs opens what is inside
            found += [
                BoxNeed("network", place, f"was refused {place}", (*places, place))
                for place in sorted(self._refused.get(connector.id, set()) - {*places})
            ]
        return tuple(found)

    def named(self, configuration: Configuration) -> list[BoxNeed]:
        """Paths that it names and that its box would not show: for who may mount them."""
        if self._mode(configuration, is_trusted=True) == "none":
            return []
        words = (*configuration.args, *configuration.env.values())
        shown = self._shown(configuration)
        paths = unseen_paths(words, shown, configuration.cwd or os.getcwd())
        folders = unseen_folders(words, (*shown, *paths), self._kept_out)
        return [
            *(
                _mount(configuration, f"{one}:ro", f"names {one}, which its box does not show")
                for one in paths
            ),
            *(
                _mount(
                    configuration, f"{one}:rw", f"names a file to be in {one}, which its box does not show"
                )
                for one in folders
            ),
        ]

    def _refused_paths(self, configuration: Configuration, said: Iterable[str]) -> Iterator[BoxNeed]:
        mounts = [read_mount(text) for text in configuration.mounts]
        read_only = [mount.path for mount in mounts if not mount.is_writable]
        seen = self._shown(configuration)
        named = [read_mount(need.value).path for need in self.named(configuration)]
        for path in refused_paths(said):
            if lies_in(path, read_only):
                yield _mount(configuration, f"{path}:rw", f"wanted to write {path}")
            elif not is_seen(path, seen) and os.path.exists(path) and not lies_in(path, named):
                yield _mount(configuration, f"{path}:ro", f"was refused {path}")

    def _shown(self, configuration: Configuration) -> list[str]:
        mounts = [read_mount(text).path for text in configuration.mounts]
        return [*mounts, *self._paths, *self._own(configuration)]

    def _own(self, configuration: Configuration) -> list[str]:
        path = os.environ.get("PATH", os.defpath)
        program = shutil.which(configuration.command or "", path=path) or configuration.command or ""
        return [
            *program_paths(program, path, self._kept_out),
            *own_paths(program, configuration.args, configuration.cwd, self._kept_out),
        ]

    def _told(self, connector: Connector, identity: str, decision: NetworkDecision) -> None:
        if not decision.is_allowed and not decision.place.endswith(":0"):
            self._refused.setdefault(connector.id, set()).add(decision.place)
        self._on_decision(connector, identity, decision)

    def forget(self, connector: str) -> None:
        """What was kept for a connector that is gone, its homes included."""
        self._refused.pop(connector, None)
        self._uses.pop(connector, None)
        self.homes.clear(connector)

    def _rule(self, configuration: Configuration, *, is_trusted: bool) -> NetworkRule | None:
        """None where the machine's own network is open to it, as to one person's, or none at all."""
        is_open = FULL in configuration.network and not self._is_multi_user
        if configuration.network == ("none",) or is_open:
            return None
        return NetworkRule(configuration.network, self._allowed, is_trusted)

    def _caches(self, program: str, home: Path) -> tuple[PackageCache, ...]:
        runner = _RUNNERS.get(PurePath(program).name)
        if runner is None:
            return ()
        shared = Path("~").expanduser() / _CACHES[runner]
        if not shared.is_dir():
            return ()
        beside, place = home.parent / "packages" / runner, home / _CACHES[runner]
        for folder in (beside / "written", beside / "work", place):
            make_private_directory(folder)
        return (PackageCache(str(shared), str(beside / "written"), str(beside / "work"), str(place)),)


def _mount(configuration: Configuration, value: str, cause: str) -> BoxNeed:
    return BoxNeed("mounts", value, cause, (*configuration.mounts, value))


def _size(count: int) -> str:
    return f"{count / 1024:,.0f} KB" if count < 1024 * 1024 else f"{count / 1024 / 1024:,.1f} MB"
