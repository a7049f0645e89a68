"""Makes `catalog/search/word_vectors` from the two files inside the wheel of `wordllama` (MIT).

    python scripts/word_vectors.py FOLDER    where the wheel was unpacked

The vectors become whole numbers of one byte with a scale for each row: half the size, the same ranking.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

OUT = Path(__file__).parents[1] / "src/dragoman/catalog/search/word_vectors"


def main() -> None:
    source = Path(sys.argv[1]) / "wordllama"
    raw = (source / "weights/l2_supercat_256.safetensors").read_bytes()
    length = int.from_bytes(raw[:8], "little")
    ((_, said),) = [item for item in json.loads(raw[8 : 8 + length]).items() if item[0] != "__metadata__"]
    assert said["dtype"] == "F16", said
    table: Any = np.frombuffer(raw[8 + length :], np.float16).reshape(said["shape"]).astype(np.float32)
    scales = np.maximum(np.abs(table).max(axis=1), 1e-9) / 127
    np.save(OUT / "vectors.npy", np.rint(table / scales[:, None]).astype(np.int8))
    np.save(OUT / "scales.npy", scales.astype(np.float32))
    model = json.loads((source / "tokenizers/l2_supercat_tokenizer_config.json").read_text())["model"]
    pieces = sorted(model["vocab"], key=model["vocab"].get)
    assert not any("\n" in piece for piece in pieces)
    (OUT / "pieces.txt").write_text("\n".join(pieces) + "\n")


main()
