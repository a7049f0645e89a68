"""Which other processes share this installation, and what they tell each other.

Every fact is in the store. What nodes tell each other says only that there is something to read: a message
that is lost costs time, never a fact. `alone` is for one process, `nats` for many.
"""

from dragoman.cluster.alone import Alone
from dragoman.cluster.protocol import ROLES, TOPICS, Cluster, Heard, Node, Role, Topic
from dragoman.cluster.streams import Streams
from dragoman.cluster.work import RunKey, Work

__all__ = [
    "ROLES",
    "TOPICS",
    "Alone",
    "Cluster",
    "Heard",
    "Node",
    "Role",
    "RunKey",
    "Streams",
    "Topic",
    "Work",
]
