"""The formats that people already have, read and written. Knows no store, no network and no hub."""

from dragoman.formats.import_plan import FoundAgent as FoundAgent
from dragoman.formats.import_plan import FoundBundle as FoundBundle
from dragoman.formats.import_plan import FoundConnector as FoundConnector
from dragoman.formats.import_plan import ImportPlan as ImportPlan
from dragoman.formats.import_plan import ImportProblem as ImportProblem
from dragoman.formats.import_plan import RequiredInput as RequiredInput
from dragoman.formats.recognition import read as read
from dragoman.formats.variables import BaseFolders as BaseFolders
from dragoman.formats.variables import filled as filled
