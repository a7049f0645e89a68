"""Numbers that states give to people, by the pattern recognisers of Presidio (the extra `guard`).

No language model: what only the words around it tell, as with most passports, is not among them. The package
takes seconds to load, with the first call.
"""

import asyncio
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from dragoman.extras import require
from dragoman.hook_rule import HookRule
from dragoman.hooks.patterns import Found, PatternHook, Scanner, apart
from dragoman.hooks.protocol import Hook, HookedCall, Json, Verdict

# Those that a checksum or their form tells from other numbers; a test holds them to what Presidio has.
_NUMBERS = (
    "AU_MEDICARE AU_TFN CA_SIN DE_HEALTH_INSURANCE DE_ID_CARD DE_PASSPORT DE_SOCIAL_SECURITY DE_TAX_ID "
    "ES_NIE ES_NIF FI_PERSONAL_IDENTITY_CODE IN_AADHAAR IN_PAN IN_VOTER IT_FISCAL_CODE KR_FRN KR_RRN "
    "NG_NIN PH_UMID PL_PESEL SE_PERSONNUMMER SG_NRIC_FIN TH_TNIN TR_NATIONAL_ID UK_DRIVING_LICENCE "
    "UK_NHS UK_NINO US_ITIN US_MBI US_SSN ZA_ID_NUMBER"
)
NUMBERS = tuple(_NUMBERS.split())
LOADED_WITHIN = 15.0  # seconds; the first call of a process waits for it
_LEAST_SCORE = 0.4  # of Presidio's own; below it, any number would do


class PresidioScanner:
    """Takes seconds to make."""

    def __init__(self, numbers: Sequence[str]) -> None:
        from presidio_analyzer import PatternRecognizer, predefined_recognizers

        kinds: list[Any] = [one for one in vars(predefined_recognizers).values() if isinstance(one, type)]
        made: list[Any] = [
            one()  # pyright: ignore[reportCallIssue]
            for one in kinds
            if issubclass(one, PatternRecognizer) and one is not PatternRecognizer
        ]
        self._wanted = {entity: one for one in made for entity in one.supported_entities if entity in numbers}

    def find(self, text: str) -> Sequence[Found]:
        return apart(
            Found(found.start, found.end, entity)
            for entity, recogniser in self._wanted.items()
            for found in recogniser.analyze(text, [entity], None)
            if found.score >= _LEAST_SCORE
        )

    def is_telling(self, key: str, value: str) -> str | None:
        return None


class _Both:
    def __init__(self, *scanners: Scanner) -> None:
        self._scanners = scanners

    def find(self, text: str) -> Sequence[Found]:
        return apart(found for one in self._scanners for found in one.find(text))

    def is_telling(self, key: str, value: str) -> str | None:
        return None


class PresidioHook(Hook):
    """`PatternHook` for `numbers` beside what `scanner` finds, in threads: its patterns take as long as they
    like. Raises `NotInstalled` without the extra.
    """

    def __init__(self, numbers: Sequence[str], scanner: Scanner | None, rule: HookRule) -> None:
        require("guard")
        self._numbers = numbers
        self._others = () if scanner is None else (scanner,)
        self._rule = rule

    @cached_property
    def _hook(self) -> PatternHook:
        found = _Both(*self._others, PresidioScanner(self._numbers))
        return PatternHook(found, self._rule, sent="refuse", given="mask")

    def before(self, call: HookedCall) -> Verdict | None:  # type: ignore[override]
        return asyncio.run(self._hook.before(call))

    def after(self, call: HookedCall, output: Json) -> Verdict | None:  # type: ignore[override]
        return asyncio.run(self._hook.after(call, output))
