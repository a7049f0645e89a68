"""OAuth 2.1 as a client: who authorises, how a person says yes, tokens kept sealed and renewed once.

Knows no door and no page. Tokens live in the vault; whoever opens `Authorizations` closes it.
"""

from dragoman.connections.oauth.authorizations import Authorizations
from dragoman.connections.oauth.flow import (
    AuthorizationCallback,
    AuthorizationFlows,
    AuthorizationTicket,
    StartedAuthorization,
)

__all__ = [
    "AuthorizationCallback",
    "AuthorizationFlows",
    "AuthorizationTicket",
    "Authorizations",
    "StartedAuthorization",
]
