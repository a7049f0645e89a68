"""The command `dragoman`: a thin client of the REST door, of a running service or of a hub of its own."""

from dragoman.cli.root import main as main
