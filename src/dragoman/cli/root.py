"""The tree of commands, and how the process ends: 0 it worked, 1 it failed, 2 it was asked wrongly.

The first level is a table: a module is imported when its command runs or its own help is asked for.
"""

import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

# The first level, as one gets to know it: the module of each command or group, its name there, and the
# first line of its help.
_COMMANDS = {
    "init": (
        "init",
        "init",
        "Begin: take over the servers of Claude, Cursor, VS Code and Codex, and connect these to Dragoman.",
    ),
    "demo": (
        "demo",
        "demo",
        "Show Dragoman at work: a service with four sample servers, a call, a thread. Until Ctrl-C.",
    ),
    "chat": ("chat", "chat", "Talk to the assistant and to other agents: @name sends a message to one."),
    "ask": ("ask", "ask", "Ask, and see the answer come."),
    "agents": ("agents", "app", "Agents: workers of your own, one for each connector, and the assistant."),
    "runs": ("runs", "app", "What agents worked on: look, follow, stop."),
    "questions": ("questions", "app", "What agents want to know from you before they go on."),
    "recipes": (
        "recipes",
        "app",
        "How jobs were done: examples for later runs of the same connector's agent.",
    ),
    "models": ("models", "app", "Language models: which can be used, keys of providers, the default."),
    "eval": (
        "evaluation",
        "evaluate",
        "Try cases against the model, and say which passed. Ends with 1 when too few did.",
    ),
    "connectors": (
        "connectors",
        "app",
        "Add, look at, change and remove connectors: the servers whose tools Dragoman offers.",
    ),
    "import": (
        "imports",
        "import_files",
        "Take over a configuration that you already have. Importing twice changes nothing.",
    ),
    "export": (
        "imports",
        "export",
        "Write every connector as text that can be imported again, here or elsewhere.",
    ),
    "discover": (
        "discovery",
        "discover",
        "Search the registry of MCP servers. Shows the exact command or address; nothing runs.",
    ),
    "tools": ("tools", "app", "See, switch, set and accept the tools of all connectors."),
    "bundles": (
        "bundles",
        "app",
        "Choices of tools under a name, each shown as you want it; for clients at /mcp/bundles/NAME.",
    ),
    "call": (
        "calls",
        "call",
        "Call a tool. Values are read as the tool's schema wants them; a repeated key is a list.",
    ),
    "resources": ("resources", "resources", "List, read and watch what servers offer beside tools."),
    "prompts": ("resources", "prompts", "List and fill the prompts that servers keep."),
    "code": ("code", "app", "Run Python that calls tools, where it can reach nothing else."),
    "results": ("calls", "results", "Read results that were too large to show."),
    "calls": ("calls", "calls", "Look at what was called."),
    "events": (
        "calls",
        "events",
        "Follow what happens in the running service, until Ctrl-C. With --json one document per line.",
    ),
    "approvals": ("approvals", "app", "What agents ask of you: look, answer, take back."),
    "credentials": (
        "credentials",
        "app",
        "Your secrets for connectors: set, authorise, remove, rotate the key.",
    ),
    "threads": ("threads", "app", "Conversations and the connectors that are active in them."),
    "preferences": ("preferences", "app", "What your new threads start with, and limits of your own."),
    "usage": ("usage", "app", "What was used, and what may still be."),
    "metrics": ("metrics", "app", "Numbers over time: calls, errors, latency, tokens and cost."),
    "hooks": ("hooks", "app", "What looks at every call, result and list."),
    "audit": ("audit", "app", "Who did what to which, and whether the trail is whole."),
    "rollout": (
        "rollout",
        "app",
        "Who reaches connectors through their agents; for who runs the installation.",
    ),
    "cluster": ("cluster", "app", "The processes that share the installation; for who runs it."),
    "workspaces": ("people", "workspaces", "Tenants: nothing crosses their border."),
    "users": ("people", "users", "People and services inside a workspace."),
    "keys": ("people", "keys", "API keys: how users and programs come in."),
    "clients": ("people", "clients", "MCP clients that log in by URL, and what they may use."),
    "whoami": ("people", "whoami", "Show who you are to Dragoman: user, workspace, role, scopes, limits."),
    "connect": ("connect", "connect", "Let Claude, Cursor, VS Code or Codex use the tools of this home."),
    "stdio": ("stdio", "stdio", "Speak MCP over stdin and stdout, for clients that start a program."),
    "serve": (
        "serve",
        "serve",
        "Serve console, REST API and MCP endpoint of this home until Ctrl-C or SIGTERM.",
    ),
    "worker": ("worker", "worker", "Execute runs of agents until Ctrl-C or SIGTERM. Serves no door."),
    "console": (
        "console",
        "console",
        "Print a link that signs you in to the console of the running service. It works once, for an hour.",
    ),
    "token": ("serve", "token", "Print the operator's bearer token; the first time, make it."),
    "backup": (
        "backups",
        "backup",
        "Write everything to one file, encrypted with a passphrase: the database, the master key, the token.",
    ),
    "restore": (
        "backups",
        "restore",
        "Put a backup into an empty home, or an empty PostgreSQL database. Stop every service first.",
    ),
    "migrate": (
        "migrate",
        "migrate",
        "Bring the database up to date and start nothing: a step of a deployment, before its services.",
    ),
    "doctor": (
        "doctor",
        "doctor",
        "Check the home, the key, the store, the programs that servers need, and every connector.",
    ),
    "version": ("version", "version", "Print the version."),
}


