"""Which hooks hold for whom: the app's, the workspace's, the connector's, the bundle's, made once and kept.

A rule that names a hook which is not there refuses every call that it holds for: a guard that is missing is
no open door.
"""

import hmac
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from importlib.metadata import entry_points
from typing import Any

from dragoman.connections.http_clients import HttpClients
from dragoman.connector import Connector
from dragoman.errors import InvalidConfig
from dragoman.hook_rule import BundleRules, HookRule
from dragoman.hooks import fixed_values
from dragoman.hooks.chain import HookChain
from dragoman.hooks.fixed_values import FixedValuesHook, hidden_values
from dragoman.hooks.injection import InjectionHook
from dragoman.hooks.patterns import PatternHook
from dragoman.hooks.personal_data import KINDS, PersonalDataScanner
from dragoman.hooks.presidio import LOADED_WITHIN, NUMBERS, PresidioHook
from dragoman.hooks.protocol import Hook, HookFactory
from dragoman.hooks.secrets import SecretScanner
from dragoman.hooks.sizes_and_urls import SizeHook, UrlHook
from dragoman.hooks.webhook import WebhookHook
from dragoman.identity.directory import Directory
from dragoman.names import did_you_mean
from dragoman.scope import APP, Caller
from dragoman.tool import BundledTool, ToolDefinition

ENTRY_POINTS = "dragoman.hooks"
_MOST_CHAINS = 1000
_WEBHOOK = "webhook"
_Rules = tuple[tuple[str, str | None], ...]  # each with whose it is; None: the operator answers for it


@dataclass(frozen=True, slots=True, kw_only=True)
class HookKind:
    """One hook that a rule can name, with an example of such a rule."""

    name: str
    meaning: str
    example: str


KNOWN: tuple[HookKind, ...] = (
    HookKind(
        name="secrets",
        meaning="Tokens, keys and passwords: arguments with one are refused, in results they are masked.",
        example="secrets mask",
    ),
    HookKind(
        name="personal_data",
        meaning="Cards, IBANs, e-mail addresses and phone numbers, masked in results. With the extra guard "
        "also numbers that states give, such as US_SSN.",
        example="personal_data card iban before after mask",
    ),
    HookKind(
        name="injection",
        meaning="Texts that speak to the model: such tools are held back until accepted, such results noted.",
        example="injection refuse",
    ),
    HookKind(name="size", meaning="The most bytes of arguments, and of a result.", example="size 65536"),
    HookKind(
        name="urls",
        meaning="The hosts that addresses in arguments may lead to.",
        example="urls api.github.com *.example.com",
    ),
    HookKind(
        name="webhook",
        meaning="An address of yours decides; requests are signed with DRAGOMAN_HOOK_SECRET.",
        example="webhook https://guard.example.com/check timeout=3",
    ),
)


