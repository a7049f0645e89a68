"""`dragoman credentials …`"""

import typer

app = typer.Typer(
    no_args_is_help=True, help="Your secrets for connectors: set, authorise, remove, rotate the key."
)
