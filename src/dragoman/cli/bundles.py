"""`dragoman bundles …`: choices of tools under a name, each shown as you want it."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli.arguments import split_words, typed
from dragoman.cli.completion import names_of
from dragoman.cli.door import Door, Refused, path_of
from dragoman.cli.screen import Screen, ago, plain
from dragoman.cli.session import AsJson, Yes, note, request, request_removal, rows, session
from dragoman.cli.tables import new_card, new_table

if TYPE_CHECKING:
    from rich.table import Table

app = typer.Typer(
    no_args_is_help=True,
    help="Choices of tools under a name, each shown as you want it; for clients at /mcp/bundles/NAME.",
)
Name = Annotated[
    str, typer.Argument(help="The bundle's name.", show_default=False, autocompletion=names_of("bundles"))
]
Tools = Annotated[
    list[str],
    typer.Argument(
        metavar="TOOL…",
        help="Names of tools; a connector's stands for all of its tools.",
        show_default=False,
        autocompletion=names_of("tools"),
    ),
]
Tool = Annotated[
    str,
    typer.Argument(
        metavar="TOOL", help="Its name in the bundle, or its own.", autocompletion=names_of("tools")
    ),
]
Title = Annotated[str | None, typer.Option(help="What people read.", show_default=False)]
Description = Annotated[str | None, typer.Option(help="What it is for.", show_default=False)]
Instructions = Annotated[
    str | None, typer.Option(help="What clients are told when they connect.", show_default=False)
]
View = Annotated[
    str | None,
    typer.Option(help="tools or search; auto: by how much the tools would fill.", show_default=False),
]
Capabilities = Annotated[
    list[str] | None,
    typer.Option(
        "--capability",
        help="Of its tools only what these admit, as for a key; may be repeated.",
        show_default=False,
    ),
]
Resources = Annotated[
    list[str] | None,
    typer.Option(
        "--resources",
        metavar="CONNECTOR",
        help="Whose prompts and resources are in it too; may be repeated.",
        show_default=False,
    ),
]
HooksOption = Annotated[
    list[str] | None,
    typer.Option(
        "--hook",
        metavar="RULE",
        help="What looks at all that passes by it, after all others; may be repeated, none: no hook.",
        show_default=False,
    ),
]
Words = list[str] | None


@app.command("list")
def list_bundles(as_json: AsJson = False) -> None:
    """List the bundles that you may use: your own, the workspace's and the app's."""
    show = rows(_table, "bundles", "there is no bundle yet: dragoman bundles create NAME TOOL…")
    request(as_json, show, "GET", path_of("bundles"))


@app.command("show")
def show(name: Name, as_json: AsJson = False) -> None:
    """Show a bundle with its tools, what is overridden of them, and what is broken."""
    request(as_json, _show, "GET", path_of("bundles", name))


@app.command("create")
def create(
    name: Annotated[str, typer.Argument(help="Its name.", show_default=False)],
    tools: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TOOL]…", help="Tools, or connectors with all of theirs.", show_default=False
        ),
    ] = None,
    tier: Annotated[
        str, typer.Option("--for", help="user (you), workspace (for admins) or app (for the operator).")
    ] = "user",
    title: Title = None,
    description: Description = None,
    instructions: Instructions = None,
    view: View = None,
    capabilities: Capabilities = None,
    resources: Resources = None,
    hooks: HooksOption = None,
    as_json: AsJson = False,
) -> None:
    """Create a bundle of these tools.

    \b
    dragoman bundles create support github__create_issue jira
    dragoman bundles create reading github --capability mcp_github --capability read_only
    """
    settings = _settings(title, description, instructions, view, capabilities, resources, hooks)
    body = {"name": name, "tier": tier, "tools": tools or [], **settings}
    request(as_json, _show, "POST", path_of("bundles"), body)


@app.command("update")
def update(
    name: Name,
    title: Title = None,
    description: Description = None,
    instructions: Instructions = None,
    view: View = None,
    capabilities: Capabilities = None,
    resources: Resources = None,
    hooks: HooksOption = None,
    as_json: AsJson = False,
) -> None:
    """Change what is given and keep the rest.

    \b
    dragoman bundles update support --hook secrets --hook "urls *.example.com"
    dragoman bundles update support --hook none
    """
    settings = _settings(title, description, instructions, view, capabilities, resources, hooks)
    request(as_json, _show, "PATCH", path_of("bundles", name), settings)


@app.command("add")
def add(name: Name, tools: Tools, as_json: AsJson = False) -> None:
    """Add tools to a bundle, or connectors with all of their tools."""
    request(as_json, _show, "POST", path_of("bundles", name, "tools"), {"tools": tools})


@app.command("drop")
def drop(name: Name, tool: Tool, as_json: AsJson = False) -> None:
    """Take a tool, or a connector with all of its tools, out of a bundle, with what was overridden."""
    request(as_json, _show, "DELETE", path_of("bundles", name, "tools", tool))


@app.command("override")
def override(
    name: Name,
    tool: Tool,
    new_name: Annotated[str | None, typer.Option("--name", help="How the bundle calls it.")] = None,
    title: Title = None,
    description: Annotated[str | None, typer.Option(help="What models read of it.")] = None,
    enable: Annotated[
        bool | None, typer.Option("--enable/--disable", help="Whether it is in the bundle.")
    ] = None,
    pin: Annotated[
        Words, typer.Option(metavar="PARAMETER=VALUE", help="Send this, and do not show the parameter.")
    ] = None,
    default: Annotated[
        Words, typer.Option(metavar="PARAMETER=VALUE", help="Send this where nothing is given.")
    ] = None,
    hide: Annotated[Words, typer.Option(metavar="PARAMETER", help="Neither show nor send it.")] = None,
    rename: Annotated[Words, typer.Option(metavar="PARAMETER=NAME", help="Show it under this name.")] = None,
    describe: Annotated[Words, typer.Option(metavar="PARAMETER=TEXT", help="Say this of it.")] = None,
    annotation: Annotated[
        Words,
        typer.Option(
            metavar="NAME=yes|no", help="read_only, destructive, idempotent or open_world, for clients."
        ),
    ] = None,
    reset: Annotated[bool, typer.Option("--reset", help="Begin with the tool as its server has it.")] = False,
    as_json: AsJson = False,
) -> None:
    """Override how a bundle shows a tool; what was overridden before stays unless --reset.

    \b
    dragoman bundles override support github__create_issue --name report --pin repo=acme/support
    dragoman bundles override support report --rename title=summary --describe summary="one line"
    dragoman bundles override support report --reset
    """
    with session(as_json) as (door, screen):
        before = {} if reset else _override_of(door, name, tool)
        named = {"name": new_name, "title": title, "description": description, "enabled": enable}
        after = {**before, **{key: value for key, value in named.items() if value is not None}}
        parameters = {key: {**one} for key, one in before.get("parameters", {}).items()}
        schema = _schema_of(door, tool)
        for words, field in ((pin, "value"), (default, "default")):
            for key, value in typed(_pairs(words, field), schema).items():
                parameters[key] = {field: value}
        for key in hide or ():
            parameters[key] = {"hidden": True}
        for words, field in ((rename, "name"), (describe, "description")):
            for key, value in _pairs(words, field):
                parameters.setdefault(key, {})[field] = value
        if parameters:
            after["parameters"] = parameters
        if annotation:
            said = {key: value in ("yes", "true") for key, value in _pairs(annotation, "annotation")}
            after["annotations"] = {**before.get("annotations", {}), **said}
        answer = door.ask("PUT", path_of("bundles", name, "tools", tool), after)
        screen.data(answer) if as_json else _show(screen, answer)


@app.command("remove")
def remove(name: Name, yes: Yes = False, as_json: AsJson = False) -> None:
    """Remove a bundle. Who was given it alone sees no tool from then on."""
    asked = f"Remove the bundle {name}?"
    request_removal(as_json, note(f"{name} is removed"), path_of("bundles", name), asked, yes, name=name)


def _settings(
    title: str | None,
    description: str | None,
    instructions: str | None,
    view: str | None,
    capabilities: list[str] | None,
    resources: list[str] | None,
    hooks: list[str] | None,
) -> dict[str, Any]:
    """As the REST door wants them: only what was given."""
    given = {"title": title, "description": description, "instructions": instructions}
    given |= {"capabilities": capabilities, "resources": resources}
    given |= {"hooks": [] if hooks == ["none"] else hooks}
    settings: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    return settings if view is None else {**settings, "view": None if view == "auto" else view}


def _pairs(words: Words, option: str) -> list[tuple[str, str]]:
    try:
        return split_words(words or ())
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from None


def _override_of(door: Door, bundle: str, tool: str) -> dict[str, Any]:
    for one in door.ask("GET", path_of("bundles", bundle))["tools"]:
        if tool in (one["name"], f"{one['connector']}__{one['tool']}"):
            return {**(one["override"] or {})}
    return {}


def _schema_of(door: Door, tool: str) -> Mapping[str, Any]:
    """To read values as the tool wants them; without it they are JSON or text."""
    try:
        return door.ask("GET", path_of("tools", tool))["input_schema"]
    except Refused:
        return {}


def _show(screen: Screen, bundle: Mapping[str, Any]) -> None:
    card = new_card()
    whose = {"user": "yours", "workspace": "the workspace's", "app": "everybody's"}[bundle["tier"]]
    card.add_row("bundle", f"[bold]{plain(bundle['name'])}[/] {whose}")
    for field in ("title", "description", "instructions", "view"):
        if bundle[field]:
            card.add_row(field, plain(bundle[field]))
    if bundle["capabilities"] is not None:
        card.add_row("only", plain(", ".join(bundle["capabilities"])))
    if bundle["resources"]:
        card.add_row("prompts", plain(", ".join(bundle["resources"])))
    for rule in bundle["hooks"] or ():
        card.add_row("hook", plain(rule))
    card.add_row("mcp", plain(bundle["mcp"]))
    screen.show(card)
    table = new_table("tool", "of", "overridden")
    for one in bundle["tools"]:
        named = plain(one["name"] or one["tool"])
        name = f"[bold]{named}[/]" if one["works"] else f"[red]{named}[/]"
        told = ", ".join([*(one["override"] or {})])
        table.add_row(name, plain(f"{one['connector']}: {one['tool']}"), plain(told))
    screen.show(table)
    for text in bundle["problems"]:
        screen.warn(text)


def _table(bundles: Iterable[Mapping[str, Any]]) -> "Table":
    table = new_table("bundle", "of", "tools", "broken", "description", "changed")
    for one in bundles:
        table.add_row(
            f"[bold]{plain(one['name'])}[/]",
            f"[dim]{plain(one['tier'])}[/]",
            str(sum(tool["works"] for tool in one["tools"])),
            f"[red]{len(one['problems'])}[/]" if one["problems"] else "",
            plain(one["title"] or one["description"], 50),
            ago(one["updated_at"]),
        )
    return table
