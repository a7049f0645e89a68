"""`dragoman threads …`"""

import typer

app = typer.Typer(no_args_is_help=True, help="Conversations and the connectors that are active in them.")
