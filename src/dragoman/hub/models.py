"""Language models as people handle them: give a provider its key, test it, choose the default.

A key is sealed like any other secret and read back by nobody. What is set holds from the next run on, in
every process; a run under way goes on with what it began with.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import SecretStr

from dragoman import extras
from dragoman.access.approvals import is_person
from dragoman.agents.models import FoundModel, ModelChoice
from dragoman.agents.providers import COMPATIBLE, KINDS, GivenProvider, ProviderKind
from dragoman.errors import Conflict, Denied, DragomanError, InvalidConfig, LimitReached, NotFound
from dragoman.hub.bound import BoundService
from dragoman.hub.people import People
from dragoman.hub.permissions import origin_of
from dragoman.names import check_slug, did_you_mean
from dragoman.remembered import Remembered
from dragoman.scope import APP
from dragoman.store.records import ModelProvider

if TYPE_CHECKING:
    from dragoman.agents.models import Models
    from dragoman.hub.runtime import Runtime

ProviderTier = Literal["workspace", "app"]
_MOST = 50
_LONGEST_KEY, _LONGEST_URL, _LONGEST_MODEL = 8 * 1024, 2_000, 200
_TEST_LIMIT = 60.0
_QUESTION = "Answer with one word: ok"
_ANSWER_SHOWN = 200
_RESERVED = ("offline", "test", "openai-chat", "openai-responses")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelProviderView:
    """A provider that was set. Its key is there or not, and never shown; `default` is what it answers with
    where only the provider is known.
    """

    name: str
    kind: str
    title: str
    tier: ProviderTier
    url: str | None
    model: str | None
    default: str | None
    has_key: bool
    may_change: bool
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class TestedModel:
    """What came of one short request: the answer's first words, or why there was none."""

    __test__ = False  # no test of pytest's

    model: str
    works: bool
    milliseconds: float
    answer: str | None = None
    error: str | None = None
    hint: str | None = None

    @classmethod
    def failed(cls, model: str, milliseconds: float, error: DragomanError) -> Self:
        said = f"{error.message} ({error.cause})" if error.cause else error.message
        return cls(model=model, works=False, milliseconds=milliseconds, error=said, hint=error.command_hint)


class GivenProviders:
    """What workspaces set, with opened keys: read from the store once, until somebody changes it."""

    def __init__(self, runtime: "Runtime") -> None:
        self._runtime = runtime
        self._known = Remembered(self._read)

    async def models_of(self, workspace: str) -> "Models":
        """The models of a workspace: its own providers, the app's, and what the environment gives."""
        default = await self._runtime.directory.model_of(workspace)
        return self._runtime.models.within(await self.of(workspace), default)

    async def of(self, workspace: str) -> tuple[GivenProvider, ...]:
        """The workspace's own first, then the app's, each the oldest first."""
        return await self._known.get(workspace)

    def opened(self, row: ModelProvider) -> GivenProvider:
        """With its key, which the redactor knows before anybody can print it."""
        key = self._runtime.vault.open(row.secret) if row.secret is not None else None
        if key is not None:
            self._runtime.redactor.register([key])
        return GivenProvider(
            name=row.name,
            kind=row.kind,
            url=row.url,
            key=key,
            model=row.model,
            is_guarded=self._runtime.settings.multi_user and row.origin == "people",
            whose="the whole installation" if row.workspace == APP else "the workspace",
        )

    def forget(self) -> None:
        """Somebody changed one: what the app has counts in every workspace."""
        self._known.forget_all()

    async def _read(self, workspace: str) -> tuple[GivenProvider, ...]:
        rows = await self._runtime.store.model_providers.list(workspace, APP)
        return tuple(map(self.opened, sorted(rows, key=lambda one: one.workspace == APP)))


