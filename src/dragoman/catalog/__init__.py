"""What exists: names, versions, one index in memory over what the store remembers."""

from dragoman.catalog.catalog import Catalog as Catalog
from dragoman.catalog.catalog import ToolInfo as ToolInfo
from dragoman.catalog.changes import Change as Change
from dragoman.catalog.changes import Changes as Changes
from dragoman.catalog.shelf import CatalogState as CatalogState
