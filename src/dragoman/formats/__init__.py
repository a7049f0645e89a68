"""The formats that people already have, read and written. Knows no store, no network and no hub."""

from dragoman.formats.plan import FoundAgent as FoundAgent
from dragoman.formats.plan import FoundConnector as FoundConnector
from dragoman.formats.plan import ImportPlan as ImportPlan
from dragoman.formats.plan import Need as Need
from dragoman.formats.plan import Problem as Problem
from dragoman.formats.reading import read as read
from dragoman.formats.variables import Places as Places
from dragoman.formats.variables import filled as filled
