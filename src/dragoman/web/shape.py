"""What a door answers, declared: the base of the models, and how one is made of a value of the hub."""

from collections.abc import Iterable
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict


def _sorted(values: Iterable[str] | None) -> list[str] | None:
    return None if values is None else sorted(values)


Sorted = Annotated[list[str], BeforeValidator(_sorted)]
SortedOrNone = Annotated[list[str] | None, BeforeValidator(_sorted)]


class Shape(BaseModel):
    """One answer of the REST door. Frozen; OpenAPI describes it from its fields."""

    model_config = ConfigDict(frozen=True, from_attributes=True)

    @classmethod
    def of(cls, source: object, /, **others: Any) -> Self:
        """From the attributes of `source`; what it calls otherwise, or lacks, is in `others`."""
        facts = {name: others[name] if name in others else getattr(source, name) for name in cls.model_fields}
        return cls.model_validate(facts)
