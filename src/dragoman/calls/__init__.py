"""THE ROAD: every tool call, from every door, is found, allowed, checked, made, shaped and recorded here."""

from dragoman.calls.arguments import ArgumentValidator as ArgumentValidator
from dragoman.calls.audit import Auditor as Auditor
from dragoman.calls.audit import open_auditor as open_auditor
from dragoman.calls.cache import ResultCache as ResultCache
from dragoman.calls.kept_results import ResultKeeper as ResultKeeper
from dragoman.calls.records import Recorder as Recorder
from dragoman.calls.records import open_recorder as open_recorder
from dragoman.calls.request_road import RequestRoad as RequestRoad
from dragoman.calls.road import Road as Road
