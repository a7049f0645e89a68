"""The built-in `offline` model: basic matching with typed extraction, no language model, no network."""

from dragoman.agents.offline.model import OfflineModel as OfflineModel
