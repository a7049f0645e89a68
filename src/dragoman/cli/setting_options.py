"""The options of a command that sets what a noun describes: one for each setting, made when they are needed.

The description needs pydantic, which takes longer to load than most commands take: so a command has its
options only once it is asked for them.
"""

import inspect
import os
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand
from typer.main import get_command

if TYPE_CHECKING:
    from dragoman.setting import Described

_TYPES: dict[str, Any] = {
    "number": float,
    "whole": int,
    "switch": bool,
    "list": list[str],
    "table": list[str],
}
_UNSET = inspect.Parameter(
    "unset",
    inspect.Parameter.KEYWORD_ONLY,
    default=None,
    annotation=Annotated[
        list[str] | None,
        typer.Option(
            "--unset", metavar="NAME", help="Set it back to its default: retry.tries, or several with commas."
        ),
    ],
)
Settings = Callable[[], "tuple[Described, ...]"]
Register = Callable[[Callable[..., None]], Callable[..., None]]


def settings_of(module: str, noun: str, *only: str) -> Settings:
    """What people set of a class in this module of `dragoman`, once it is needed; or `only` these."""

    def described() -> "tuple[Described, ...]":
        from dragoman.setting import people_set

        described = people_set(getattr(import_module(f"dragoman.{module}"), noun))
        return tuple(one for one in described if not only or one.path[0] in only)

    return described


def with_settings(app: typer.Typer, name: str, described: Settings, help: str | None = None) -> Register:
    """Registers a command whose parameter `given` takes what was set, in the form that REST has it."""
    return _registering(app, name, described, help, [])


def with_changes(app: typer.Typer, name: str, described: Settings) -> Register:
    """The same with `--unset`: what it names is None in `given`."""
    return _registering(app, name, described, None, [_UNSET])


def _registering(
    app: typer.Typer, name: str, described: Settings, help: str | None, more: list[inspect.Parameter]
) -> Register:
    def register(function: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(function)
        parameters = [one for one in own.parameters.values() if one.name != "given"]

        class Command(TyperCommand):
            is_complete = False

            def get_params(self, ctx: Any) -> Any:
                if not self.is_complete:
                    self.is_complete = True
                    single = typer.Typer(add_completion=False)
                    single.command(name)(_complete(function, [*more, *parameters], described()))
                    whole = get_command(single)
                    self.params, self.callback = whole.params, whole.callback
                return super().get_params(ctx)

        @wraps(function)
        def bare(**values: Any) -> None:
            raise AssertionError("its options are made before it is called")

        bare.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
        bare.__annotations__ = {one.name: one.annotation for one in parameters}
        app.command(name, cls=Command, help=help)(bare)
        return function

    return register


def _complete(
    function: Callable[..., None], own: list[inspect.Parameter], described: "tuple[Described, ...]"
) -> Callable[..., None]:
    options = {
        parameter.name: (one, parameter)
        for one in described
        if one.flags[0] != "--" and one.path[0] != "limits"
        for parameter in _parameters(one)
    }
    limits = [one for one in described if one.path[0] == "limits"]
    if limits:
        options["limits"] = (limits[0], _limits_option(limits))

    def called(**values: Any) -> None:
        said = [(one, name, values.pop(name)) for name, (one, _) in options.items()]
        facts: dict[str, Any] = {}
        for one, name, value in said:
            if value is not None:
                _put(facts, one, name, value)
        _unset(facts, values.pop("unset", None), described)
        function(**values, given=facts)

    own = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in own]
    parameters = [*(parameter for _, parameter in options.values()), *own]
    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {one.name: one.annotation for one in parameters}
    return called


def _parameters(one: "Described") -> list[inspect.Parameter]:
    """One for the value; beside it one for a secret from the environment, or for values to encrypt."""
    flag, setting = one.flags[0], one.setting
    if setting.secret:
        return [
            _option(one.key, str, flag, f"{setting.meaning} Better: {flag}-env.", one),
            _option(f"{one.key}_env", str, f"{flag}-env", "Read it from this variable now.", one, "VAR"),
        ]
    help, metavar = setting.meaning, setting.metavar or None
    if one.choices:
        help = f"{help.removesuffix('.')} ({', '.join(one.choices)})."
    if one.kind == "moment":
        help += " As 12h, 30d or 8w from now, or a date."
    if one.kind == "table":
        secret = flag.replace("--", "--secret-")
        return [
            _option(one.key, list[str], flag, help, one, "K=V"),
            _option(f"secret_{one.key}", list[str], secret, "The same, encrypted.", one, "K=V"),
        ]
    return [_option(one.key, _TYPES.get(one.kind, str), "/".join(one.flags), help, one, metavar)]


