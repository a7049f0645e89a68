"""`dragoman audit …`"""

import typer

app = typer.Typer(no_args_is_help=True, help="Who did what to which, and whether the trail is whole.")
