"""What people and programs hold on to, as committed text: a change of it is seen in a diff.

`pytest tests/contract --update-snapshots` writes the snapshots anew.
"""

import json
import re
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, get_type_hints

import psycopg
from product import Service, environment, run_dragoman
from prometheus_client.parser import text_string_to_metric_families

import dragoman
from boxes.boxed import BY_ITSELF
from dragoman import errors
from dragoman.connector import Configuration
from dragoman.mcp_endpoint.methods import as_rpc
from dragoman.settings import Settings
from dragoman.web.problems import problem, status_of
from servers.processes import stdio

Compare = Callable[[str, str], None]

HERE = Path(__file__).parent
SNAPSHOTS = HERE / "snapshots"
EVERY_FIELD = HERE / "every_field.toml"
# What a dragoman.toml says of a connector beside the fields of its configuration.
BESIDE = (
    *("description", "aliases", "enabled", "secrets", "secret"),
    *("bearer", "api_key", "api_key_header", "api_key_in", "basic", "oauth_client_secret", "shared"),
)

# One line per command: walking the tree in a process of its own, where width and colours are fixed.
WALK = """
import contextlib, io, json
from typer.main import get_command
from dragoman.cli.root import app, run

def walk(command, path):
    yield path
    for name in sorted(getattr(command, "commands", {})):
        yield from walk(command.commands[name], (*path, name))

for path in walk(get_command(app), ()):
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        run([*path, "--help"])
    print(json.dumps([path, shown.getvalue()]))
"""


def test_the_openapi_document_is_this(service: Service, compare: Compare) -> None:
    """A response that hundreds of operations have in common is written once, under a name."""
    document = service.get("/api/openapi.json")
    texts = [as_json(answer) for answer in responses_of(document).values()]
    common = {text: f"common response {number}" for number, text in enumerate(often(texts), 1)}
    for (path, method, status), answer in responses_of(document).items():
        if name := common.get(as_json(answer)):
            document["paths"][path][method]["responses"][status] = name
    document["common responses"] = {name: json.loads(text) for text, name in common.items()}
    compare("openapi.json", as_json(document))


def test_every_help_is_this(compare: Compare, is_updating: bool, tmp_path: Path) -> None:
    """One file for each command of the first level, its subcommands below it."""
    walked = subprocess.run(
        [sys.executable, "-c", WALK], env=environment(tmp_path), capture_output=True, text=True, check=True
    )
    texts: dict[str, str] = {}
    for line in walked.stdout.splitlines():
        path, shown = json.loads(line)
        name = f"help/{path[0] if path else 'dragoman'}.txt"
        bare = "\n".join(part.rstrip() for part in shown.strip("\n").splitlines())
        texts[name] = texts.get(name, "") + f"$ {' '.join(['dragoman', *path, '--help'])}\n{bare}\n\n"
    gone = {f"help/{path.name}" for path in (SNAPSHOTS / "help").glob("*.txt")} - texts.keys()
    if is_updating:
        for name in gone:
            (SNAPSHOTS / name).unlink()
    else:
        assert not gone, "a command has gone"
    for name, text in texts.items():
        compare(name, text)


def test_the_error_codes_are_these(compare: Compare) -> None:
    facts = {error.code: of_error(error) for error in all_below(errors.DragomanError)}
    compare("errors.json", as_json(facts))


def test_the_metrics_are_these(service: Service, compare: Compare) -> None:
    """Every family has a sample: a tool of a real server was called."""
    assert service.ask("POST", "/api/connectors", {"name": "raw", **stdio()}).status == 201
    assert service.ask("POST", "/api/call", {"tool": "mcp_raw_echo", "arguments": {"text": "x"}}).value["ok"]
    text = service.ask("GET", "/metrics").text
    assert service.ask("DELETE", "/api/connectors/raw").status == 204
    facts = {
        family.name: {
            "type": family.type,
            "help": family.documentation,
            "samples": {
                name: sorted(
                    {label for sample in family.samples if sample.name == name for label in sample.labels}
                )
                for name in sorted({sample.name for sample in family.samples})
            },
        }
        for family in text_string_to_metric_families(text)
    }
    compare("metrics.json", as_json(facts))


def test_the_settings_of_a_connector_are_these(compare: Compare) -> None:
    compare("connector.json", as_json(Configuration.model_json_schema()))


def test_the_settings_of_the_process_are_these(compare: Compare) -> None:
    settings = Settings(home=Path("/home"), box_programs=BY_ITSELF)
    facts = {
        f"DRAGOMAN_{name.upper()}": {"type": written(kind), "default": getattr(settings, name)}
        for name, kind in get_type_hints(Settings).items()
        if name != "home"
    }
    compare("environment.json", as_json(facts))


def test_the_keys_of_a_dragoman_toml_are_these(service: Service, compare: Compare) -> None:
    """Every key that could be meant is tried alone: is it read, or is there no such field?"""
    names = sorted({*Configuration.model_fields, *BESIDE})
    text = "".join(f"[connectors.{place_of(name)}]\n{name} = []\n" for name in names)
    steps = imported(service, text, dry_run=True)
    reasons = {step["name"]: step["reason"] for step in steps}
    known = [name for name in names if "there is no field" not in reasons[place_of(name)]]
    compare(
        "toml_keys.json", as_json({"known": known, "unknown": [name for name in names if name not in known]})
    )


