"""What a registry of MCP servers offers, read with suspicion. Nothing here runs or stores anything."""

from dragoman.discovery.common_servers import find_common as find_common
from dragoman.discovery.common_servers import list_common as list_common
from dragoman.discovery.registry import McpRegistry as McpRegistry
from dragoman.discovery.registry import RegistryPage as RegistryPage
from dragoman.discovery.servers import InstallMethod as InstallMethod
from dragoman.discovery.servers import RegistryServer as RegistryServer
from dragoman.discovery.servers import read_server as read_server
