"""`dragoman workspaces …`, `dragoman users …`, `dragoman keys …`, `dragoman whoami`."""

import typer

workspaces = typer.Typer(no_args_is_help=True, help="Tenants: nothing crosses their border.")
users = typer.Typer(no_args_is_help=True, help="People and services inside a workspace.")
keys = typer.Typer(no_args_is_help=True, help="API keys: how users and programs come in.")
