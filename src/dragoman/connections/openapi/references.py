"""Local references of a document: JSON pointers into it. What lies outside is never fetched."""

from urllib.parse import unquote

from dragoman.connections.openapi.untrusted_json import (
    Json,
    Object,
    OperationFault,
    as_text,
    is_list,
    is_object,
)

_LONGEST_CHAIN = 50


class ExternalReference(OperationFault):
    def __init__(self, reference: str) -> None:
        super().__init__(f"it refers to {reference[:200]!r}, which is outside of the document")


class DanglingReference(OperationFault):
    def __init__(self, reference: str) -> None:
        super().__init__(f"it refers to {reference[:200]!r}, which the document does not hold")


class References:
    """Follows `#/…` pointers of one document."""

    def __init__(self, root: Object) -> None:
        self._root = root

    def pointer(self, reference: str) -> str:
        """The one spelling of a reference, or `ExternalReference`."""
        if not reference.startswith("#"):
            raise ExternalReference(reference)
        return unquote(reference[1:]) if "%" in reference else reference[1:]

    def get(self, pointer: str) -> Json:
        """What a pointer points at; `~1` is a slash and `~0` a tilde."""
        here: Json = self._root
        for part in pointer.split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            if is_object(here) and name in here:
                here = here[name]
            elif is_list(here) and name.isdigit() and int(name) < len(here):
                here = here[int(name)]
            else:
                raise DanglingReference(f"#{pointer}")
        if pointer and not pointer.startswith("/"):
            raise DanglingReference(f"#{pointer}")
        return here

    def followed(self, value: Json) -> Object:
        """The object itself or the one its `$ref` leads to; for everything but schemas."""
        for _ in range(_LONGEST_CHAIN):
            if not is_object(value):
                return {}
            reference = value.get("$ref")
            if not isinstance(reference, str):
                return value
            value = self.get(self.pointer(as_text(reference)))
        raise OperationFault("its references lead in a circle")