class WorkspaceModels(BoundService):
    """The models of the caller's workspace. Its admins set its providers, the operator those of the app."""

    __slots__ = ()

    # Looking

    async def list(self) -> Sequence[FoundModel]:
        """All that was looked at, in the order of choice, with the reason for each."""
        return await (await self._models()).list()

    async def choose(self, wanted: str | None = None, fallbacks: Sequence[str] = ()) -> ModelChoice:
        """What answers: what is wanted, or the default of the workspace."""
        return await (await self._models()).choose(wanted, fallbacks)

    async def verify(self, model: str | None, fallbacks: Sequence[str] = ()) -> None:
        """`InvalidConfig` when a model string cannot be opened. Asks no provider whether it has the model."""
        await (await self._models()).verify(model, fallbacks)

    def register(self, name: str, model: Any) -> None:
        """From now on `name` is a model string that opens `model` (pydantic-ai's), which its owner closes."""
        self._runtime.models.register(name, model)

    async def providers(self) -> Sequence[ModelProviderView]:
        """Those of the workspace, then those of the whole installation. Never a key."""
        rows = await self._runtime.store.model_providers.list(self._caller.workspace, APP)
        return [self._view(one) for one in sorted(rows, key=lambda one: one.workspace == APP)]

    async def get_provider(self, name: str, tier: ProviderTier | None = None) -> ModelProviderView:
        """One by its name; the workspace's where both have one."""
        return self._view(await self._row(name, tier))

    async def default(self) -> str | None:
        """The model that the workspace chose; None where it did not."""
        return await self._runtime.directory.model_of(self._caller.workspace)

    # Changing

    async def set_provider(
        self,
        name: str,
        *,
        kind: str | None = None,
        key: str | SecretStr | None = None,
        url: str | None = None,
        model: str | None = None,
        tier: ProviderTier = "workspace",
    ) -> ModelProviderView:
        """A new provider, or what is given of one that is there; what is left out stays.

            await hub.models.set_provider("openai", key="sk-…")
            await hub.models.set_provider("lab", kind="openai-compatible", url="https://llm.example/v1")

        A key belongs to its address: with another `url` it is given again. "" takes `url` or `model` away.
        """
        workspace = self._check_may_change(tier)
        async with self._runtime.locks.of("models", workspace):
            before = await self._find(name, workspace)
            after = self._changed(before, workspace, name, kind, key, url, model)
            if not await self._runtime.store.model_providers.put(after, _MOST):
                raise LimitReached(f"there are {_MOST} model providers already", hint="remove one first")
            self._runtime.given_providers.forget()
        facts = {
            "tier": tier,
            "kind": after.kind,
            "key": key is not None,
            "url": after.url,
            "model": after.model,
        }
        await self._runtime.auditor.done(self._caller, "model_provider.set", name, details=facts)
        return await self.get_provider(name, tier)

    async def remove_provider(self, name: str, tier: ProviderTier | None = None) -> None:
        """With its key, for good. Agents that name one of its models fail until they name another."""
        row = await self._row(name, tier)
        tier = "app" if row.workspace == APP else "workspace"
        self._check_may_change(tier)
        await self._runtime.store.model_providers.remove(row.workspace, row.name)
        self._runtime.given_providers.forget()
        details = {"tier": tier, "kind": row.kind}
        await self._runtime.auditor.done(self._caller, "model_provider.removed", row.name, details=details)

    async def set_default(self, model: str | None) -> ModelChoice:
        """Which model answers where neither message nor agent names one; None: the best that there is."""
        people = People(self._runtime, self._caller)
        await people.update_workspace(self._caller.workspace, model=model or None)
        return await self.choose()

    async def test(self, model: str | None = None) -> TestedModel:
        """Asks a model one short question: `model`, or the default. For admins: it costs a few tokens."""
        self._check_may_change("workspace")
        extras.require("agents")
        models = await self._models()
        choice = await models.choose(model)
        if choice.is_offline:
            raise InvalidConfig(
                "there is no language model to test",
                hint="give a provider its key: dragoman models add openai",
            )
        from dragoman.agents.model_trial import try_model

        begun = monotonic()
        opened = await asyncio.to_thread(models.open, choice)
        try:
            async with asyncio.timeout(_TEST_LIMIT):
                answer = await try_model(opened, choice.name, _QUESTION)
        except DragomanError as error:
            took = (monotonic() - begun) * 1000
            return TestedModel.failed(choice.name, took, error)
        except TimeoutError:
            error = InvalidConfig(f"{choice.name} did not answer within {_TEST_LIMIT:g} s")
            return TestedModel.failed(choice.name, _TEST_LIMIT * 1000, error)
        took = (monotonic() - begun) * 1000
        shown = self._runtime.redactor.clean(answer)[:_ANSWER_SHOWN]
        return TestedModel(model=choice.name, works=True, milliseconds=took, answer=shown)

    # Parts

    async def _models(self) -> "Models":
        return await self._runtime.given_providers.models_of(self._caller.workspace)

    async def _find(self, name: str, workspace: str) -> ModelProvider | None:
        rows = await self._runtime.store.model_providers.list(workspace)
        return next((one for one in rows if one.name == name), None)

    async def _row(self, name: str, tier: ProviderTier | None) -> ModelProvider:
        places = {"workspace": [self._caller.workspace], "app": [APP], None: [self._caller.workspace, APP]}[
            tier
        ]
        for workspace in places:
            if found := await self._find(name, workspace):
                return found
        known = [one.name for one in await self.providers()]
        raise NotFound(
            f"there is no model provider {name[:80]!r}",
            hint=did_you_mean(name[:80], known) or "dragoman models providers shows those there are",
        )

    def _may_change(self, tier: ProviderTier) -> bool:
        caller = self._caller
        return caller.role == "operator" if tier == "app" else caller.is_admin

    def _check_may_change(self, tier: ProviderTier) -> str:
        """The workspace that a tier stands for, for who may."""
        if not is_person(self._caller):
            raise Denied("only a person sets model providers", hint="use a key of your own")
        if not self._may_change(tier):
            who = "who runs this installation" if tier == "app" else "an admin"
            raise Denied(f"only {who} sets model providers of the {tier}")
        return APP if tier == "app" else self._caller.workspace

    def _changed(
        self,
        before: ModelProvider | None,
        workspace: str,
        name: str,
        kind: str | None,
        key: str | SecretStr | None,
        url: str | None,
        model: str | None,
    ) -> ModelProvider:
        now = datetime.now(UTC)
        described = _kind_of(before, name, kind)
        row = before or ModelProvider(
            workspace=workspace, name=name, kind=described.name, created_at=now, updated_at=now
        )
        secret = SecretStr(key) if isinstance(key, str) else key
        row = replace(
            row,
            url=row.url if url is None else _checked_url(described, url),
            model=row.model if model is None else _checked_model(name, model),
            # Who changes where requests go answers for it from now on.
            origin=row.origin if before is not None and url is None else origin_of(self._caller),
            updated_at=now,
        )
        if described.needs_url and not row.url:
            raise InvalidConfig(f"{described.title} needs an address", hint="give its url")
        if secret is not None:
            _check_key(secret)
            row = replace(row, secret=self._runtime.vault.seal(*row.place, secret))
        elif before is not None and before.secret is not None and before.url != row.url:
            raise InvalidConfig(
                "the key that is kept was given for another address",
                hint="give the key again with the new url",
            )
        if row.secret is None and described.needs_key:
            raise InvalidConfig(f"{described.title} needs a key", hint="give its key")
        return row

    def _view(self, row: ModelProvider) -> ModelProviderView:
        tier: ProviderTier = "app" if row.workspace == APP else "workspace"
        shown = GivenProvider(
            name=row.name, kind=row.kind, url=row.url, key=None, model=row.model, is_guarded=True, whose=""
        )
        return ModelProviderView(
            name=row.name,
            kind=row.kind,
            title=shown.title,
            tier=tier,
            # An address inside is the operator's business.
            url=row.url if tier == "workspace" or self._caller.role == "operator" else None,
            model=row.model,
            default=shown.default,
            has_key=row.secret is not None,
            may_change=self._may_change(tier),
            created_at=row.created_at,
            updated_at=row.updated_at,
        )


