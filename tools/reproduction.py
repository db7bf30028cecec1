"""The kept trials of the reproduction: docs/reproduction/results.jsonl.xz, one line per finished trial.

python tools/reproduction.py unpack FOLDER    adds the kept trials to FOLDER/results.jsonl
python tools/reproduction.py pack FOLDER      adds the trials of FOLDER/results.jsonl to the kept ones

A trial that both have counts once, as FOLDER has it. Coarse grids (`--quick`) are not kept. The kept file is sorted and
has the same bytes for the same trials.
"""

from __future__ import annotations

import json
import lzma
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

KEPT = Path(__file__).parent.parent / "docs" / "reproduction" / "results.jsonl.xz"
TRIAL = ("dataset", "ratio", "mode", "method", "grid", "trial", "source")  # the fields that name a trial

Row = dict[str, Any]


def kept_rows(path: Path) -> list[Row]:
    """Return the trials of the kept file; none if there is no file."""
    return _rows(lzma.decompress(path.read_bytes())) if path.exists() else []


def folder_rows(folder: Path) -> list[Row]:
    """Return the trials of a folder's results file; none if there is no file. A torn last line is dropped."""
    path = folder / "results.jsonl"
    return _rows(path.read_bytes()) if path.exists() else []


def merged(*parts: Iterable[Row]) -> list[Row]:
    """Return each trial once, sorted; the last part that has it counts."""
    rows = {json.dumps([row[name] for name in TRIAL]): row for part in parts for row in part if row["grid"] != "quick"}
    return sorted(rows.values(), key=lambda row: [(row[name] is not None, row[name]) for name in TRIAL])


def lines(rows: Iterable[Row]) -> bytes:
    """Return trials as the text of a results file."""
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def unpack(folder: Path, kept: Path = KEPT) -> int:
    """Add the kept trials to a folder, and return how many trials it has then."""
    rows = merged(kept_rows(kept), folder_rows(folder))
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / "results.jsonl", lines(rows))
    return len(rows)


def pack(folder: Path, kept: Path = KEPT) -> int:
    """Add the trials of a folder to the kept ones, and return how many are kept then."""
    rows = merged(kept_rows(kept), folder_rows(folder))
    kept.parent.mkdir(parents=True, exist_ok=True)
    _write(kept, lzma.compress(lines(rows), preset=9 | lzma.PRESET_EXTREME))
    return len(rows)


def _rows(text: bytes) -> list[Row]:
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith(b"\n")]


def _write(path: Path, content: bytes) -> None:
    """Replace a file as a whole."""
    beside = path.with_name(f"{path.name}.new")
    beside.write_bytes(content)
    os.replace(beside, path)


def main(words: Sequence[str]) -> int:
    actions = {"unpack": unpack, "pack": pack}
    if len(words) != 2 or words[0] not in actions:
        print("usage: python tools/reproduction.py unpack|pack FOLDER", file=sys.stderr)
        return 2
    print(f"{actions[words[0]](Path(words[1]))} trials")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
