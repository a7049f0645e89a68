"""What goes wrong between two machines, in the words of the system rather than of the HTTP library."""

import os

import aiohttp


def plain(error: BaseException) -> str:
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"there is no host {error.host}"
    if isinstance(error, aiohttp.ClientConnectorError):
        number = error.os_error.errno
        reason = os.strerror(number).lower() if number and number > 0 else str(error.os_error)
        return f"cannot connect to {error.host}:{error.port}: {reason}"
    return str(error).strip()[:300] or type(error).__name__
