"""Hooks: code that looks at every call before and after, and at every list of tools.

Above access and the catalog, below the road, which asks them. Knows no store.
"""

from dragoman.hooks.call_hooks import CallHooks as CallHooks
from dragoman.hooks.chain import HookChain as HookChain
from dragoman.hooks.chain import HookReport as HookReport
from dragoman.hooks.hooks import KNOWN as KNOWN
from dragoman.hooks.hooks import HookKind as HookKind
from dragoman.hooks.hooks import Hooks as Hooks
from dragoman.hooks.protocol import Hook as Hook
from dragoman.hooks.protocol import HookedCall as HookedCall
from dragoman.hooks.protocol import HookFactory as HookFactory
from dragoman.hooks.protocol import Verdict as Verdict
