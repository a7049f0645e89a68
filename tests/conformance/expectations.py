"""Scenarios of the conformance suite that do not apply to a gateway, each with the reason."""

NOT_OURS: dict[str, dict[str, str]] = {
    "2025-11-25": {
        "tools-call-with-logging": "one connection serves many clients, and a server's log does not say "
        "whose call it belongs to: passing it on would show one client what another did. Levels are "
        "accepted, and what a program writes to stderr is kept for its owner (connectors show).",
    },
    "2026-07-28": {
        "tasks-required-task-error": "no tool of a gateway is there only for clients with tasks: a client "
        "without them waits, and hears meanwhile that its call is under way.",
        "tasks-mrtr-composition": "a client that takes tasks gets one as soon as its call waits for "
        "somebody, and is asked by the task; the suite wants to be asked first and be given a task then.",
    },
}

ONE_CHECK: dict[str, str] = {
    "tasks-lifecycle": "a server's internal error is told as the failure of its tool, with a code and what "
    "to do next: a model reads results, and errors of the protocol it never sees.",
    "tasks-mrtr-input": "what a server asks at once is asked one after the other, as a person reads it.",
}
"""Scenarios of which one check does not apply, and no more."""
