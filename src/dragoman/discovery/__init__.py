"""What a registry of MCP servers offers, read with suspicion. Nothing here runs or stores anything."""

from dragoman.discovery.offers import Offer as Offer
from dragoman.discovery.offers import Way as Way
from dragoman.discovery.offers import read_offer as read_offer
from dragoman.discovery.registry import McpRegistry as McpRegistry
from dragoman.discovery.registry import Page as Page
