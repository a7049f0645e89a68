"""`dragoman approvals …`"""

import typer

app = typer.Typer(no_args_is_help=True, help="What agents ask of you: look, answer, take back.")
