"""A pool of processes of pydantic_monty that run code for callers, at a lower priority than the one that
serves everybody. Whoever opens it closes it; runs under way are ended then.
"""

import asyncio
import os
from contextlib import suppress
from dataclasses import replace
from time import perf_counter
from typing import Any, Self
from weakref import WeakValueDictionary

from pydantic_monty import AsyncMonty, AsyncMontySession, MontyError, ResourceLimits

from dragoman.sandbox import faults
from dragoman.sandbox.code_run import CodeRun
from dragoman.sandbox.exposed_names import modules_for, names_for
from dragoman.sandbox.namespace import CodeCatalog, FunctionNames, Namespace
from dragoman.sandbox.outcome import (
    CodeEnded,
    CodeError,
    CodeLimits,
    CodeOutput,
    CodeServices,
    CountTokens,
)
from dragoman.sandbox.plain_json import NotPlain, ValueTooLarge, plain
from dragoman.scope import Caller
from dragoman.telemetry.logs import get_logger
from dragoman.tool import CallObserver, Json, json_bytes

_NICENESS = 10
_RECYCLE_AFTER = 1000  # runs of one process
_SUSPENSIONS = 20  # times that code is held up for one call, at most: names, the call, its await
_CLOSING_PAUSE = 0.3  # without it the interpreter now and then aborts at its exit, after calls from code


class CodePool:
    def __init__(
        self,
        catalog: CodeCatalog,
        ways: CodeServices,
        limits: CodeLimits,
        *,
        programmatic: bool,
        count_tokens: CountTokens,
    ) -> None:
        self._catalog = catalog
        self._ways = ways
        self.limits = limits
        self._programmatic = programmatic
        self._count = count_tokens
        self._names = FunctionNames()
        self._pool: AsyncMonty | None = None
        self._opening = asyncio.Lock()
        self._places: WeakValueDictionary[tuple[str, str], asyncio.Semaphore] = WeakValueDictionary()
        self._works: set[CodeRun] = set()
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._is_closing = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._is_closing = True
        for work in self._works:
            work.stop(_closing())
        await self._quiet.wait()
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.__aexit__(None, None, None)
            await asyncio.sleep(_CLOSING_PAUSE)

    async def run(self, code: str, caller: Caller, observer: CallObserver | None = None) -> CodeOutput:
        """Whatever goes wrong is in the output; only cancellation gets out as an exception.

        When the caller is cancelled, so are the calls under way, and the process is free for others. While a
        person is asked about a call, no time counts; `observer` hears of that, and of every call that leaves.
        """
        started = perf_counter()
        caller = replace(caller, way="code")
        namespace = Namespace(self._catalog, self._names, caller, programmatic=self._programmatic)
        work = CodeRun(self._ways, namespace, caller, self.limits, self._count, observer)
        result, error = None, self._reason_to_refuse(code)
        if error is None:
            self._works.add(work)
            self._quiet.clear()
            try:
                result = await self._result(code, caller, namespace, work)
            except CodeEnded as ended:
                error = ended.error
            finally:
                try:
                    await work.end()
                finally:
                    self._works.discard(work)
                    if not self._works:
                        self._quiet.set()
        return self._told(work, result, error, started)

    def _reason_to_refuse(self, code: str) -> CodeError | None:
        if self._is_closing:
            return _closing()
        if not code.strip():
            return CodeError(code="code_syntax", message="there is no code", hint="print or return something")
        try:
            size = len(code.encode())
        except UnicodeEncodeError:
            return CodeError(code="code_syntax", message="the code holds half a character", hint="use UTF-8")
        if size > self.limits.code:
            return CodeError(
                code="code_syntax",
                message=f"the code has {size:,} bytes, at most {self.limits.code:,} are run",
                hint="let a tool read large data instead of writing it into the code",
            )
        return None

    async def _result(self, code: str, caller: Caller, namespace: Namespace, work: CodeRun) -> Json:
        place = self._places.setdefault(
            (caller.workspace, caller.user), asyncio.Semaphore(self.limits.per_user)
        )
        has_place = False
        try:
            async with asyncio.timeout(self.limits.wall) as clock:
                work.begin(clock)
                async with (
                    place,
                    (await self._opened()).checkout(
                        limits=self._resources(), external_modules=modules_for(code, namespace, work)
                    ) as session,
                ):
                    has_place = True
                    _lower_priority(session)
                    value = await session.feed_run(
                        code,
                        external_lookup=names_for(code, namespace, work),
                        print_callback=work.print_text,
                    )
        except TimeoutError:
            late = faults.timed_out(self.limits) if has_place else faults.busy(self.limits)
            raise CodeEnded(work.fault or late) from None
        except MontyError as error:
            raise CodeEnded(work.fault or faults.fault_of(error, self.limits)) from None
        except (ValueError, RecursionError, MemoryError) as error:
            # The library could not make a Python value of the result.
            raise CodeEnded(faults.not_returnable(str(error))) from None
        except OSError as error:
            get_logger().error("sandbox.failed", exc_info=error)
            raise CodeEnded(_not_started(error)) from None
        if work.fault:
            raise CodeEnded(work.fault)
        return self._returnable(value, work)

    def _returnable(self, value: Any, work: CodeRun) -> Json:
        if work.is_flooded:
            raise CodeEnded(faults.too_much_output(self.limits))
        try:
            return None if value is None else plain(value, work.room)
        except NotPlain as why:
            raise CodeEnded(faults.not_returnable(str(why))) from None
        except ValueTooLarge:
            raise CodeEnded(faults.too_much_output(self.limits)) from None

    def _told(self, work: CodeRun, result: Json, error: CodeError | None, started: float) -> CodeOutput:
        printed = work.printed
        returned = json_bytes(result) if result is not None else b""
        shown = self._count(printed.encode()) + self._count(returned)
        return CodeOutput(
            ok=error is None,
            result=result,
            printed=printed,
            calls=work.calls,
            cost=work.cost,
            tokens_outside=max(work.tokens - shown, 0),
            duration_ms=(perf_counter() - started) * 1000,
            error=error,
        )

    async def _opened(self) -> AsyncMonty:
        async with self._opening:
            if self._pool is None:
                pool = AsyncMonty(
                    min_processes=1,
                    max_processes=self.limits.processes,
                    max_checkouts_per_worker=_RECYCLE_AFTER,
                )
                await pool.__aenter__()
                self._pool = pool
            return self._pool

    def _resources(self) -> ResourceLimits:
        limits = self.limits
        return {
            "max_feed_duration_secs": limits.execution,
            "max_memory": limits.memory,
            "max_suspensions": 1000 + limits.calls * _SUSPENSIONS,
            "max_total_sleep_secs": limits.execution,
        }


def _lower_priority(session: AsyncMontySession) -> None:
    if (pid := session.worker_pid) is not None:
        with suppress(OSError):  # it has just died, which the run will tell
            os.setpriority(os.PRIO_PROCESS, pid, _NICENESS)


def _closing() -> CodeError:
    return CodeError(code="code_crashed", message="Dragoman is shutting down", hint="run it again later")


def _not_started(error: OSError) -> CodeError:
    return CodeError(
        code="code_crashed",
        message=f"the sandbox could not be started: {error.strerror or type(error).__name__}",
        hint="is the package pydantic-monty installed whole? dragoman doctor tells",
    )