@cache
def _loaded(name: str) -> Any:
    """What Typer makes of it."""
    module, attribute, _ = _COMMANDS[name]
    found = getattr(import_module(f"dragoman.cli.{module}"), attribute)
    stem = typer.Typer(rich_markup_mode="rich", add_completion=False)
    stem.callback()(lambda: None)
    if isinstance(found, typer.Typer):
        stem.add_typer(found, name=name)
    else:
        stem.command(name)(found)
    group: Any = get_command(stem)
    return group.commands[name]


class _Deferred(TyperCommand):
    """Stands for a command in lists and completions; whoever runs it gets the command itself."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        return _loaded(str(self.name)).make_context(info_name, args, parent=parent, **extra)


class _Commands(Mapping[str, Any]):
    """The commands themselves, each loaded when it is taken."""

    def __getitem__(self, name: str) -> Any:
        return _loaded(name)

    def __iter__(self) -> Iterator[str]:
        return iter(_COMMANDS)

    def __len__(self) -> int:
        return len(_COMMANDS)


class _Root(TyperGroup):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands: Any = _Commands()

    def list_commands(self, ctx: Any) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return _Deferred(cmd_name, help=_COMMANDS[cmd_name][2]) if cmd_name in _COMMANDS else None


app = typer.Typer(
    name="dragoman",
    cls=_Root,
    no_args_is_help=True,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="""Connects AI agents to every tool server.

    \b
    dragoman connectors add time -- uvx mcp-server-time
    dragoman ask "what time is it in Tokyo?"
    dragoman chat
    dragoman call mcp_time_get_current_time timezone=Europe/Rome
    dragoman serve
    """,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from dragoman.cli.version import installed

        print(installed())
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version.")
    ] = False,
) -> None:
    pass


def main() -> None:
    sys.exit(run(sys.argv[1:]))


@cache
def _commands() -> Any:
    """The whole tree, built once however many command lines a process runs."""
    return get_command(app)


def run(arguments: list[str]) -> int:
    """One command line. Data goes to stdout, errors to stderr."""
    try:
        code = _commands().main(args=arguments, prog_name="dragoman", standalone_mode=False)
    except typer.TyperException as error:
        return _usage(error)
    except typer.Abort:
        return 130
    return code if isinstance(code, int) else 0


def _usage(error: typer.TyperException) -> int:
    message = error.format_message()
    if not message:
        return error.exit_code
    from dragoman.cli.screen import Screen

    context = getattr(error, "ctx", None)
    path = context.command_path if context else "dragoman"
    Screen(False).fail({"detail": message, "hint": f"{path} --help"})
    return error.exit_code
