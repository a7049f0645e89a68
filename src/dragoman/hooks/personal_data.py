"""Personal data that a pattern can tell: cards and IBANs by their checksums, e-mail addresses, phone numbers.

Names, addresses and dates of birth have no pattern: they are not found.
"""

import re
from collections.abc import Iterator, Sequence

from dragoman.hooks.patterns import Found, apart
from dragoman.word_finder import RunFinder

KINDS = ("card", "iban", "email", "phone")
_CARD = re.compile(
    r"(?<![\w.+/-])(?:"
    r"[2-6]\d{3}(?P<gap>[ -]?)(?:\d{4}(?P=gap)){2}(?:\d{4}(?P=gap)\d{3}|\d{1,7})"
    r"|3[47]\d{2}[ -]?\d{6}[ -]?\d{5}|3[0689]\d{2}[ -]?\d{6}[ -]?\d{4}"
    r")(?![\w/=]|[.-]\d)"
)
_IBAN = re.compile(
    r"(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?:[ ]?[A-Z0-9]{4}){2,7}(?:[ ]?[A-Z0-9]{1,4})?(?![A-Za-z0-9])"
)
_LETTER = r"[^\W_]"
_EMAIL = re.compile(
    r"(?:(?<![\w.+%@/:-])|(?<=mailto:)|(?<=[^\x00-\x7f]))[A-Za-z0-9_][\w.+%'-]{0,63}"
    rf"@(?:{_LETTER}(?:[\w-]{{0,61}}{_LETTER})?\.){{1,6}}(?!png|svg|jpe?g|gif|webp|avif|css|js|service|socket|timer)[A-Za-z]{{2,24}}"
    r"(?![\w@/]|\.\d|:[\w/~])",
)
_PHONE = re.compile(
    r"(?<![\w.+/-])(?:"
    r"(?:\+|00)[1-9]\d{0,2}(?:[ .-]?\(0\))?(?:[ ./-]?\(?\d{1,4}\)?){2,6}"
    r"|\(\d{3}\)[ .-]?\d{3}[ .-]\d{4}"
    r"|(?:1[ .-])?[2-9]\d{2}(?P<dot>[.-])[2-9]\d{2}(?P=dot)\d{4}"
    r"|0[1-9](?P<pair>[ .])\d{2}(?:(?P=pair)\d{2}){3}"
    r"|\(?0[1-9]\d{0,3}\)?[ /-]\d{3,4}(?:[ /-]?\d{2,4}){1,3}"
    r")(?![\w/=]|[.:-]\d)"
)
# Letters and digits of an IBAN, by its country.
_LENGTHS = (
    "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DK18 DO28 "
    "EE20 EG29 ES24 FI18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HR21 HU28 IE22 IL23 IQ23 IS26 "
    "IT27 JO30 KW30 KZ20 LB28 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MR27 MT31 MU30 NL18 "
    "NO15 PK24 PL28 PS29 PT25 QA29 RO24 RS22 SA24 SE24 SI19 SK24 SM27 TN24 TR26 UA29 VA22 VG24 "
    "XK20 "
)
_IBAN_LENGTHS = {word[:2]: int(word[2:]) for word in _LENGTHS.split()}
_FEWEST_DIGITS, _MOST_DIGITS = 8, 15  # of a phone number, by E.164


# Where numbers may be: all of these kinds have eight digits in a row, but for gaps.
_DIGITS = re.compile(r"\d[\d ./()-]{6,}\d")
_NUMBERS = RunFinder("0123456789 ./()-", 8)
_AROUND = 40  # characters of one that may stand before or after its digits
_LONGEST_LOCAL, _LONGEST_DOMAIN = 70, 260


class PersonalDataScanner:
    def __init__(self, kinds: Sequence[str] = ()) -> None:
        self._kinds = frozenset(kinds or KINDS)
        self._has_numbers = bool(self._kinds - {"email"})

    def find(self, text: str) -> Sequence[Found]:
        return apart(self._candidates(text))

    def is_telling(self, key: str, value: str) -> str | None:
        return None

    def _candidates(self, text: str) -> Iterator[Found]:
        if "email" in self._kinds:
            place = text.find("@")
            while place >= 0:
                start, end = max(0, place - _LONGEST_LOCAL), place + _LONGEST_DOMAIN
                match = _EMAIL.search(text, start, end)
                if match is not None:
                    yield Found(*match.span(), "e-mail address")
                place = text.find("@", max(place + 1, match.end() if match is not None else 0))
        if self._has_numbers:
            for start, end in _NUMBERS.find(text):
                for digits in _DIGITS.finditer(text, start, end):
                    yield from self._numbers(text, max(0, digits.start() - _AROUND), digits.end() + _AROUND)

    def _numbers(self, text: str, start: int, end: int) -> Iterator[Found]:
        if "card" in self._kinds:
            for match in _CARD.finditer(text, start, end):
                if _is_card(match[0]):
                    yield Found(*match.span(), "card number")
        if "iban" in self._kinds:
            for match in _IBAN.finditer(text, start, end):
                if (length := _iban_length(match[0])) is not None:
                    yield Found(match.start(), match.start() + length, "IBAN")
        if "phone" in self._kinds:
            for match in _PHONE.finditer(text, start, end):
                if _FEWEST_DIGITS <= sum(map(str.isdigit, match[0])) <= _MOST_DIGITS:
                    yield Found(*match.span(), "phone number")


def _is_card(text: str) -> bool:
    digits = [int(one) for one in text if one.isdigit()]
    if not 12 <= len(digits) <= 19 or len(set(digits)) < 3:
        return False
    doubled = (one * 2 - 9 if one > 4 else one * 2 for one in digits[-2::-2])
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def _iban_length(text: str) -> int | None:
    """How many characters of the text are the IBAN; None: none of them."""
    plain = text.replace(" ", "")
    length = _IBAN_LENGTHS.get(plain[:2])
    if length is None or len(plain) < length:
        return None
    moved = plain[4:length] + plain[:4]
    if int("".join(str(int(one, 36)) for one in moved)) % 97 != 1:
        return None
    end, spoken = 0, 0
    while spoken < length:
        spoken += text[end] != " "
        end += 1
    return end if not text[end:] or text[end] == " " else None
