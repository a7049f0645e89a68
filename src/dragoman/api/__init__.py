"""The REST door: `/api`, the probes and the metrics of one hub. Its owner opens the hub, not this door."""

from dragoman.api.app import Api as Api
from dragoman.api.guard import Guard as Guard
from dragoman.api.token import get_or_make_token as get_or_make_token
