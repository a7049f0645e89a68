"""Writes docs/settings.md and the types of a connector's settings from their descriptions.

Run it with the Python of .venv.
"""

import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, SecretStr

from dragoman.agent import AgentProfile
from dragoman.connector import Configuration, GivenCredentials
from dragoman.people import ApiKey, Preferences, User, UserLimits, Workspace
from dragoman.setting import Described, people_set, settings_of
from dragoman.settings import PREFIX, Settings

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "settings.md"
TYPES = ROOT / "src" / "dragoman" / "hub" / "connector_settings.py"
PEOPLE_TYPES = ROOT / "src" / "dragoman" / "hub" / "people_settings.py"
Column = tuple[str, Callable[[Described], str]]
WHO = {
    "owner": "owner",
    "narrow": "owner; stricter: also admins, on what the operator gave",
    "admin": "admins of the workspace",
    "operator": "operator",
}
HEAD = """# Settings

<!-- Made by scripts/settings_page.py from descriptions that stand with the fields; a test keeps it so. -->

A setting can be set by REST (`PATCH`), by the command, in the console, in a `dragoman.toml`, in an export
and from Python. `null` in REST, `--unset NAME` (`--unset retry.tries`) and a cleared field of a form set it
back to its default.
"""
TYPES_HEAD = '''"""What `hub.connectors.add` and `update` take, for type checkers and for completion.

Made by `scripts/settings_page.py` from `Configuration` and `GivenCredentials`; a test keeps it so.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict

from pydantic import SecretStr
'''


PEOPLE_HEAD = '''"""What agents, users, keys and workspaces are made with, for type checkers and completion.

Made by `scripts/settings_page.py` from their descriptions; a test keeps it so.
"""

from collections.abc import Collection
from datetime import datetime
from typing import Literal, TypedDict

from dragoman.people import CallLimits
'''


def cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def default_of(one: Described) -> str:
    if one.default is None or one.default in ((), {}, frozenset(), ""):
        return ""
    if one.name == "home":
        return "the platform's data directory"
    return f"`{one.text(one.default)}`"


def kind_of(one: Described) -> str:
    kinds = {"whole": "whole number", "switch": "yes or no", "list": "list", "table": "names and values"}
    return ", ".join(f"`{choice}`" for choice in one.choices) or kinds.get(one.kind, one.kind)


def table(described: Iterable[Described], names: str, *columns: Column) -> str:
    """A table for each group, in the order of their first fields."""
    described = [one for one in described if one.setting.meaning and not one.setting.derived]
    text = ""
    for group in dict.fromkeys(one.setting.group for one in described):
        heads = [names, "what it means", "value", "default", *(head for head, _ in columns)]
        text += f"\n### {group}\n\n| {' | '.join(heads)} |\n|{'---|' * len(heads)}\n"
        for one in described:
            if one.setting.group != group:
                continue
            cells = [f"`{one.name}`", one.setting.meaning, kind_of(one), default_of(one)]
            cells += [value(one) for _, value in columns]
            text += f"| {' | '.join(map(cell, cells))} |\n"
    return text


def flag_of(one: Described) -> str:
    if one.path[0] == "limits":
        return f"`--limit {one.path[-1]}=`"
    if one.flags[0] == "--":
        return "after `--`" if one.setting.ways else "after the name"
    return " ".join(f"`{flag}`" for flag in one.flags)


def who_of(owner: str) -> Column:
    return ("who may change it", lambda one: owner if one.setting.who == "owner" else WHO[one.setting.who])


def written() -> str:
    who: Column = ("who may change it", lambda one: WHO[one.setting.who])
    option: Column = ("option", flag_of)
    variable: Column = ("variable", lambda one: f"`{PREFIX}{one.name.upper()}`")
    return "".join(
        (
            HEAD,
            "\n## Connectors\n\n`dragoman connectors add` and `update`; `[connectors.NAME]` of a file.\n",
            table(settings_of(Configuration), "setting", option, who),
            "\n## Credentials of a connector\n\nGiven beside the settings; encrypted, never shown.\n",
            table(settings_of(GivenCredentials), "field"),
            "\n## Agents\n\n`dragoman agents create` and `update`; `[agents.NAME]` of a file. Description,"
            " capabilities and connectors\nare set of workers only.\n",
            table(people_set(AgentProfile), "setting", option, who_of("its owner; of everybody's: admins")),
            "\n## Workspaces\n\n`dragoman workspaces update`. Of the limits of the app (`[defaults.limits]`"
            " in `dragoman.toml`), of the\nworkspace, of a user and of one's own the smallest counts.\n",
            table(people_set(Workspace), "setting", option, who),
            "\n## Users\n\n`dragoman users add` and `update`.\n",
            table(people_set(User), "setting", option, who),
            "\n## Preferences\n\nWhat a user chooses: `dragoman preferences set`.\n",
            table(people_set(Preferences), "setting", who_of("the user")),
            "\n## API keys\n\n`dragoman keys add` and `update`. A key never has more than its user; nobody"
            " gives it more than\nthe credential has that asks: no scope, no capability, no longer life. Its"
            " limits count beside those of its\nuser, and so do those of a client that has logged in:"
            " `dragoman clients update`.\n",
            table(people_set(ApiKey), "setting", option, who_of("its user; admins")),
            "\n## The process\n\nEnvironment variables, read when a process starts.\n",
            table(settings_of(Settings), "setting", variable),
        )
    )


