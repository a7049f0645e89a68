"""`dragoman models …`: which language models can be used, the keys of their providers, and the default."""

import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli.door import path_of
from dragoman.cli.screen import Screen, ago, plain
from dragoman.cli.session import AsJson, Yes, note, request, request_removal, rows
from dragoman.cli.tables import new_table

if TYPE_CHECKING:
    from rich.table import Table

OFFLINE = "offline"
HOW_TO = "give a provider its key: dragoman models add openai; or run Ollama"

app = typer.Typer(
    invoke_without_command=True,
    help="Language models: which can be used, keys of providers, the default.",
)
Provider = Annotated[
    str,
    typer.Argument(
        help="openai, anthropic, google … or, with --url, a name of your choice.", show_default=False
    ),
]
Tier = Annotated[
    str, typer.Option("--for", help="workspace (for its admins) or app (for who runs the installation).")
]


@app.callback()
def models(context: typer.Context, as_json: AsJson = False) -> None:
    """Show which models were found, in the order of choice, and what the others lack.

    \b
    dragoman models
    dragoman models add anthropic < key.txt
    dragoman models add lab --url https://llm.example/v1 --model qwen3
    dragoman models default anthropic:claude-sonnet-5-5
    """
    if context.invoked_subcommand is None:
        request(as_json, _show, "GET", path_of("models"), busy="looking for models …")


@app.command("add")
def add(
    name: Provider,
    url: Annotated[
        str | None, typer.Option(help="Where it is: any server that resembles OpenAI's, or Ollama.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Its model, where only the provider is named.", show_default=False)
    ] = None,
    kind: Annotated[
        str | None, typer.Option(help="Its kind, where the name does not say it.", show_default=False)
    ] = None,
    keyless: Annotated[
        bool, typer.Option("--no-key", help="It needs no key, or keeps the one that it has.")
    ] = False,
    tier: Tier = "workspace",
    as_json: AsJson = False,
) -> None:
    """Give a provider its key, or change what is set of it. It holds at once, without a restart.

    The key is asked for, or read from the first line of stdin; it is sealed and never shown again.

    \b
    dragoman models add openai
    dragoman models add ollama --url http://gpu-box:11434 --model llama4 --no-key
    dragoman models add lab --url https://llm.example/v1 --model qwen3 < key.txt
    """
    known = ("openai", "anthropic", "ollama")
    body = {
        "kind": kind or ("openai-compatible" if url and name not in known else None),
        "key": None if keyless else _key(name),
        "url": url,
        "model": model,
        "tier": tier,
    }

    def show(screen: Screen, answer: Mapping[str, Any]) -> None:
        screen.note(f"{answer['title']} is set; {answer['default'] or 'name a model with --model'}")
        screen.note("whether it answers: dragoman models test")

    given = {name: value for name, value in body.items() if value is not None}
    request(as_json, show, "PUT", path_of("models", "providers", name), given)


@app.command("providers")
def providers(as_json: AsJson = False) -> None:
    """List the providers that were set, without their keys."""
    none = "no provider is set yet: dragoman models add openai"
    request(as_json, rows(_providers, "providers", none), "GET", path_of("models", "providers"))


@app.command("remove")
def remove(
    name: Provider,
    tier: Annotated[
        str | None, typer.Option("--for", help="workspace or app, where both have one.", show_default=False)
    ] = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Remove a provider with its key, for good."""
    query = {"tier": tier} if tier else {}
    question, path = f"Remove {name} with its key?", path_of("models", "providers", name)
    request_removal(as_json, note(f"{name} is removed"), path, question, yes, name=name, **query)


@app.command("test")
def check(
    model: Annotated[
        str | None, typer.Argument(help="As in openai:gpt-5; else the default.", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Ask a model one short question, which costs a few tokens. Ends with 1 when it does not answer."""

    def show(screen: Screen, answer: Mapping[str, Any]) -> None:
        took = f"{answer['milliseconds'] / 1000:.1f} s"
        if answer["works"]:
            return screen.note(f"{answer['model']} answers after {took}: {answer['answer'] or '(nothing)'}")
        hint = f"; {answer['hint']}" if answer["hint"] else ""
        return screen.warn(f"{answer['model']} does not answer: {answer['error']}{hint}")

    path, busy = path_of("models", "test"), f"asking {model or 'the default model'} …"
    answer = request(as_json, show, "POST", path, {"model": model}, busy=busy)
    if not answer["works"]:
        raise typer.Exit(1)


@app.command("default")
def default(
    model: Annotated[
        str | None, typer.Argument(help="As in openai:gpt-5; fallbacks after commas.", show_default=False)
    ] = None,
    clear: Annotated[bool, typer.Option("--clear", help="The best there is, as before.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show or set the model of the workspace: it answers where neither message nor agent names one."""
    path = path_of("models", "default")

    def show(screen: Screen, answer: Mapping[str, Any]) -> None:
        screen.note(f"{answer['model']} answers, because {answer['reason']}")

    if model is None and not clear:
        request(as_json, show, "GET", path)
    else:
        request(as_json, show, "PUT", path, {"model": None if clear else model})


def _key(name: str) -> str:
    """Typed without being shown, or the first line of stdin: arguments are in the list of processes."""
    if sys.stdin.isatty():
        return typer.prompt(f"key of {name}", hide_input=True, err=True)
    return sys.stdin.readline().strip()


def _show(screen: Screen, answer: Mapping[str, Any]) -> None:
    screen.show(_table(answer["models"]))
    default = default_of(answer["models"])
    if default == OFFLINE:
        screen.note("only the offline model answers: plain matching, no language model")
        screen.note(HOW_TO)
    elif default:
        screen.note(f"{default} answers where nobody chose another")


def default_of(found: Iterable[Mapping[str, Any]]) -> str | None:
    return next((one["model"] for one in found if one["is_default"]), None)


def _table(found: Iterable[Mapping[str, Any]]) -> "Table":
    table = new_table("", "provider", "model", "why")
    for one in found:
        sign = "[green]✓[/]" if one["is_usable"] else "[dim]✗[/]"
        style = "bold" if one["is_default"] else ("" if one["is_usable"] else "dim")
        name = plain(one["model"] or "–") + (" [green](default)[/]" if one["is_default"] else "")
        table.add_row(sign, plain(one["provider"]), name, plain(one["why"]), style=style)
    return table


def _providers(found: Iterable[Mapping[str, Any]]) -> "Table":
    table = new_table("name", "provider", "for", "model", "address", "key", "set")
    for one in found:
        table.add_row(
            f"[bold]{plain(one['name'])}[/]",
            plain(one["title"]),
            one["tier"],
            plain(one["default"] or "–"),
            plain(one["url"] or ""),
            "kept" if one["has_key"] else "none",
            ago(one["updated_at"]),
        )
    return table
