"""The tree of commands, and how the process ends: 0 it worked, 1 it failed, 2 it was asked wrongly."""

import sys
from functools import cache
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from dragoman.cli import (
    agents,
    approvals,
    ask,
    audit,
    backups,
    bundles,
    calls,
    chat,
    cluster,
    code,
    connect,
    connectors,
    console,
    credentials,
    demo,
    discovery,
    doctor,
    evaluation,
    hooks,
    imports,
    init,
    metrics,
    migrate,
    models,
    people,
    preferences,
    questions,
    recipes,
    resources,
    rollout,
    runs,
    serve,
    stdio,
    threads,
    tools,
    usage,
    worker,
)
from dragoman.cli.screen import Screen
from dragoman.cli.session import AsJson

_ORDER = (
    *("init", "demo", "chat", "ask", "agents", "runs", "questions", "recipes", "models", "eval"),
    *("connectors", "import", "export", "discover", "tools", "bundles", "call", "resources", "prompts"),
    *("code", "results", "calls", "events"),
    *(
        "approvals",
        "credentials",
        "threads",
        "preferences",
        "usage",
        "metrics",
        "hooks",
        "audit",
        "rollout",
        "cluster",
    ),
    *("workspaces", "users", "keys", "clients", "whoami"),
    *("connect", "stdio", "serve", "worker", "console", "token"),
    *("backup", "restore", "migrate", "doctor", "version"),
)


class _Ordered(TyperGroup):
    """As one gets to know them, not as they were declared."""

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(self.commands, key=_ORDER.index)


app = typer.Typer(
    name="dragoman",
    cls=_Ordered,
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
app.command("init")(init.init)
app.command("demo")(demo.demo)
app.command("chat")(chat.chat)
app.command("ask")(ask.ask)
app.add_typer(agents.app, name="agents")
app.add_typer(runs.app, name="runs")
app.add_typer(questions.app, name="questions")
app.add_typer(recipes.app, name="recipes")
app.add_typer(models.app, name="models")
app.command("eval")(evaluation.evaluate)
app.add_typer(connectors.app, name="connectors")
app.command("import")(imports.import_files)
app.command("export")(imports.export)
app.command("discover")(discovery.discover)
app.add_typer(tools.app, name="tools")
app.add_typer(bundles.app, name="bundles")
app.command("call")(calls.call)
app.add_typer(resources.resources, name="resources")
app.add_typer(resources.prompts, name="prompts")
app.add_typer(code.app, name="code")
app.add_typer(calls.results, name="results")
app.add_typer(calls.calls, name="calls")
app.command("events")(calls.events)
app.add_typer(approvals.app, name="approvals")
app.add_typer(credentials.app, name="credentials")
app.add_typer(threads.app, name="threads")
app.add_typer(preferences.app, name="preferences")
app.add_typer(usage.app, name="usage")
app.add_typer(metrics.app, name="metrics")
app.add_typer(hooks.app, name="hooks")
app.add_typer(audit.app, name="audit")
app.add_typer(rollout.app, name="rollout")
app.add_typer(cluster.app, name="cluster")
app.add_typer(people.workspaces, name="workspaces")
app.add_typer(people.users, name="users")
app.add_typer(people.keys, name="keys")
app.add_typer(people.clients, name="clients")
app.command("whoami")(people.whoami)
app.command("connect")(connect.connect)
app.command("stdio")(stdio.stdio)
app.command("serve")(serve.serve)
app.command("worker")(worker.worker)
app.command("console")(console.console)
app.command("token")(serve.token)
app.command("backup")(backups.backup)
app.command("restore")(backups.restore)
app.command("migrate")(migrate.migrate)
app.command("doctor")(doctor.doctor)


def _version() -> str:
    from importlib.metadata import version

    return version("dragoman")


@app.command("version")
def show_version(as_json: AsJson = False) -> None:
    """Print the version."""
    if as_json:
        Screen(True).data({"version": _version()})
    else:
        print(_version())


def _print_version(wanted: bool) -> None:
    if wanted:
        print(_version())
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
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "dragoman"
    Screen(False).fail({"detail": message, "hint": f"{path} --help"})
    return error.exit_code