def typed_noun(name: str, noun: type) -> str:
    """A table of the settings that people give of a noun; limits come whole or by name."""
    text = f'\n\nclass {name}(TypedDict, total=False):\n    """Of {noun.__name__}; None sets back."""\n'
    nested = dict.fromkeys(one.path[0] for one in people_set(noun) if len(one.path) > 1)
    for one in people_set(noun):
        if len(one.path) == 1:
            text += f'\n    {one.name}: {type_of(one.hint)} | None\n    """{one.setting.meaning}"""\n'
    for field in nested:
        text += f'\n    {field}: "CallLimits | LimitSettings | None"\n'
    return text


def written_people_types() -> str:
    nouns = {
        "LimitSettings": UserLimits,
        "AgentSettings": AgentProfile,
        "UserSettings": User,
        "KeySettings": ApiKey,
        "WorkspaceSettings": Workspace,
        "PreferenceSettings": Preferences,
    }
    return PEOPLE_HEAD + "".join(typed_noun(name, noun) for name, noun in nouns.items())


def type_of(hint: Any) -> str:
    """A field's type as people may give it: lists where the model has tuples, texts where it has secrets."""
    if get_origin(hint) is Annotated:
        return type_of(get_args(hint)[0])
    if get_origin(hint) in (Union, UnionType):
        return " | ".join(dict.fromkeys(type_of(one) for one in get_args(hint) if one is not NoneType))
    if get_origin(hint) is Literal:
        return f"Literal[{', '.join(json.dumps(one) for one in get_args(hint))}]"
    if get_origin(hint) is frozenset:
        return f"Collection[{type_of(get_args(hint)[0])}]"
    if get_origin(hint) in (tuple, list):
        inner = type_of(get_args(hint)[0])
        if inner.startswith("Literal"):
            return f"Sequence[{inner}]"
        return f"list[{inner}] | tuple[{inner}, ...]"
    if get_origin(hint) is dict:
        return f"Mapping[{', '.join(type_of(one) for one in get_args(hint))} | None]"  # None: without it
    if hint is SecretStr:
        return "SecretStr | str"
    return f"{hint.__name__}Settings" if issubclass(hint, BaseModel) else hint.__name__


def typed(name: str, meaning: str, *models: type[BaseModel]) -> str:
    """A table of the fields of these models and, before it, one for each model inside of them."""
    before, text = "", f'\n\nclass {name}(TypedDict, total=False):\n    """{meaning}"""\n'
    described = {one.path: one.setting for model in models for one in settings_of(model)}
    for model in models:
        for field, hint in get_type_hints(model, include_extras=True).items():
            setting = described.get((field,))
            if field not in model.model_fields or (setting and setting.derived):
                continue
            kind = get_args(hint)[0] if get_origin(hint) is Annotated else hint
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                whole = str(kind.__doc__).partition("\n")[0]
                before += typed(f"{kind.__name__}Settings", whole, kind)
            text += f"\n{_line(field, f'{type_of(hint)} | None')}\n"
            if setting:
                text += f'    """{setting.meaning}"""\n'
    return before + text


def _line(field: str, kind: str) -> str:
    """As `ruff format` leaves it."""
    line = f"    {field}: {kind}"
    if len(line) <= 110:
        return line
    parts = kind.replace(" | ", "\n        | ")
    return f"    {field}: (\n        {parts}\n    )"


def written_types() -> str:
    meaning = "The settings of a connector, and the credentials that are given beside them; None sets back."
    return TYPES_HEAD + typed("ConnectorSettings", meaning, Configuration, GivenCredentials)


if __name__ == "__main__":
    files = ((PAGE, written()), (TYPES, written_types()), (PEOPLE_TYPES, written_people_types()))
    for file, text in files:
        file.write_text(text, encoding="utf-8")
        print(f"wrote {file}", file=sys.stderr)