def _kind_of(before: ModelProvider | None, name: str, kind: str | None) -> ProviderKind:
    wanted = kind or (before.kind if before else name)
    if before is not None and wanted != before.kind:
        raise Conflict(
            f"{name} is a provider of the kind {before.kind}", hint="remove it first, or choose another name"
        )
    if wanted not in KINDS:
        raise InvalidConfig(
            f"there is no kind of provider {wanted[:80]!r}",
            hint=did_you_mean(wanted[:80], [*KINDS])
            or f"a server of your own has the kind {COMPATIBLE}; there are: {', '.join(KINDS)}",
        )
    if wanted == COMPATIBLE:
        if name in (*KINDS, *_RESERVED):
            raise InvalidConfig(f"a server of your own cannot be called {name!r}", hint="choose another name")
        check_slug(name)
    elif name != wanted:
        raise InvalidConfig(
            f"a provider of the kind {wanted} is called {wanted}",
            hint=f"leave out the name, or the kind; a server of your own has the kind {COMPATIBLE}",
        )
    return KINDS[wanted]


def _checked_url(kind: ProviderKind, url: str) -> str | None:
    url = url.strip()
    if not url:
        return None
    if not kind.takes_url:
        raise InvalidConfig(f"{kind.title} is at its own address only", hint="leave out the url")
    try:
        parts = urlsplit(url)
        is_fit = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_fit = False
        parts = None
    if not is_fit or parts is None or len(url) > _LONGEST_URL or any(ord(letter) <= 32 for letter in url):
        raise InvalidConfig("the url is no address of a server", hint="as in https://llm.example/v1")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise InvalidConfig(
            "the url holds more than an address",
            hint="give a key as the key; leave out user, query and fragment",
        )
    return url.rstrip("/")


def _checked_model(name: str, model: str) -> str | None:
    model = model.strip().removeprefix(f"{name}:")
    if "," in model or len(model) > _LONGEST_MODEL or any(ord(letter) < 32 for letter in model):
        raise InvalidConfig("a provider has one model of its own", hint="name one, as in gpt-5")
    return model or None


def _check_key(key: SecretStr) -> None:
    text = key.get_secret_value()
    if (
        not text.strip()
        or len(text) > _LONGEST_KEY
        or any(ord(letter) <= 32 or ord(letter) > 126 for letter in text)
    ):
        raise InvalidConfig("the key is empty, too long, or holds characters that cannot be sent")
