"""What a person filled in and sent: a form's texts, read once. Knows no page."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request


@dataclass(frozen=True, slots=True)
class SubmittedForm:
    data: FormData

    def text(self, name: str) -> str:
        """Empty where nothing was sent."""
        value: Any = self.data.get(name)
        return value.strip() if isinstance(value, str) else ""

    def words(self, name: str) -> list[str]:
        """Names with commas, spaces or lines between them, each once."""
        return list(dict.fromkeys(self.text(name).replace(",", " ").split()))

    def chosen(self, name: str) -> Sequence[str]:
        """Of boxes that share a name, those that are ticked."""
        return [value for value in self.data.getlist(name) if isinstance(value, str) and value]

    def many(self, name: str) -> Sequence[str]:
        """The same, each once; a field of that name may also hold several, with spaces between them."""
        return [*dict.fromkeys(word for value in self.chosen(name) for word in value.split())]

    def texts(self) -> dict[str, str]:
        """All texts by name, as `setting_forms` reads them: what was ticked is one text."""
        return {name: " ".join(self.chosen(name)) for name in self.data}

    def draft(self) -> dict[str, str]:
        """All texts by name, as `schema_forms` reads them."""
        return {name: value for name, value in self.data.items() if isinstance(value, str)}


async def filled(request: Request) -> SubmittedForm:
    return SubmittedForm(await request.form())
