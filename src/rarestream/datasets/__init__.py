"""Data sets: real tables in the package, the sets of the FTRL-AUC paper, and generated streams of rare events.

    from rarestream import datasets, read

    path = datasets.load("flights")           # a compressed CSV file, part of the package
    path = datasets.load("news20b")           # downloaded and prepared the first time
    for block in read(path): ...

    stream = datasets.make_rare_stream(100_000, positives=0.02, drift=50_000)

`README.md` beside this file has the columns, the source and the license of the tables in the package.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rarestream.datasets.catalogue import DATA_SETS, DataSet, Original
from rarestream.errors import DataError, DownloadError, advice, plain

if TYPE_CHECKING:
    from rarestream.datasets.rare_stream import RareStream as RareStream
    from rarestream.datasets.rare_stream import make_rare_stream as make_rare_stream

__all__ = [
    "DataSet",
    "DownloadError",
    "Original",
    "RareStream",
    "info",
    "is_present",
    "load",
    "make_rare_stream",
    "names",
    "user_folder",
]


def __getattr__(name: str) -> object:
    if name not in ("RareStream", "make_rare_stream"):
        raise AttributeError(f"module 'rarestream.datasets' has no attribute {name!r}")
    from rarestream.datasets import rare_stream  # which needs NumPy

    value: object = getattr(rare_stream, name)
    globals()[name] = value
    return value


def names() -> list[str]:
    """Return the names that `load` takes."""
    return list(DATA_SETS)


def info(name: str) -> DataSet:
    """Return what there is to know of a data set: its label, number of rows, source and license.

    Raises
    ------
    DataError
        If there is no data set of this name; the message lists the names.
    """
    if name not in DATA_SETS:
        from rarestream.errors import nearest  # not above: it is needed for mistakes only

        near = nearest(name, DATA_SETS)
        hint = f"did you mean {near!r}? There" if near else "there"
        raise DataError(f"datasets: no data set is called {plain(repr(name))}; {hint} are {', '.join(DATA_SETS)}.")
    return DATA_SETS[name]


def user_folder() -> Path:
    """Return the folder of downloaded data: RARESTREAM_DATA, or `rarestream` in XDG_CACHE_HOME, or in ~/.cache."""
    if given := os.environ.get("RARESTREAM_DATA"):
        return Path(given)
    cache = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(cache) if os.path.isabs(cache) else Path.home() / ".cache") / "rarestream"


def is_present(name: str, data_dir: str | os.PathLike[str] | None = None) -> bool:
    """Return whether `load` needs no download: the data set is part of the package, or its files are in the folder."""
    if info(name).packaged:
        return True
    from rarestream.datasets.originals import find

    return find(_folder(data_dir), name) is not None


def load(
    name: str,
    data_dir: str | os.PathLike[str] | None = None,
    *,
    download: bool = True,
    report: Callable[[Any], object] | None = None,
) -> Path:
    """Return the path of a data set, which `read` reads without further options but the label of a table.

    A table that is part of the package is there already. A data set of the paper is downloaded from its publisher and
    prepared the first time: labels -1 and +1, columns from 1, rows of unit norm where the paper scaled them. Files
    that are in the folder are used instead: those of the publisher under their own names, also unpacked, or `NAME.svm`
    with the rows in svmlight format, plain or compressed.

    Parameters
    ----------
    name : str
        One of `names()`.
    data_dir : path, optional
        The folder of the downloaded files; the prepared ones are written to `prepared` in it. By default
        `user_folder()`.
    download : bool, default True
        Whether files may be downloaded. With False, missing ones are an error.
    report : callable, optional
        Called with a `DownloadProgress` for every piece of a file that comes, and with the number of rows prepared
        so far, for a display of progress.

    Returns
    -------
    Path
        A compressed CSV file with a header (flights, sms), or a compressed svmlight file.

    Raises
    ------
    DataError
        If there is no data set of this name, files are missing or damaged, or hold other rows than they should.
    DownloadError
        If a file cannot be downloaded, or is another one than before. What has come of it is kept: call again to
        continue.
    OutputError
        If the folder cannot be written, or its disk is full.
    """
    known = info(name)
    if known.packaged:
        from importlib.resources import files  # takes several milliseconds to import

        return Path(str(files(__name__).joinpath(known.file)))
    from rarestream.datasets.download import check
    from rarestream.datasets.originals import ORIGINALS, ROWS, find
    from rarestream.datasets.preparing import prepare, prepared

    folder = _folder(data_dir)
    found = find(folder, name, (ROWS, ORIGINALS))
    path = prepared(folder, name, found)
    if path is not None:
        return path
    if found is None:
        if not download:
            raise DataError(_missing(known, folder))
        _download(known, folder, report)
        found = find(folder, name, (ORIGINALS,))
        assert found is not None
    for original, file in zip(found.originals, found.files, strict=False):
        check(original, file)
    return prepare(folder, found, report)


def _folder(data_dir: str | os.PathLike[str] | None) -> Path:
    return user_folder() if data_dir is None else Path(data_dir)


def _download(known: DataSet, folder: Path, report: Callable[[Any], object] | None) -> None:
    from rarestream.datasets.download import download

    for original in known.originals:
        if not (folder / original.name).is_file():
            download(original, folder, report)


def _missing(known: DataSet, folder: Path) -> str:
    files = "".join(f"\n  {one.url} as {plain(folder / one.name)}" for one in known.originals)
    way = advice("pass download=True", "drop --offline")
    return f"{known.name}: is not in {plain(folder)}. To have it downloaded, {way}; or put its files there:{files}"
