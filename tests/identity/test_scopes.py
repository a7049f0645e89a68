"""The table of scopes."""

import pytest

from dragoman.errors import Denied
from dragoman.web.scopes import check_scope, needed_scope


@pytest.mark.parametrize(
    ("method", "path", "scope"),
    [
        ("GET", "/api/tools", "read"),
        ("GET", "/api/me", "read"),
        ("GET", "/metrics", "read"),
        ("HEAD", "/api/tools", "read"),
        ("POST", "/api/call", "call"),
        ("POST", "/api/tools/mcp_time_now/call", "call"),
        ("POST", "/api/tools/mcp_time_now/call/enable", "manage"),
        ("POST", "/api/tools/call", "call"),
        ("POST", "/api/tools/x/enable", "manage"),
        ("POST", "/mcp", "call"),
        ("POST", "/api/approvals/apr_1/answer", "approve"),
        ("GET", "/api/approvals/apr_1/answer", "read"),
        ("DELETE", "/api/approvals/apr_1", "manage"),
        ("GET", "/api/users", "admin"),
        ("PATCH", "/api/users/usr_1", "admin"),
        ("GET", "/api/workspaces/x", "admin"),
        ("GET", "/api/audit", "admin"),
        ("GET", "/api/keys", "read"),
        ("POST", "/api/keys", "manage"),
        ("DELETE", "/api/keys/key_1", "manage"),
        ("PUT", "/api/credentials/x", "manage"),
        ("POST", "/agents/assign-action-server", "manage"),
        ("POST", "/elsewhere", None),
        ("TRACE", "/api/tools", None),
        ("get", "/api/tools", None),
    ],
)
def test_each_request_needs_its_scope(method: str, path: str, scope: str | None) -> None:
    assert needed_scope(method, path) == scope


def test_a_missing_scope_is_named() -> None:
    check_scope("POST", "/api/call", frozenset({"call"}))
    with pytest.raises(Denied, match="'call'") as caught:
        check_scope("POST", "/api/call", frozenset({"read", "manage", "approve", "admin"}))
    assert 'scopes=["call"]' in str(caught.value.hint)
    with pytest.raises(Denied):
        check_scope("POST", "/elsewhere", frozenset({"read", "call", "manage", "approve", "admin"}))
