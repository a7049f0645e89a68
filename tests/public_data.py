"""Where the public data lies, and how to read it; `data/README.md` says where it is from."""

import gzip
from pathlib import Path

DATA = Path(__file__).parent / "data"
TOOL_SEARCH = DATA / "tool-search"
GITHUB_TOOLS = TOOL_SEARCH / "github_mcp_tools.json"


def openapi_documents() -> dict[str, Path]:
    """Files by the name of their document; read them with `read_document`."""
    files = [*(DATA / "openapi").glob("*.json"), *(DATA / "openapi").glob("*.json.gz")]
    return {file.name.partition(".json")[0]: file for file in sorted(files)}


def read_document(file: Path) -> bytes:
    return gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