def _limits_option(limits: "list[Described]") -> inspect.Parameter:
    names = ", ".join(one.path[-1] for one in limits)
    option = typer.Option(
        "--limit",
        "--bound",
        help=f"{names}; an empty number takes it away.",
        metavar="NAME=NUMBER",
        show_default=False,
        rich_help_panel=limits[0].setting.group,
    )
    annotation = Annotated[list[str] | None, option]
    return inspect.Parameter("limits", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _option(
    name: str, kind: Any, flags: str, help: str, one: "Described", metavar: str | None = None
) -> inspect.Parameter:
    option = typer.Option(
        flags, help=help, metavar=metavar, show_default=False, rich_help_panel=one.setting.group
    )
    annotation = Annotated[kind | None, option]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _put(facts: dict[str, Any], one: "Described", name: str, value: Any) -> None:
    if name == "limits":
        facts["limits"] = _limits(value)
        return
    if one.setting.secret and name.endswith("_env"):
        value = _from_environment(value)
    if one.kind == "moment":
        value = _moment(one.flags[0], value)
    if one.kind == "table":
        prefix = "header" if one.key == "headers" else one.key
        value = pairs(one.flags[0] if name == one.key else one.flags[0].replace("--", "--secret-"), value)
        if name != one.key:
            facts["secret"] = [*facts.get("secret", ()), *(f"{prefix}:{word}" for word in value)]
        value = {**facts.get(one.key, {}), **value}
    if one.kind == "list":
        if not value:
            return
        value = one.read_words(value)
    holder = facts
    for part in one.path[:-1]:
        holder = holder.setdefault(part, {})
    holder[one.path[-1]] = value


def _unset(facts: dict[str, Any], names: list[str] | None, described: "tuple[Described, ...]") -> None:
    """None for each setting that goes back to its default."""
    from dragoman.names import did_you_mean

    described = tuple(one for one in described if one.setting.meaning)
    known = {one.name for one in described} | {one.path[0] for one in described}
    for name in (word.strip() for words in names or () for word in words.split(",")):
        path = name.replace("-", "_").split(".")
        if ".".join(path) not in known:
            near = did_you_mean(name[:80], sorted(known))
            raise typer.BadParameter(f"there is no setting {name[:80]!r}; {near}", param_hint="--unset")
        holder = facts
        for part in path[:-1]:
            holder = holder.setdefault(part, {})
        holder[path[-1]] = None


def any_of(changes: dict[str, Any]) -> dict[str, Any]:
    """The same; a command that would change nothing was not meant so."""
    if not changes:
        raise typer.BadParameter("say what to change")
    return changes


def _moment(option: str, text: str) -> str:
    from dragoman.errors import InvalidArguments
    from dragoman.setting import read_moment

    try:
        return read_moment(text).isoformat()
    except InvalidArguments as error:
        raise typer.BadParameter(f"{error.message}; {error.command_hint}", param_hint=option) from None


def _limits(words: list[str]) -> dict[str, float | None]:
    limits: dict[str, float | None] = {}
    for name, number in pairs("--limit", words).items():
        try:
            value = float(number) if number else None
        except ValueError:
            raise typer.BadParameter(f"{name}={number} is not NAME=NUMBER", param_hint="--limit") from None
        limits[name.replace("-", "_")] = int(value) if value is not None and value.is_integer() else value
    return limits


def pairs(option: str, words: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for word in words:
        name, sign, value = word.partition("=")
        if not sign or not name:
            # The word is not repeated: half of it may be a secret.
            raise typer.BadParameter("give it as NAME=VALUE", param_hint=option)
        found[name] = value
    return found


def _from_environment(variable: str) -> str:
    if not (value := os.environ.get(variable)):
        raise typer.BadParameter(f"the variable {variable} is not set")
    return value
