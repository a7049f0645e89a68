"""Nodes as tests need them."""

from datetime import UTC, datetime
from uuid import uuid4

from dragoman.cluster import Alone, Node


def node(name: str = "node") -> Node:
    return Node(id=f"{name}-{uuid4().hex[:6]}", host="here", pid=1, version="1", started_at=datetime.now(UTC))


def alone() -> Alone:
    """One process that nobody else tells anything."""
    return Alone(node())
