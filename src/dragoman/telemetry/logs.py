"""How the process logs: to stderr, readable or as JSON, with secrets taken out. Nothing at import."""

import logging
import sys
from collections.abc import MutableMapping
from typing import Any, TextIO

import structlog

from dragoman.telemetry.redaction import Redactor


def get_logger() -> structlog.stdlib.BoundLogger:
    """The logger of every part. As a library it obeys the standard `logging` of the application:
    warnings on stderr and nothing else, until somebody asks for more.
    """
    return structlog.wrap_logger(
        logging.getLogger("dragoman"),
        processors=[structlog.stdlib.filter_by_level, structlog.stdlib.render_to_log_kwargs],
        wrapper_class=structlog.stdlib.BoundLogger,
    )


def configure_logging(
    level: str = "info", json: bool = False, redactor: Redactor | None = None, stream: TextIO | None = None
) -> None:
    """Sets up structlog and the standard library's logging for the whole process, once, at a door."""
    redactor = redactor or Redactor()
    number = logging.getLevelNamesMapping().get(level.upper(), logging.INFO)
    output: TextIO = stream if stream is not None else sys.stderr
    renderer = (
        structlog.processors.JSONRenderer() if json else structlog.dev.ConsoleRenderer(colors=output.isatty())
    )
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        Redaction(redactor),
    ]
    structlog.configure(
        processors=[*shared, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.PrintLoggerFactory(output),
        cache_logger_on_first_use=False,
    )
    outlet = logging.StreamHandler(output)
    outlet.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.ExtraAdder(), *shared],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    logging.basicConfig(level=max(number, logging.INFO), handlers=[outlet], force=True)


class Redaction:
    """The last step before a line is written: no field leaves with a secret in it."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor

    def __call__(self, logger: Any, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        kept = {key: value for key, value in event.items() if key.startswith("_")}
        seen = {key: value for key, value in event.items() if not key.startswith("_")}
        return {**kept, **self._redactor.clean_value(seen)}
