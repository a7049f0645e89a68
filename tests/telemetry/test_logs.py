import io
import json
import logging
from collections import Counter
from collections.abc import Generator
from typing import Any

import pytest
from pydantic import SecretStr

from dragoman.telemetry.logs import configure_logging, get_logger
from dragoman.telemetry.redaction import HIDDEN, Redactor

CANARY = 'ca"nary/ü+secret'


@pytest.fixture(autouse=True)
def logging_as_before() -> Generator[None]:
    root, ours = logging.getLogger(), logging.getLogger("dragoman")
    handlers, levels = list(root.handlers), (root.level, ours.level)
    yield
    root.handlers[:] = handlers
    root.setLevel(levels[0])
    ours.setLevel(levels[1])


def written(json_lines: bool, level: str = "info") -> tuple[io.StringIO, Redactor]:
    stream, redactor = io.StringIO(), Redactor()
    redactor.register([SecretStr(CANARY)])
    configure_logging(level, json_lines, redactor, stream)
    return stream, redactor


@pytest.mark.parametrize("json_lines", [True, False])
def test_a_known_secret_is_in_no_line_whatever_its_spelling(json_lines: bool) -> None:
    stream, _ = written(json_lines)
    log = get_logger()
    log.info(f"sent {CANARY}", url="http://x/?k=ca%22nary%2F%C3%BC%2Bsecret", nested={"a": [CANARY]})
    log.info("headers", value=json.dumps({"a": CANARY}), basic="Y2EibmFyeS/DvCtzZWNyZXQ=")
    try:
        raise ValueError(CANARY)
    except ValueError:
        log.exception("failed")
    logging.getLogger("library").warning("theirs: %s", CANARY)
    text = stream.getvalue()
    assert text.count(HIDDEN) >= 6
    for trace in ("nary", "Y2Eibm"):
        assert trace not in text


def test_fields_that_sound_secret_are_hidden_and_others_are_not() -> None:
    stream, _ = written(json_lines=True)
    get_logger().info(
        "connect", api_key="abc", Authorization="Bearer x", password=SecretStr("y"), tool="now", count=3
    )
    line: dict[str, Any] = json.loads(stream.getvalue())
    assert (line["api_key"], line["Authorization"], line["password"]) == (HIDDEN,) * 3
    assert (line["tool"], line["count"], line["level"]) == ("now", 3, "info")


def test_the_level_is_kept() -> None:
    stream, _ = written(json_lines=True, level="warning")
    get_logger().info("quiet")
    get_logger().warning("loud")
    assert [json.loads(line)["event"] for line in stream.getvalue().splitlines()] == ["loud"]


@pytest.mark.parametrize(
    ("level", "heard"),
    [("info", ["ours", "theirs loud"]), ("debug", ["ours quiet", "ours", "theirs", "theirs loud"])],
)
def test_libraries_tell_of_their_own_work_only_where_a_fault_is_looked_for(
    level: str, heard: list[str]
) -> None:
    stream, _ = written(json_lines=True, level=level)
    get_logger().debug("ours quiet")
    get_logger().info("ours")
    logging.getLogger("alembic.runtime.migration").info("theirs")
    logging.getLogger("alembic.runtime.migration").warning("theirs loud")
    assert [json.loads(line)["event"] for line in stream.getvalue().splitlines()] == heard


def test_short_values_are_not_taken_for_secrets() -> None:
    redactor = Redactor()
    redactor.register(["a", ""])
    assert redactor.clean("a banana") == "a banana"


def test_a_longer_secret_is_hidden_before_one_that_is_part_of_it() -> None:
    redactor = Redactor()
    redactor.register(["secret-1", "secret-1-and-more"])
    assert redactor.clean("x secret-1-and-more y") == f"x {HIDDEN} y"


def test_a_secret_of_digits_is_hidden_where_it_comes_back_as_a_number() -> None:
    redactor = Redactor()
    redactor.register(["918273645546", "8.1234567"])
    said = {"a": 918273645546, "b": [5, 918273645546, {"c": -918273645546}, 8.1234567], "d": True}
    assert redactor.clean_message(said) == {"a": HIDDEN, "b": [5, HIDDEN, {"c": HIDDEN}, HIDDEN], "d": True}


def test_what_is_nested_too_deep_is_cleaned_as_text() -> None:
    redactor = Redactor()
    redactor.register(["hunter2-hunter2"])
    value: Any = "hunter2-hunter2"
    for _ in range(50):
        value = [value]
    assert "hunter2" not in repr(redactor.clean_value(value))


def test_a_fault_that_repeats_is_written_once_a_second_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("dragoman.telemetry.logs.monotonic", lambda: now[0])
    stream, _ = written(json_lines=True)
    log, ours = logging.getLogger("asyncio"), get_logger()
    for number in range(1000):
        log.error("socket.accept() out of system resource\nsocket: %s", "<socket>")
        ours.warning("http.too_many_connections", most=100)
        ours.warning("connector.failed", connector=f"c{number}")
        ours.info("calls.made", count=1)
    now[0] += 1.0
    ours.warning("http.too_many_connections", most=100)
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    counted = Counter(line["event"].partition("\n")[0] for line in lines)
    assert counted == {
        "socket.accept() out of system resource": 1,
        "http.too_many_connections": 2,
        "connector.failed": 10,
        "calls.made": 1000,
    }
    assert lines[-1]["left_out"] == 999
