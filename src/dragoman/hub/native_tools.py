"""Tools of this process: the connector that they belong to, and the four that ship with Dragoman."""

from dragoman.connections.native import NativeTools, standard_tools, terminal_tool
from dragoman.connector import Configuration, Connector
from dragoman.errors import InvalidConfig
from dragoman.scope import APP
from dragoman.settings import Settings


def native_connector() -> Connector:
    return Connector(
        id="native",
        workspace=APP,
        owner="",
        slug="native",
        description="Functions of this process",
        configuration=Configuration(kind="native", isolation="shared"),
    )


def add_shipped_tools(native: NativeTools, settings: Settings) -> None:
    """The four that ship with Dragoman are off until they are turned on by name."""
    wanted = set(settings.native_tools)
    if not wanted:
        return
    if settings.multi_user:
        raise InvalidConfig(
            "native_tools cannot be used with multi_user: all users would share one directory",
            hint="unset DRAGOMAN_NATIVE_TOOLS, or run one Dragoman for each of them",
        )
    root = settings.tools_root
    if root is None:
        raise InvalidConfig("native_tools needs tools_root", hint="set DRAGOMAN_TOOLS_ROOT to a directory")
    shipped = {tool.definition.original_name: tool for tool in standard_tools(root)}
    if "terminal" in wanted:
        shipped["terminal"] = terminal_tool(root)
    if unknown := wanted - shipped.keys():
        raise InvalidConfig(
            f"there is no native tool {', '.join(sorted(unknown))}",
            hint=f"known: {', '.join(shipped)}, terminal",
        )
    for name in sorted(wanted - {one.original_name for one in native.definitions()}):
        native.add(shipped[name])