def test_an_export_has_every_setting_of_a_connector(service: Service, compare: Compare) -> None:
    text = EVERY_FIELD.read_text()
    steps = imported(service, text, connect=False)
    assert {step["action"] for step in steps} == {"add"}, [step["reason"] for step in steps]
    own = service.get("/api/export?format=dragoman")
    used = {field for connector in own["connectors"].values() for field in connector}
    assert set(Configuration.model_fields) <= used, "every_field.toml uses every field of a connector"
    compare("export.json", as_json(own))
    compare(
        "export_with_secrets.json", as_json(service.get("/api/export?format=dragoman&include_secrets=true"))
    )
    compare("export_mcp_servers.json", as_json(service.get("/api/export?format=mcpServers")))
    for connector in own["connectors"]:
        assert service.ask("DELETE", f"/api/connectors/{connector}").status == 204


def test_the_tables_of_sqlite_are_these(service: Service, compare: Compare) -> None:
    with closing(sqlite3.connect(service.home / "dragoman.db")) as database:
        rows = database.execute(
            "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY tbl_name, type DESC, name"
        ).fetchall()
    compare("schema_sqlite.sql", "".join(f"{trimmed(sql)};\n\n" for (sql,) in rows))


def test_the_tables_of_postgresql_are_these(compare: Compare, tmp_path: Path, postgres_url: str) -> None:
    variables = {"DRAGOMAN_DATABASE_URL": postgres_url}
    made_tables = run_dragoman(tmp_path, "connectors", "list", variables=variables)
    assert made_tables.returncode == 0, made_tables.stderr
    with psycopg.connect(postgres_url) as database:
        rows = database.execute(POSTGRES_TABLES).fetchall()
    compare("schema_postgresql.txt", "".join(f"{' '.join(row)}\n" for row in rows))


def test_the_public_names_are_these(compare: Compare) -> None:
    compare("public_names.json", as_json(sorted(dragoman.__all__)))


POSTGRES_TABLES = """
SELECT * FROM (
    SELECT r.relname::text AS relation, 'column' AS kind, a.attname || ' '
        || format_type(a.atttypid, a.atttypmod) || CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END
        || coalesce(' DEFAULT ' || pg_get_expr(d.adbin, d.adrelid), '') AS definition
    FROM pg_class r
    JOIN pg_attribute a ON a.attrelid = r.oid AND a.attnum > 0 AND NOT a.attisdropped
    LEFT JOIN pg_attrdef d ON d.adrelid = r.oid AND d.adnum = a.attnum
    WHERE r.relkind = 'r' AND r.relnamespace = 'public'::regnamespace
    UNION ALL
    SELECT conrelid::regclass::text, 'constraint', conname || ' ' || pg_get_constraintdef(oid)
    FROM pg_constraint WHERE connamespace = 'public'::regnamespace AND contype <> 'n'
    UNION ALL
    SELECT indrelid::regclass::text, 'index', pg_get_indexdef(indexrelid)
    FROM pg_index WHERE indrelid::regclass::text IN (
        SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
    )
) AS parts ORDER BY relation COLLATE "C", kind COLLATE "C", definition COLLATE "C"
"""


def as_json(value: Any) -> str:
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, default=str) + "\n"


def responses_of(document: dict[str, Any]) -> dict[tuple[str, str, str], Any]:
    return {
        (path, method, status): answer
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        for status, answer in operation["responses"].items()
    }


def often(texts: list[str]) -> list[str]:
    return sorted(text for text, times in Counter(texts).items() if times > 20)


def written(kind: Any) -> str:
    """As it is written in the code; where Python keeps the type itself differs from version to version."""
    return (
        kind.__name__ if isinstance(kind, type) else re.sub(r"\b(pathlib(\._local)?|typing)\.", "", str(kind))
    )


def all_below(kind: type[errors.DragomanError]) -> list[type[errors.DragomanError]]:
    return [kind, *(found for child in kind.__subclasses__() for found in all_below(child))]


def of_error(error: type[errors.DragomanError]) -> dict[str, Any]:
    made = error("what happened")
    answer = problem(made)
    return {
        "retryable": error.retryable,
        "status": answer.status_code,
        "title": json.loads(bytes(answer.body))["title"],
        "status in the console": status_of(made),  # tests/web shows that a page has it
        "code of JSON-RPC": as_rpc(made).code,
    }


def imported(service: Service, text: str, **options: bool) -> list[dict[str, Any]]:
    reply = service.ask(
        "POST", "/api/import", {"files": [{"text": text, "name": "dragoman.toml"}], **options}
    )
    assert reply.status == 200, reply.text
    return reply.value["steps"]


def place_of(field: str) -> str:
    return f"uses-{field.replace('_', '-')}"


def trimmed(sql: str) -> str:
    """With the constraints of a table in the order of their names: they are written in any."""
    lines = [line.strip().removesuffix(",") for line in sql.strip().splitlines() if line.strip()]
    if len(lines) < 3:
        return " ".join(lines)
    first, *parts, last = lines
    parts.sort(key=lambda part: part if part.startswith("CONSTRAINT") else "")
    return "\n".join([first, *(f"    {part}," for part in parts[:-1]), f"    {parts[-1]}", last])
