"""How the process logs: to stderr, readable or as JSON, with secrets taken out. Nothing at import."""

import logging
import sys
from collections.abc import Callable, MutableMapping
from functools import partial
from time import monotonic
from typing import Any, TextIO

from dragoman.telemetry.redaction import Redactor

_STANDARD_FIELDS = frozenset(vars(logging.makeLogRecord({})))


class EventLogger:
    """Writes events to a logger of the standard library; their facts are fields of the record."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger

    def log(self, level: int, event: str, *, exc_info: Any = None, **facts: Any) -> None:
        self._write(level, event, exc_info, facts)

    def debug(self, event: str, *, exc_info: Any = None, **facts: Any) -> None:
        self._write(logging.DEBUG, event, exc_info, facts)

    def info(self, event: str, *, exc_info: Any = None, **facts: Any) -> None:
        self._write(logging.INFO, event, exc_info, facts)

    def warning(self, event: str, *, exc_info: Any = None, **facts: Any) -> None:
        self._write(logging.WARNING, event, exc_info, facts)

    def error(self, event: str, *, exc_info: Any = None, **facts: Any) -> None:
        self._write(logging.ERROR, event, exc_info, facts)

    def critical(self, event: str, *, exc_info: Any = None, **facts: Any) -> None:
        self._write(logging.CRITICAL, event, exc_info, facts)

    def exception(self, event: str, **facts: Any) -> None:
        """An error, with the exception that is being handled."""
        self._write(logging.ERROR, event, True, facts)

    def _write(self, level: int, event: str, exc_info: Any, facts: dict[str, Any]) -> None:
        if self._logger.isEnabledFor(level):
            self._logger.log(level, event, exc_info=exc_info, extra=facts, stacklevel=3)


_LOGGER = EventLogger(logging.getLogger("dragoman"))


def get_logger() -> EventLogger:
    """The logger of every part. As a library it obeys the standard `logging` of the application:
    warnings on stderr and nothing else, until somebody asks for more.
    """
    return _LOGGER


def configure_logging(
    level: str = "info", json: bool = False, redactor: Redactor | None = None, stream: TextIO | None = None
) -> None:
    """Sets up the standard library's logging for the whole process, once, at a door."""
    number = logging.getLevelNamesMapping().get(level.upper(), logging.INFO)
    output: TextIO = stream if stream is not None else sys.stderr
    outlet = logging.StreamHandler(output)
    outlet.addFilter(RepeatFilter())
    outlet.setFormatter(_LateFormatter(partial(_line_formatter, output, json, redactor or Redactor())))
    # What libraries tell of their own work is for those who look for a fault.
    theirs = logging.INFO if number <= logging.DEBUG else max(number, logging.WARNING)
    logging.basicConfig(level=theirs, handlers=[outlet], force=True)
    logging.getLogger("dragoman").setLevel(number)


class _LateFormatter(logging.Formatter):
    """Made with the first line: structlog takes rich along, and most commands write no line."""

    def __init__(self, make: Callable[[], logging.Formatter]) -> None:
        super().__init__()
        self._make = make
        self._made: logging.Formatter | None = None

    def format(self, record: logging.LogRecord) -> str:
        self._made = self._made or self._make()
        return self._made.format(record)


def _line_formatter(output: TextIO, json: bool, redactor: Redactor) -> logging.Formatter:
    import structlog

    renderer = (
        structlog.processors.JSONRenderer() if json else structlog.dev.ConsoleRenderer(colors=output.isatty())
    )
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[
            structlog.stdlib.ExtraAdder(),
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            Redaction(redactor),
        ],
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
    )


class RepeatFilter(logging.Filter):
    """Nobody fills the disk by failing: a warning of the same words is written once a second.

    Those of one kind, about different things, are written ten times. The next of its kind says with
    `left_out` how many were not.
    """

    def __init__(self) -> None:
        super().__init__()
        self._written: dict[tuple[object, ...], tuple[float, int]] = {}
        self._left_out: dict[tuple[object, ...], int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING:
            return True
        kind = (record.name, record.levelno, str(record.msg).partition("\n")[0])
        about = {name: value for name, value in vars(record).items() if name not in _STANDARD_FIELDS}
        if not (self._has_room((*kind, record.getMessage(), repr(about)), 1) and self._has_room(kind, 10)):
            self._left_out[kind] = self._left_out.get(kind, 0) + 1
            return False
        if left_out := self._left_out.pop(kind, 0):
            record.left_out = left_out
        return True

    def _has_room(self, key: tuple[object, ...], most: int) -> bool:
        """Counts it, too."""
        now = monotonic()
        since, count = self._written.get(key, (now, 0))
        if now - since >= 1.0:
            since, count = now, 0
        if len(self._written) >= 1000:
            self._written = {one: seen for one, seen in self._written.items() if now - seen[0] < 1.0}
        self._written[key] = (since, count + 1)
        return count < most


class Redaction:
    """The last step before a line is written: no field leaves with a secret in it."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor

    def __call__(self, logger: Any, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        kept = {key: value for key, value in event.items() if key.startswith("_")}
        seen = {key: value for key, value in event.items() if not key.startswith("_")}
        return {**kept, **self._redactor.clean_value(seen)}
