"""Groups of the outside issuer: which of them are let in, and what their members get.

`DRAGOMAN_OIDC_GROUPS` is a table from the name of a group to what it gives. What a token says is compared
with it each time one comes. Pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, cast

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from dragoman.errors import Denied, InvalidConfig
from dragoman.people import User, UserRole
from dragoman.scope import Capability
from dragoman.setting import what_is_wrong

VARIABLE = "DRAGOMAN_OIDC_GROUPS"
_OVERFLOW = "_claim_names"  # how an issuer says that there were too many groups for the token


class GroupRights(BaseModel):
    """What one group gives. Without `workspace` its members are where the issuer's other users are."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    workspace: str | None = None
    role: UserRole = "member"
    capabilities: frozenset[Capability] = User.__dataclass_fields__["capabilities"].default


_TABLE = TypeAdapter(dict[Annotated[str, Field(min_length=1, max_length=500)], GroupRights])


@dataclass(frozen=True, slots=True, kw_only=True)
class Rights:
    """What a token's groups give together: of nobody who is let in, nothing."""

    workspace: str | None = None
    role: UserRole = "member"
    capabilities: frozenset[Capability] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTable:
    """`claim` names where a token has its groups; a dot leads into an object (`realm_access.roles`)."""

    claim: str = "groups"
    rows: Mapping[str, GroupRights] = field(default_factory=dict[str, GroupRights])

    def rights_of(self, claims: Mapping[str, Any]) -> Rights | None:
        """None where none of them is let in.

        The first row that fits decides the workspace; every fitting row of that workspace adds its rights.
        """
        held = set(self._groups(claims))
        fitting = [row for name, row in self.rows.items() if name in held]
        if not fitting:
            return None
        place = fitting[0].workspace
        of_place = [row for row in fitting if row.workspace == place]
        return Rights(
            workspace=place,
            role="admin" if any(row.role == "admin" for row in of_place) else "member",
            capabilities=frozenset[Capability]().union(*(row.capabilities for row in of_place)),
        )

    def refused(self, claims: Mapping[str, Any]) -> Denied:
        left_out = claims.get(_OVERFLOW)
        if not self._groups(claims) and isinstance(left_out, Mapping) and self.claim in left_out:
            return Denied(
                "the token is good, but its issuer left out the groups: there were too many",
                hint="ask who runs the issuer to put only the groups of this service into its tokens",
            )
        return Denied(
            "the token is good, but none of its groups is let in here",
            hint=f"ask who runs Dragoman: {VARIABLE} names the groups that are",
        )

    def _groups(self, claims: Mapping[str, Any]) -> Sequence[str]:
        found: Any = claims.get(self.claim)
        if found is None:
            found = claims
            for part in self.claim.split("."):
                found = cast("Mapping[str, Any]", found).get(part) if isinstance(found, Mapping) else None
        if isinstance(found, str):
            return [found]
        listed = cast("list[Any]", found) if isinstance(found, list) else []
        return [one for one in listed if isinstance(one, str)]


def group_table(text: str, claim: str) -> GroupTable:
    """Reads the setting; `InvalidConfig` says which of its rows is wrong."""
    try:
        rows = _TABLE.validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        wrong = what_is_wrong(cast("Any", first)).removeprefix("Input ").replace("Invalid", "is invalid")
        where = " of ".join(repr(part) for part in reversed(first["loc"])) or "it"
        raise InvalidConfig(
            f"{VARIABLE} is no table of groups: {where} {wrong}",
            hint="""an example: {"platform": {"workspace": "acme", "role": "admin"}, "sales": """
            """{"workspace": "acme", "capabilities": ["mcp_crm"]}}""",
        ) from None
    if not rows:
        raise InvalidConfig(f"{VARIABLE} names no group: nobody could sign in", hint="unset it, or name one")
    return GroupTable(claim=claim, rows=rows)
