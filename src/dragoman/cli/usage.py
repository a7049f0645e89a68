"""`dragoman usage …`"""

import typer

app = typer.Typer(no_args_is_help=True, help="What was used, and what may still be.")
