"""The composition root: builds the parts, owns their lifetimes, and is the library's way in."""

from dragoman.hub.connectors import ConnectorView as ConnectorView
from dragoman.hub.hub import BoundHub as BoundHub
from dragoman.hub.hub import Hub as Hub
from dragoman.hub.hub import clients_of as clients_of
from dragoman.hub.hub import logins_of as logins_of
