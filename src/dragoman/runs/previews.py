"""What people see of arguments and results: short, and without secrets."""

import json
from collections.abc import Mapping
from typing import Any

from dragoman.telemetry.redaction import Redactor

_LONGEST = 2_000


class Previews:
    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor

    def arguments(self, arguments: Mapping[str, Any]) -> Any:
        """As JSON where it is short, else the beginning of its text."""
        return self._short(self._redactor.clean_value(arguments))

    def result(self, content: Any) -> Any:
        return self._short(content)

    def text(self, text: str) -> str:
        return self._redactor.clean(text)

    def _short(self, value: Any) -> Any:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        clean = self._redactor.clean(text)
        if len(clean) > _LONGEST:
            return clean[:_LONGEST] + "…"
        if isinstance(value, str) or clean != text:
            return clean
        return value
