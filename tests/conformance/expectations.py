"""Scenarios of the conformance suite that do not apply to a gateway, each with the reason."""

NOT_OURS: dict[str, dict[str, str]] = {"2025-11-25": {}, "2026-07-28": {}}
