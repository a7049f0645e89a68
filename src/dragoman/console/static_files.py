"""The console's own scripts, styles, letters and marks, each read and compressed once.

An address changes with the file and with every file that it names, so that browsers may keep it for ever.
Only what lies in the folder when somebody first asks has an address.
"""

import gzip
import mimetypes
import re
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

_NAMED = re.compile(
    rb'(?:(?<=from "\./)|(?<=import\("\./))[\w.]+(?=")|(?<=url\(")[\w./]+(?="\))'
)  # by a script, by a style
_TEXTS = (".js", ".css", ".svg")
_FOR_EVER = "public, max-age=31536000, immutable"


@dataclass(frozen=True, slots=True)
class StaticFile:
    body: bytes
    zipped: bytes | None
    media_type: str
    mark: str


class StaticFiles:
    """Called with a name, as templates do, it is the address of that file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[str, StaticFile] = {}

    def __call__(self, name: str) -> str:
        return f"/static/{name}?{self._file(name).mark}"

    async def answer(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in self._names:
            raise HTTPException(404)
        file = self._file(name)
        headers = {"etag": f'"{file.mark}"', "vary": "accept-encoding"}
        headers["cache-control"] = _FOR_EVER if request.url.query else "no-cache"
        if request.headers.get("if-none-match") == headers["etag"]:
            return Response(status_code=304, headers=headers)
        if file.zipped is None or "gzip" not in request.headers.get("accept-encoding", ""):
            return Response(file.body, media_type=file.media_type, headers=headers)
        return Response(
            file.zipped, media_type=file.media_type, headers={**headers, "content-encoding": "gzip"}
        )

    @cached_property
    def _names(self) -> frozenset[str]:
        paths = (path for path in self._folder.rglob("*") if path.is_file())
        return frozenset(path.relative_to(self._folder).as_posix() for path in paths)

    def _file(self, name: str) -> StaticFile:
        if name not in self._files:
            body = (self._folder / name).read_bytes()
            if name.endswith((".js", ".css")):
                body = _NAMED.sub(lambda named: self._marked(named[0]), body)
            zipped = gzip.compress(body, mtime=0) if name.endswith(_TEXTS) else None
            kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
            self._files[name] = StaticFile(body, zipped, kind, sha256(body).hexdigest()[:8])
        return self._files[name]

    def _marked(self, name: bytes) -> bytes:
        return b"%s?%s" % (name, self._file(name.decode()).mark.encode())
