"""A sentence against one tool: which values can only belong to one parameter, and which words are left.

Pure. It knows JSON schema and the shapes of values; it knows no service and next to no English. A value
that two parameters could take goes to neither, and a word that is used for nothing is named.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from dragoman.catalog.schema_shapes import shape_of
from dragoman.catalog.search.words import is_stop_word, parts, stem

_TOKEN = re.compile(
    r"""(?P<quoted>"[^"\n]{1,2000}"|“[^”\n]{1,2000}”|`[^`\n]{1,2000}`|(?<![\w'])'[^'\n]{1,2000}'(?!\w))
    |(?P<address>[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8})
    |(?P<url>https?://[^\s"'<>]{1,2000}[^\s"'<>.,;:!?)])
    |(?P<date>\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d)?(?:Z|[+-]\d\d:\d\d)?)?(?![\w-]))
    |(?P<path>(?<!\w)(?:~|\.{1,2})?/[\w./-]{0,500}\w)
    |(?P<number>(?<![\w.-])\#?-?\d{1,15}(?:\.\d{1,9})?(?![\w-]|\.\d))
    |(?P<sign>\#[\w-]{1,100})
    |(?P<word>\w[\w'’]*(?:[-./]\w+)*)""",
    re.VERBOSE | re.IGNORECASE,
)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NEGATIONS = _words("not no without except never neither nor isn't aren't don't doesn't")
# They change what is asked for, so that no word of a tool covers them.
_LIMITING = _NEGATIONS | _words("only before after since until between than over under or but why how when")
_OWN = _words("my mine me")
# Ways to ask for reading. Whether a tool only reads is told by its annotations.
REQUESTS = _words("check show list get find see look read display fetch view search what's hi hello hey")
_ALIKE = _words("latest newest recent last")
_BEFORE = _words("with of in for from by to and on under")
# A shape of value goes to a parameter with such a format, or with none and one of these words.
_TAKERS = {
    "address": ("mail", _words("mail email address recipient")),
    "url": ("uri", _words("url uri link href")),
    "date": ("date", _words("date day time when since until before after due start end deadline")),
    "path": ("path", _words("path file folder directory")),
}


class Token(NamedTuple):
    kind: str
    text: str
    start: int
    end: int

    @property
    def word(self) -> str:
        return self.text.lower().replace("’", "'")


class Parameter(NamedTuple):
    """`known` are names of things that exist and that it may take, beside the `choices` of its schema."""

    name: str
    types: frozenset[str]
    format: str
    choices: tuple[Any, ...]
    known: frozenset[str]
    description: str
    required: bool

    def accepts(self, kind: str) -> bool:
        if kind == "number":
            return not self.choices and not self.types.isdisjoint(("integer", "number"))
        form, words = _TAKERS.get(kind, ("", frozenset[str]()))
        says = not words.isdisjoint((*parts(self.name), *parts(self.description)))
        fits = kind == "quoted" or says or (kind == "sign" and "#" in self.description)
        is_text = "string" in self.types and not self.choices
        return is_text and (form in self.format if form and self.format else fits and not self.format)


class Filled(NamedTuple):
    """What a tool can use of a sentence: `share` of it. The `unused` words are as they were written.

    `is_safe`: what the sentence says to do is to read, or is used, and nothing is negated.
    """

    arguments: Mapping[str, Any]
    missing: Sequence[str]
    unused: Sequence[str]
    share: float
    is_safe: bool


def tokens_of(text: str) -> list[Token]:
    return [Token(str(one.lastgroup), one.group(), one.start(), one.end()) for one in _TOKEN.finditer(text)]


def is_filler(token: Token) -> bool:
    """Words that say nothing of what is wanted, beyond that something is asked for."""
    is_small = is_stop_word(token.word) or token.word in REQUESTS
    return token.kind == "word" and is_small and token.word not in _LIMITING


def parameters_of(schema: Mapping[str, Any], known: Mapping[str, Collection[str]]) -> list[Parameter]:
    """`known` is by the stem of what the things are: `agent`, `channel`."""
    whole, found = shape_of(schema, schema), list[Parameter]()
    for name, rule in whole.properties.items():
        own = shape_of(rule, schema)
        shapes = [own, *(shape_of(one.schema, schema) for one in own.variants)]
        shapes += [shape_of(one.items, schema) for one in shapes if one.items is not None]
        kinds = {stem(word) for word in parts(name)} & known.keys()
        found.append(
            Parameter(
                name=name,
                types=frozenset(one.type for one in shapes),
                format=next((one.format for one in shapes if one.format), ""),
                choices=tuple(value for one in shapes for value, _ in one.choices),
                known=frozenset(value for kind in kinds for value in known[kind]),
                description=" ".join(one.description for one in shapes),
                required=name in whole.required,
            )
        )
    return found


class Filling:
    """One sentence and one tool; `stems` are those of what the tool says of itself."""

    def __init__(self, text: str, parameters: Sequence[Parameter], stems: Collection[str]) -> None:
        self._text = text
        self._tokens = tokens_of(text)
        self._parameters = parameters
        self._stems = frozenset(stems)
        self._arguments: dict[str, Any] = {}
        self._used: set[int] = set()
        # Where a tool can tell one's own from others', "my" is a filter.
        knows_me = any("me" in parts(one.description) for one in parameters)
        self._limiting = _LIMITING | (_OWN if knows_me else frozenset[str]())

    def filled(self) -> Filled:
        places = range(len(self._tokens))
        for way in (self._named, self._listed):
            for place in places:
                way(place)
        for kind in ("sign", *_TAKERS, "number", "quoted"):
            self._shaped([one for one in places if self._tokens[one].kind == kind and one not in self._used])
        telling = [one for one in places if self._is_telling(one) and self._tokens[one].word not in _OWN]
        head = next((one for one in places if not is_stop_word(self._tokens[one].word)), None)
        asks = head is None or self._tokens[head].word in REQUESTS or self._is_used(head)
        return Filled(
            arguments=self._arguments,
            missing=[one.name for one in self._open() if one.required],
            unused=self._unused(),
            share=sum(map(self._is_used, telling)) / max(1, len(telling)),
            is_safe=asks and not any(token.word in _NEGATIONS for token in self._tokens),
        )

    # Three ways in which a value can only belong to one parameter.

    def _named(self, place: int) -> None:
        """`name=value`, `name: value`, `with name value`."""
        token, after = self._tokens[place], self._tokens[place + 1 :]
        parameter = next((one for one in self._open() if one.name.lower() == token.word), None)
        if parameter is not None and after and place not in self._used:
            sign = self._text[token.end : after[0].start].strip()
            follows = not sign and place > 0 and self._tokens[place - 1].word in _BEFORE
            if sign in ("=", ":") or (follows and not is_stop_word(after[0].word)):
                self._give(parameter, [place + 1], place)

    def _listed(self, place: int) -> None:
        """A word that the schema lists, or the name of a thing that exists; not where it is negated."""
        word = self._tokens[place].word.lstrip("#")
        takers = [one for one in self._open() if word in [str(n).lower() for n in (*one.choices, *one.known)]]
        is_negated = any(token.word in _NEGATIONS for token in self._tokens[max(0, place - 2) : place])
        if len(takers) == 1 and not is_negated and place not in self._used:
            self._give(takers[0], [place])

    def _shaped(self, places: Sequence[int]) -> None:
        """A number for the only parameter that takes numbers, an address for the only one for addresses …"""
        for place in places:
            token, before = self._tokens[place], self._tokens[place - 1] if place else None
            takers = [one for one in self._open() if one.accepts(token.kind)]
            named = [one for one in takers if before and before.word in parts(one.name)]
            needed = [one for one in takers if one.required]
            chosen = next((one[0] for one in (named, takers, needed) if len(one) == 1), None)
            if chosen is None or place in self._used:
                continue
            others = {word for one in takers if one is not chosen for word in parts(one.name)}
            free = [one for one in places if one == place or self._tokens[one - 1].word not in others]
            # Two values for a parameter that takes one: nobody can say which is meant.
            if named or "array" in chosen.types or len(places) == 1:
                self._give(chosen, free if "array" in chosen.types else [place], place - bool(named))

    def _open(self) -> list[Parameter]:
        return [one for one in self._parameters if one.name not in self._arguments]

    def _give(self, parameter: Parameter, places: Sequence[int], *also: int) -> None:
        values = [self._value(parameter, self._tokens[place]) for place in places]
        if None not in values:
            is_list = "array" in parameter.types and (len(values) > 1 or not parameter.format)
            self._arguments[parameter.name] = values if is_list else values[0]
            self._used.update(places, also)

    def _value(self, parameter: Parameter, token: Token) -> Any:
        """The token as the parameter takes it; None when it does not."""
        text = token.text[1:-1] if token.kind == "quoted" else token.text
        for value in (*parameter.choices, *parameter.known):
            if str(value).lower() == text.lstrip("#").lower():
                return value
        if token.kind == "number" and parameter.accepts("number"):
            number = float(text.lstrip("#"))
            return int(number) if number.is_integer() else number if "number" in parameter.types else None
        text = text.lstrip("#") if token.kind == "sign" else text
        return text if "string" in parameter.types and not parameter.choices else None

    def _is_telling(self, place: int) -> bool:
        token = self._tokens[place]
        return place in self._used or token.word in self._limiting or not is_filler(token)

    def _is_used(self, place: int) -> bool:
        token = self._tokens[place]
        if place in self._used or token.kind != "word" or token.word in self._limiting:
            return place in self._used
        words = _ALIKE if token.word in _ALIKE else {token.word.removesuffix("'s")}
        return not self._stems.isdisjoint(stem(part) for word in words for part in parts(word))

    def _unused(self) -> list[str]:
        """Runs of words, with the small ones that belong to them: "from giulia"."""
        runs: list[list[int]] = [[]]
        for place, token in enumerate(self._tokens):
            if self._is_telling(place) and self._is_used(place):
                runs.append([])
            elif self._is_telling(place) or token.word in _BEFORE or runs[-1]:
                runs[-1].append(place)
        for run in runs:
            while run and not self._is_telling(run[-1]):
                run.pop()
        ends = [(self._tokens[run[0]].start, self._tokens[run[-1]].end) for run in runs if run]
        return [" ".join(self._text[start:end].split()) for start, end in ends]
