"""General English: verbs by what they do to the world, prepositions by the part they announce, small words.

Pure tables. Knows no service: a word that belongs to one trade only has no place here.
"""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Literal

from dragoman.catalog.search.words import stem

Deed = Literal["read", "create", "send", "update", "delete", "run"]


def word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_VERBS: Mapping[Deed, str] = {
    "read": (
        "read list get search find show check fetch view look see query browse count display retrieve"
        " describe lookup inspect review summarize summarise return returns watch scan preview print open"
        " calculate compute convert translate compare estimate solve measure determine identify locate"
        " explain analyze analyse validate verify detect extract predict track recommend suggest download"
        " examine discover obtain pull load"
    ),
    "create": (
        "create add make new insert register file book schedule place order reserve draft generate write"
        " compose open start build request plan upload save store log record invite enter submit put"
    ),
    "send": (
        "send post publish share forward reply respond answer notify tell submit write deliver comment"
        " broadcast ping say"
    ),
    "update": (
        "update edit change set modify rename move mark assign unassign close reopen reschedule replace"
        " resolve pin archive give grant lend extend renew correct merge adjust put complete finish add push"
        " toggle enable disable turn lock unlock restore star approve reject hand return attach"
        " connect link increase decrease raise lower append write"
    ),
    "delete": (
        "delete remove erase drop clear cancel revoke trash discard purge wipe unsubscribe detach take"
        " destroy disconnect uninstall"
    ),
    "run": (
        "run execute start stop restart launch pause resume trigger enable disable turn play deploy build"
        " kill activate deactivate halt begin end"
    ),
}
CHANGES: frozenset[Deed] = frozenset({"create", "send", "update", "delete", "run"})
_QUESTIONS = word_set(
    "what whats which who whose whom when where why how is are was were does did do has have any am"
)
_SEARCHES = word_set("search find lookup look query browse locate")

# The part of a sentence that a preposition announces, by names that parameters for it usually have.
ROLES: Mapping[str, frozenset[str]] = {
    word: frozenset(family.split())
    for words, family in {
        "to into onto towards": "to recipient recipients target destination dest receiver into end until",
        "from": "from source origin src start since after begin by author",
        "since after between starting": "since after start begin from min earliest",
        "until till before ending": "until before end to max due deadline latest",
        "in inside within at near around under": (
            "in location place city country region area town room folder directory dir path where site zone"
            " timezone project workspace space language group section list collection"
        ),
        "for": (
            "for customer client person query q name who user topic keyword search city location place owner"
            " symbol"
        ),
        "by": "by author user owner creator assignee writer sort order artist",
        "on about regarding concerning": (
            "on about topic query q search keyword keywords date day term title text when"
        ),
        "with containing matching": "with query q search keyword keywords contains pattern text term using",
        "called named titled entitled labelled labeled": "name title label summary heading headline",
        "saying says reading": "text body content comment note description say",
        "as": "as role type format status state kind",
        "via using through": "via using method mode model",
        "of": "of",
        "than over above": "min minimum least",
        "below": "max maximum most",
    }.items()
    for word in words.split()
}
TEXT_NAMES = word_set(
    "text body content contents comment note description details reply answer markdown html"
)
TITLE_NAMES = word_set("title name label summary heading headline")
QUERY_NAMES = word_set("query q search keyword keywords term terms pattern text phrase topic question")
REQUEST_NAMES = word_set("request task prompt question instruction instructions goal job query")
COUNT_NAMES = word_set(
    "limit count max maximum most n k top size amount quantity number results num first per page_size"
)
COUNT_HINTS = word_set("maximum many most limit count amount quantity")
PAGING = word_set("page offset skip cursor start timeout depth")
# What a name says beside the thing itself: `user_id` is about a user.
SUFFIXES = word_set(
    "id ids name names number no path key slug code value string uri url date time at query contains filter"
    " text only is has include with show the of by"
)
DETERMINERS = word_set("the a an my our your his her their its this that these those some any")
PRONOUNS = word_set("it them that this those these him her me us everyone everybody anyone you")
_FILLERS = word_set(
    "please kindly just also now then next first finally can could would will you i we want need like to d"
    " let us lets help me hey hi hello so ok okay and go ahead try should must quickly again"
)
RECENT = word_set("latest last newest recent first top next oldest earliest upcoming previous")
FAR = word_set("called named titled entitled labelled labeled saying says reading about regarding")
"""What these announce is a text of its own, prepositions and all."""
NEGATIONS = word_set("not no without don't dont never except")

_GROUPS: Mapping[str, frozenset[Deed]] = {
    word: frozenset(deed for deed, verbs in _VERBS.items() if word in verbs.split())
    for word in {word for verbs in _VERBS.values() for word in verbs.split()}
}


@lru_cache(maxsize=1)
def _stems() -> Mapping[str, frozenset[Deed]]:
    found: dict[str, frozenset[Deed]] = {}
    for word, deeds in _GROUPS.items():
        found[stem(word)] = found.get(stem(word), frozenset()) | deeds
    return found


_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")


def deeds_of(word: str) -> frozenset[Deed]:
    """What the verb may mean; nothing when it is no verb of these tables. `lists` counts as `list`."""
    lowered = word.lower()
    return _GROUPS.get(lowered) or _stems().get(stem(lowered), frozenset())


def is_verb(word: str) -> bool:
    return word.lower() in _GROUPS


def opening(text: str) -> tuple[str, frozenset[Deed]]:
    """The verb a request begins with, behind its courtesies, and what it may mean.

    A question asks to read. Without either, the verb is empty and nothing is meant.
    """
    words = [found.group().lower().replace("’", "'") for found in _WORD.finditer(text[:400])]
    place = 0
    while place < len(words) and words[place] in _FILLERS and words[place] not in _QUESTIONS:
        place += 1
    if place == len(words):
        return "", frozenset()
    word = words[place].removesuffix("'s").removesuffix("'re")
    if word in _QUESTIONS:
        return _asked(words[place + 1 :], word)
    after = words[place + 1] if place + 1 < len(words) else ""
    if word in ("give", "tell", "show", "get", "find", "bring") and after in ("me", "us"):
        return word, frozenset({"read"})
    if word == "look" and after == "up":
        return "lookup", frozenset({"read"})
    deeds = _GROUPS.get(word, frozenset[Deed]())
    if "read" in deeds and deeds & CHANGES:
        # "open a ticket" makes one, "open tickets" asks for those that are.
        deeds = deeds & CHANGES if after in ("a", "an", "new", "another") else frozenset[Deed]({"read"})
    return (word, deeds) if deeds else ("", frozenset())


def _asked(words: list[str], question: str) -> tuple[str, frozenset[Deed]]:
    """`do you …`, `is there …` and `what …` read; nothing that follows makes them change something."""
    verb = next((word for word in words if word in _SEARCHES or word in ("list", "show")), question)
    return verb, frozenset({"read"})


def starts_with_verb(text: str) -> bool:
    return bool(opening(text)[0])


def is_search(word: str) -> bool:
    return word.lower() in _SEARCHES


def roles_of(words: Iterable[str], preposition: str) -> bool:
    """Whether a parameter with these words in its name is what the preposition announces."""
    family = ROLES.get(preposition, frozenset())
    return any(word in family or word.rstrip("s") in family for word in words)
