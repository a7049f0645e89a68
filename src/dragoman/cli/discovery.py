"""`dragoman discover`, and adding a server from the registry: first what would run, then a yes."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import typer

from dragoman.cli.door import Door, path_of
from dragoman.cli.input_values import asked
from dragoman.cli.screen import Screen, plain
from dragoman.cli.session import AsJson, request


def discover(
    words: Annotated[str, typer.Argument(help="A part of a name.", show_default=False)] = "",
    limit: Annotated[int, typer.Option(help="Most results.", min=1, max=100)] = 20,
    cursor: Annotated[str | None, typer.Option(help="Where the page before ended.")] = None,
    followed: Annotated[
        bool, typer.Option("--followed", help="What is known of the namespaces that the app follows.")
    ] = False,
    common: Annotated[
        bool, typer.Option("--common", help="Servers that many people add; asks no registry.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Search the registry of MCP servers. Shows the exact command or address; nothing runs.

    \b
    dragoman discover github
    dragoman connectors add --from-registry io.github.owner/server
    dragoman discover --followed
    dragoman discover --common
    dragoman connectors add --from-registry common/time
    """
    if followed:
        request(as_json, _show_followed, "GET", path_of("discover", "followed"))
        return
    if common:
        request(as_json, _show_common, "GET", path_of("discover", "common"))
        return

    def show(screen: Screen, page: Mapping[str, Any]) -> None:
        for offer in page["offers"]:
            _show_offer(screen, offer)
        if not page["offers"]:
            screen.note(f"the registry has nothing for {words!r}")
        if page["next_cursor"]:
            screen.note(f"there is more: --cursor {page['next_cursor']}")

    asked: dict[str, Any] = {"search": words, "limit": limit, "cursor": cursor}
    request(as_json, show, "GET", path_of("discover"), busy="asking the registry …", **asked)


def _show_followed(screen: Screen, answer: Mapping[str, Any]) -> None:
    for one in answer["followed"]:
        state = "gone from the registry" if one["is_gone"] else one["state"]
        screen.show(f"[bold]{plain(one['name'])}[/] [dim]{plain(one['version'])}[/] {state}")
        if one["shown"]:
            screen.show(f"  {plain(one['shown'])}")
        if one["offered"] not in ("", one["shown"]):
            screen.show(f"  [yellow]offered now[/] {plain(one['offered'])}")
        if one["connector"] and one["state"] == "proposed":
            screen.show(f"  [dim]dragoman connectors enable {plain(one['connector'])}[/]")
        elif one["asks"]:
            screen.show(f"  [dim]asks for {plain(', '.join(one['asks']))}[/]")
            screen.show(f"  [dim]dragoman connectors add --from-registry {plain(one['name'])}[/]")
        if one["why"]:
            screen.show(f"  [dim]✗ {plain(one['why'], 140)}[/]")
    if not answer["followed"]:
        screen.note("nothing was found: DRAGOMAN_REGISTRY_FOLLOW names the namespaces that are followed")


def _show_common(screen: Screen, answer: Mapping[str, Any]) -> None:
    for offers in answer["groups"].values():
        for offer in offers:
            _show_offer(screen, offer)


@dataclass(frozen=True, kw_only=True)
class RegistryChoice:
    """What a person wants of the registry. `way` counts from 1, as `discover` shows them."""

    offered: str
    name: str | None = None
    way: int = 1
    inputs: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    is_agreed: bool = False
    connect: bool = True


def add_from_registry(door: Door, screen: Screen, choice: RegistryChoice) -> dict[str, Any]:
    """The connector as the door answers it. Ends the command when the person says no."""
    with screen.busy("asking the registry …"):
        offer = door.ask("GET", path_of("discover", choice.offered))
    way = _chosen(screen, offer, choice.way)
    if not screen.as_json:
        _show_way(screen, offer, way)
    answers = asked(way["needs"], choice.inputs, is_all=True)
    if not choice.is_agreed:
        _confirm(screen, way)
    request = {"shown": way["shown"], "inputs": answers, "connector": choice.name, "connect": choice.connect}
    with screen.busy(f"adding {choice.offered} …"):
        return door.ask("POST", path_of("discover", choice.offered), request)


def _confirm(screen: Screen, way: Mapping[str, Any]) -> None:
    if not sys.stdin.isatty():
        screen.fail({"detail": f"this would be used: {way['shown']}", "hint": "say yes with --yes"})
        raise typer.Exit(1)
    typer.confirm("Add it?", abort=True, err=True)


def _chosen(screen: Screen, offer: Mapping[str, Any], way: int) -> dict[str, Any]:
    ways = offer["ways"]
    if 1 <= way <= len(ways):
        return ways[way - 1]
    reasons = "; ".join(offer["refused"])
    known = (
        f"it has {len(ways)} ways"
        if ways
        else f"there is no way that Dragoman can go: {reasons or 'none is told'}"
    )
    screen.fail(
        {"detail": f"{offer['name']} has no way {way}: {known}", "hint": "dragoman discover shows them"}
    )
    raise typer.Exit(1)


def _show_offer(screen: Screen, offer: Mapping[str, Any]) -> None:
    state = "" if offer["status"] == "active" else f" [yellow]{plain(offer['status'])}[/]"
    screen.show(f"[bold]{plain(offer['name'])}[/] [dim]{plain(offer['version'])}[/]{state}")
    if offer["description"]:
        screen.show(f"  {plain(offer['description'], 140)}")
    for number, way in enumerate(offer["ways"], 1):
        screen.show(f"  [cyan]{number}[/] {plain(way['shown'])}")
        asks = ", ".join(need["name"] for need in way["needs"] if need["is_required"])
        if asks:
            screen.show(f"    [dim]asks for {plain(asks)}[/]")
    for reason in offer["refused"]:
        screen.show(f"  [dim]✗ {plain(reason, 140)}[/]")


def _show_way(screen: Screen, offer: Mapping[str, Any], way: Mapping[str, Any]) -> None:
    screen.show(f"[bold]{plain(offer['name'])}[/] {plain(offer['description'], 140)}")
    label = "it connects to" if way["kind"] == "remote" else "it runs"
    screen.show(f"[dim]{label}[/] {plain(way['shown'])}")
    for warning in way["warnings"]:
        screen.warn(warning)
