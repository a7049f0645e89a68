"""The options of a connector, as `connectors add` and `connectors update` take them."""

from typing import Annotated

import typer

Name = Annotated[str, typer.Argument(help="The connector's name.", show_default=False)]
NewName = Annotated[str | None, typer.Argument(help="The connector's name.", show_default=False)]
FromRegistry = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="A server that dragoman discover shows.", show_default=False),
]
Way = Annotated[int, typer.Option(help="Which of its ways, as dragoman discover numbers them.", min=1)]
Yes = Annotated[bool, typer.Option("--yes", help="Add it without asking; what runs is shown all the same.")]
Command = Annotated[
    list[str] | None, typer.Argument(help="After --: the program that is the server.", show_default=False)
]
Url = Annotated[str | None, typer.Option(help="The address of a remote server.")]
OpenApi = Annotated[
    str | None,
    typer.Option("--openapi", metavar="WHERE", help="An OpenAPI service: its URL, its document, or a file."),
]
Server = Annotated[str | None, typer.Option(help="Where the OpenAPI service is, if not where it says.")]
Tags = Annotated[list[str] | None, typer.Option("--tag", help="OpenAPI: only operations with this tag.")]
Paths = Annotated[list[str] | None, typer.Option("--path", help="OpenAPI: only paths like /orders/*.")]
Methods = Annotated[list[str] | None, typer.Option("--method", help="OpenAPI: only this method.")]
Included = Annotated[list[str] | None, typer.Option("--include", help="OpenAPI: only operations so named.")]
Excluded = Annotated[list[str] | None, typer.Option("--exclude", help="OpenAPI: no operation so named.")]
Transport = Annotated[str | None, typer.Option(help="http or sse, where the address does not tell.")]
Headers = Annotated[
    list[str] | None, typer.Option("--header", metavar="K=V", help="Sent with every request.")
]
Bearer = Annotated[str | None, typer.Option(help="A token; encrypted. Better: --bearer-env.")]
BearerEnv = Annotated[str | None, typer.Option(metavar="VAR", help="Read the token from this variable now.")]
ApiKey = Annotated[str | None, typer.Option(help="A key for the header of --api-key-header; encrypted.")]
ApiKeyEnv = Annotated[str | None, typer.Option(metavar="VAR", help="Read the key from this variable now.")]
ApiKeyHeader = Annotated[str | None, typer.Option(help="X-API-Key unless you say otherwise.")]
ApiKeyIn = Annotated[str | None, typer.Option(help="OpenAPI: header, query or cookie.")]
BasicEnv = Annotated[
    str | None, typer.Option(metavar="VAR", help="OpenAPI: read user:password from this variable now.")
]
Variables = Annotated[list[str] | None, typer.Option("--env", metavar="K=V", help="For the program.")]
SecretVariables = Annotated[
    list[str] | None, typer.Option("--secret-env", metavar="K=V", help="The same, encrypted.")
]
Directory = Annotated[str | None, typer.Option(help="Where the program runs.")]
Isolation = Annotated[str | None, typer.Option(help="One connection per: shared, user or thread.")]
Pin = Annotated[str | None, typer.Option(help="When a tool's definition changes: off, warn or block.")]
ConnectTimeout = Annotated[float | None, typer.Option(help="Seconds.")]
RequestTimeout = Annotated[float | None, typer.Option(help="Seconds.")]
IdleTtl = Annotated[float | None, typer.Option(help="Seconds until an idle connection closes; 0 never.")]
Concurrency = Annotated[int | None, typer.Option("--max-concurrency", help="Most calls at once.")]
AtOnce = Annotated[
    int | None,
    typer.Option(
        "--shared-concurrency", min=1, help="Most calls at once over all processes; more are refused."
    ),
]
PerMinute = Annotated[int | None, typer.Option(min=1, help="Most calls a minute, of everybody together.")]
Approval = Annotated[str | None, typer.Option(help="When a person must say yes: never, default or always.")]
CacheTtl = Annotated[float | None, typer.Option(help="Seconds that results of read-only tools are kept.")]
Eager = Annotated[bool | None, typer.Option("--eager/--lazy", help="Connect at start, or when needed.")]
Deferred = Annotated[
    bool | None,
    typer.Option("--deferred/--in-view", help="Models search for its tools, or always have them in view."),
]
AutoReconnect = Annotated[bool | None, typer.Option(help="Try again in the background.")]
Description = Annotated[str | None, typer.Option(help="What it is for.")]
Personal = Annotated[
    list[str] | None,
    typer.Option("--personal", metavar="NAME", help="Each user brings it: auth, env:NAME or header:NAME."),
]
OAuth = Annotated[bool | None, typer.Option("--oauth", help="Each user authorises in a browser.")]
OAuthClient = Annotated[str | None, typer.Option(metavar="ID", help="A client that the issuer knows.")]
OAuthClientSecret = Annotated[
    str | None, typer.Option(metavar="VAR", help="Read that client's secret from this variable now.")
]
OAuthScopes = Annotated[list[str] | None, typer.Option("--oauth-scope", help="A right to ask for.")]
OAuthIssuer = Annotated[str | None, typer.Option(metavar="URL", help="Who authorises, if not found.")]
OAuthClientCredentials = Annotated[
    bool | None, typer.Option("--oauth-client-credentials", help="The client has rights of its own.")
]
Shared = Annotated[bool | None, typer.Option("--shared", help="For the whole workspace; admins only.")]
Connect = Annotated[
    bool, typer.Option("--connect/--no-connect", help="Connect at once to show that it works.")
]
