"""The hooks that hold for the caller, those that a rule can name, and what a rule would do to a text."""

from dataclasses import dataclass
from typing import Any

from dragoman.errors import HookFailed, HookRefused
from dragoman.hooks import KNOWN, HookChain, HookedCall, HookFactory, HookKind, HookReport
from dragoman.hub.bound import BoundService
from dragoman.hub.user_rights import check_operator


@dataclass(frozen=True, slots=True, kw_only=True)
class HooksView:
    """`app` and `workspace` hold for the caller's calls, in this order; a connector's own come after them."""

    app: tuple[str, ...]
    workspace: tuple[str, ...]
    kinds: tuple[HookKind, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedHook:
    """What became of a text as a result: as it would be given, or why not; and what would be said."""

    text: str | None
    refused: str | None
    notes: tuple[str, ...]
    trail: tuple[str, ...]


class CallerHooks(BoundService):
    """What looks at the caller's calls."""

    __slots__ = ()

    async def list(self) -> HooksView:
        """What holds, and the hooks there are."""
        hooks = self._runtime.hooks
        person = await self._runtime.directory.of(self._caller)
        known = {kind.name for kind in KNOWN}
        others = [name for name in hooks.names() if name not in known]
        own = (HookKind(name=name, meaning="Of this installation.", example=name) for name in others)
        return HooksView(app=hooks.app, workspace=person.workspace.hooks, kinds=(*KNOWN, *own))

    async def try_rule(self, rule: str, text: str) -> TriedHook:
        """What a rule would do to a result with this text. Nothing is called, nothing is written."""
        chain: HookChain = self._runtime.hooks.single(rule, self._caller)
        report = HookReport()
        caller = self._caller
        call = HookedCall(
            id="",
            tool="",
            connector="",
            arguments={},
            only_reads=True,
            workspace=caller.workspace,
            user=caller.user,
        )
        output: dict[str, Any] = {"content": [{"type": "text", "text": text}], "isError": False}
        try:
            passed = await chain.after(call, output, report)
        except (HookRefused, HookFailed) as error:
            told = TriedHook(
                text=None, refused=error.message, notes=tuple(report.told), trail=tuple(report.trail)
            )
        else:
            blocks: list[Any] = list(passed.get("content", []))
            given = "\n".join(str(block.get("text", "")) for block in blocks)
            told = TriedHook(text=given, refused=None, notes=tuple(report.told), trail=tuple(report.trail))
        return told

    def add(self, name: str, factory: HookFactory) -> None:
        """A hook of this process, which rules name from now on. For who runs the installation."""
        check_operator(self._caller)
        self._runtime.hooks.add(name, factory)
