"""The limits of this machine, measured on the data of a shape; its name; and the writer of text files.

The C++ beside this file is compiled when first needed, by the system's compiler.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarestream import Block

HERE = Path(__file__).parent
CACHE = HERE.parent / "build" / "bench-data"
CACHE.mkdir(parents=True, exist_ok=True)
FLAGS = ("-O3", "-march=native", "-std=c++17", "-shared", "-fPIC")
# Sums in any order. Not -ffast-math: such a library switches denormal numbers off in the process that loads it.
FLAGS += ("-fassociative-math", "-fno-signed-zeros", "-fno-trapping-math", "-fno-math-errno")
AHEAD = (0, 30, 60, 120, 240)  # prefetch distances tried for the limit; the best one counts


@cache
def library() -> ctypes.CDLL:
    source = HERE / "machine.cpp"
    compiler = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        raise SystemExit("bench: no C++ compiler found; set CXX.")
    name = hashlib.sha256(source.read_bytes() + " ".join(FLAGS).encode()).hexdigest()[:12]
    built = CACHE / f"machine-{name}.so"
    if not built.exists():
        subprocess.run([compiler, *FLAGS, str(source), "-o", str(built)], check=True)
    loaded = ctypes.CDLL(str(built))
    loaded.streaming_read.restype = ctypes.c_double
    return loaded


def _at(array: NDArray[Any]) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def read_modify_write(indices: NDArray[np.int32], table: NDArray[np.uint64], ahead: int) -> None:
    library().read_modify_write(_at(indices), ctypes.c_int64(len(indices)), _at(table), ctypes.c_int64(ahead))


def streaming_read(indices: NDArray[np.int32], values: NDArray[np.float32]) -> float:
    total: float = library().streaming_read(_at(indices), _at(values), ctypes.c_int64(len(indices)))
    return total


def write_text(path: Path, block: Block, *, vw: bool = False, append: bool = False) -> None:
    """The block as an svmlight file counted from 1, or as Vowpal Wabbit's text with the same feature numbers."""
    assert block.labels is not None
    arrays = [np.ascontiguousarray(a) for a in (block.indptr, block.indices, block.values, block.labels)]
    mode = b"ab" if append else b"wb"
    failed = library().write_text(os.fsencode(path), mode, ctypes.c_int64(len(block)), *map(_at, arrays), int(vw))
    if failed:
        raise OSError(f"{path}: could not be written")


def description() -> dict[str, Any]:
    """The processor, its caches, the cores and memory there are, and how busy they were."""
    found: dict[str, Any] = {"system": platform.platform(), "cores": len(os.sched_getaffinity(0))}
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith(("model name", "cache size")):
            found.setdefault(line.split("\t")[0], line.split(":", 1)[1].strip())
    found["memory GB"] = round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1)
    found["load"] = [round(load, 2) for load in os.getloadavg()]
    return found
