"""Scenarios of the conformance suite that do not apply to a gateway, each with the reason."""

_TASKS = "tasks are an optional extension (not scored), and Dragoman does not declare it"

NOT_OURS: dict[str, dict[str, str]] = {
    "2025-11-25": {
        "tools-call-with-logging": "one connection serves many clients, and a server's log does not say "
        "whose call it belongs to: passing it on would show one client what another did. Levels are "
        "accepted, and what a program writes to stderr is kept for its owner (connectors show).",
    },
    "2026-07-28": {
        f"tasks-{name}": _TASKS
        for name in (
            "lifecycle",
            "capability-negotiation",
            "wire-fields",
            "request-state-removal",
            "mrtr-input",
            "request-headers",
            "dispatch-and-envelope",
            "required-task-error",
            "mrtr-composition",
        )
    },
}