class Hooks:
    def __init__(
        self,
        app: Sequence[str],
        directory: Directory,
        clients: HttpClients,
        secret: str | None,
        *,
        multi_user: bool,
    ) -> None:
        self._app: _Rules = tuple((text, None) for text in app)
        self._directory = directory
        self._clients = clients
        self._secret = secret
        self._is_multi_user = multi_user
        self._own: dict[str, HookFactory] = {}
        self._chains: dict[tuple[_Rules, tuple[str, ...]], HookChain] = {}

    @property
    def app(self) -> tuple[str, ...]:
        """The rules that hold for everybody."""
        return tuple(text for text, _ in self._app)

    def add(self, name: str, factory: HookFactory) -> None:
        """A hook of this process, which rules name from now on."""
        if not name.isidentifier() or name in {one.name for one in KNOWN}:
            raise InvalidConfig(f"no hook of yours can be called {name[:60]!r}")
        self._own[name] = factory
        self._chains.clear()

    def names(self) -> list[str]:
        found = (point.name for point in entry_points(group=ENTRY_POINTS))
        return sorted({*(one.name for one in KNOWN), *self._own, *found})

    async def chain_for_call(
        self, connector: Connector, caller: Caller, bundled: BundledTool | None
    ) -> HookChain | None:
        """What holds for the call of a tool; None: nothing does."""
        if bundled is None:
            return await self.chain(connector, caller)
        return await self.chain(connector, caller, (bundled.rules,), hidden_values(bundled.fixed))

    async def chain(
        self,
        connector: Connector,
        caller: Caller,
        bundles: Sequence[BundleRules] = (),
        hidden: tuple[str, ...] = (),
    ) -> HookChain | None:
        """What holds for a call or a request; None: nothing does. Those of the bundles that it passes by come
        last, and after them what hides the values that are to be `hidden`.
        """
        own = connector.configuration.hooks
        shared = (await self._directory.of(caller)).workspace.hooks
        of_bundles = tuple(rule for one in bundles for rule in self._of_bundle(one)) if bundles else ()
        if not (own or shared or self._app or of_bundles or hidden):
            return None
        return self._made((*self._rules(shared, own, connector, caller.workspace), *of_bundles), hidden)

    async def chain_for_list(self, connector: Connector) -> HookChain | None:
        """What holds for the tools of a connector. One of the app is listed for all workspaces at once."""
        own = connector.configuration.hooks
        shared = () if connector.workspace == APP else await self._directory.hooks_of(connector.workspace)
        if not (own or shared or self._app):
            return None
        return self._made(self._rules(shared, own, connector, connector.workspace))

    def held_in(self, bundle: str, rules: BundleRules, tools: Sequence[ToolDefinition]) -> Mapping[str, str]:
        """Why a bundle does not show tools. A webhook is asked about calls: a list cannot wait for it."""
        try:
            looking = tuple(one for one in self._of_bundle(rules) if _is_at_lists(one[0]))
            return self._made(looking).listed_at_once(bundle, tools) if looking else {}
        except InvalidConfig as error:  # it cannot hold any more: nothing passes by it
            return {tool.original_name: error.message for tool in tools}

    def single(self, text: str, caller: Caller) -> HookChain:
        """One rule alone, as it would hold for the caller."""
        is_trusted = caller.role == "operator" or not self._is_multi_user
        return HookChain([self._hook(text, None if is_trusted else f"{caller.workspace}/{caller.user}")])

    def check(self, texts: Sequence[str]) -> None:
        """`InvalidConfig` where a rule cannot hold, said to who writes it."""
        for text in texts:
            self._hook(text, None)

    def check_bundle(self, texts: Sequence[str]) -> None:
        """The same for the rules of a bundle."""
        self.check(texts)
        rules = [HookRule.read(text) for text in texts]
        if any(rule.kind == _WEBHOOK and "listed" in rule.moments for rule in rules):
            raise InvalidConfig(
                "a bundle has no webhook that looks at its list: showing it cannot wait for an answer",
                hint="write `webhook URL before after`, or set it on the connector",
            )

    def _of_bundle(self, rules: BundleRules) -> _Rules:
        keeper = rules.keeper if self._is_multi_user and rules.keeper else None
        return tuple((text, keeper) for text in rules.texts)

    def _rules(
        self, shared: Sequence[str], own: Sequence[str], connector: Connector, workspace: str
    ) -> _Rules:
        owner = (
            f"{workspace}/{connector.id}" if self._is_multi_user and connector.origin == "people" else None
        )
        return (
            *self._app,
            *((text, workspace if self._is_multi_user else None) for text in shared),
            *((text, owner) for text in own),
        )

    def _made(self, rules: _Rules, hidden: tuple[str, ...] = ()) -> HookChain:
        chain = self._chains.get((rules, hidden))
        if chain is None:
            hooks = [self._hook(text, whose) for text, whose in dict.fromkeys(rules)]
            if hidden:
                hooks.append((fixed_values.RULE, FixedValuesHook(hidden)))
            if len(self._chains) >= _MOST_CHAINS:
                self._chains.clear()
            chain = self._chains[(rules, hidden)] = HookChain(hooks)
        return chain

    def _hook(self, text: str, whose: str | None) -> tuple[HookRule, Hook]:
        try:
            rule = HookRule.read(text)
            if rule.kind == "personal_data" and not rule.moments:
                # Arguments hold addresses and numbers for good reasons: who wants them looked at says so.
                rule = replace(rule, moments=frozenset({"after"}))
            if rule.kind == "personal_data" and any(one in NUMBERS for one in rule.values):
                rule = replace(rule, timeout=max(rule.timeout, LOADED_WITHIN))
            return rule, self._factory(rule, whose)(rule)
        except ValueError as error:
            raise InvalidConfig(
                f"the hook {text[:80]!r} cannot hold: {error}",
                hint="dragoman hooks list shows those there are",
            ) from None

    def _factory(self, rule: HookRule, whose: str | None) -> Callable[[HookRule], Hook]:
        built_in: Mapping[str, Callable[[HookRule], Hook]] = {
            "secrets": _secrets,
            "personal_data": _personal_data,
            "injection": InjectionHook,
            "size": SizeHook,
            "urls": UrlHook,
            _WEBHOOK: lambda rule: self._webhook(rule, whose),
        }
        if rule.kind in built_in:
            return built_in[rule.kind]
        made = self._own.get(rule.kind) or next(_loaded(rule.kind), None)
        if made is None:
            near = did_you_mean(rule.kind, self.names())
            raise ValueError(f"there is no hook {rule.kind!r} here" + (f": {near}" if near else ""))
        return lambda rule: made(rule.values)

    def _webhook(self, rule: HookRule, whose: str | None) -> Hook:
        """What people asked for goes where they may go, and is signed as theirs: nobody gets the operator's
        signature, or another's, under words of their own."""
        if whose is None or self._secret is None:
            return WebhookHook(
                rule, self._clients.trusted if whose is None else self._clients.guarded, self._secret
            )
        own = hmac.new(self._secret.encode(), whose.encode(), sha256).hexdigest()
        return WebhookHook(rule, self._clients.guarded, own)


def _secrets(rule: HookRule) -> Hook:
    if rule.values:
        raise ValueError(f"`secrets` knows no {rule.values[0][:40]!r}")
    return PatternHook(SecretScanner(), rule, sent="refuse", given="mask")


def _personal_data(rule: HookRule) -> Hook:
    unknown = [value for value in rule.values if value not in KINDS and value not in NUMBERS]
    if unknown:
        known = f"{', '.join(KINDS)} and numbers such as US_SSN"
        near = did_you_mean(unknown[0], [*KINDS, *NUMBERS])
        said = f"`personal_data` knows {known}, not {unknown[0][:40]!r}"
        raise ValueError(f"{said}: {near}" if near else said)
    numbers = [value for value in rule.values if value in NUMBERS]
    ours = [value for value in rule.values if value in KINDS]
    if numbers:
        return PresidioHook(numbers, PersonalDataScanner(ours) if ours else None, rule)
    return PatternHook(PersonalDataScanner(ours), rule, sent="refuse", given="mask")


def _is_at_lists(text: str) -> bool:
    rule = HookRule.read(text)
    return rule.is_at("listed") and (rule.kind != _WEBHOOK or "listed" in rule.moments)


def _loaded(name: str) -> Iterator[HookFactory]:
    for point in entry_points(group=ENTRY_POINTS, name=name):
        loaded: Any = point.load()
        yield loaded
