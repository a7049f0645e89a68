"""How much one run of code may use, and how many may run at once."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeLimits:
    """`execution` counts only while the code itself computes; `wall` also counts waiting and calls.

    `output` is what is printed and returned together; `arguments` what one call may be given, `result`
    what one call may hand to the code; all in bytes. `processes` run at once, of one user `per_user`.
    """

    execution: float = 30.0
    wall: float = 300.0
    memory: int = 128 * 1024 * 1024
    calls: int = 200
    output: int = 64 * 1024
    code: int = 256 * 1024
    arguments: int = 4 * 1024 * 1024
    result: int = 16 * 1024 * 1024
    processes: int = 8
    per_user: int = 2
