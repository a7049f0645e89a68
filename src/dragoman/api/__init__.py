"""The REST door: `/api`, the probes and the metrics of one hub. Its owner opens the hub, not this door."""

from dragoman.api.app import Api as Api
