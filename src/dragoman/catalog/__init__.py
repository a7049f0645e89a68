"""What exists: names, versions, one index in memory over what the store remembers."""

from dragoman.catalog.catalog import Catalog as Catalog
from dragoman.catalog.catalog import ToolInfo as ToolInfo
from dragoman.catalog.changes import ToolChange as ToolChange
from dragoman.catalog.changes import ToolChanges as ToolChanges
from dragoman.catalog.connector_tools import CatalogState as CatalogState
