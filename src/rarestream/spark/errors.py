"""Errors of Spark in plain words: what a task of ours raised, and workers that lack this package."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rarestream import errors
from rarestream._version import __version__
from rarestream.errors import DataError, MissingExtraError, RarestreamError

SPARK = ("pyspark", "py4j", "grpc")  # packages whose exceptions may hold one of a task
# The last line of a traceback: the class of the error and its message, up to what Spark writes after it.
_OURS = re.compile(
    r"^rarestream\.(?:\w+\.)*(\w+Error): "
    r"(.*?)(?=\n\s*\n|\n\s+at |\n\s*SQLSTATE|\n\s*Driver stacktrace|\s*\Z)",
    re.S | re.M,
)
_MISSING = re.compile(r"No module named '(rarestream[\w.]*)'|Can't get attribute '\w+' on <module '(rarestream[\w.]*)'")
_WAY = (
    'Install it there, in the Python that spark.pyspark.python or PYSPARK_PYTHON names: pip install "rarestream[spark]'
    '=={version}"; or send a packed environment that has it with spark.archives.'
)


def require_pyspark() -> Any:
    """Return the package pyspark; MissingExtraError if it, or pyarrow, is not installed."""
    try:
        import pyarrow  # noqa: F401
        import pyspark
    except ImportError:
        message = 'Spark frames need the packages pyspark and pyarrow: pip install "rarestream[spark]"'
        raise MissingExtraError(message) from None
    return pyspark


def check_version(driver: str) -> None:
    """Raise RarestreamError if the driver, which made a task, has another version of this package than the worker."""
    if driver != __version__:
        raise RarestreamError(
            f"a worker has rarestream {__version__}, but the driver has {driver}. {_WAY.format(version=driver)}"
        )


@contextmanager
def readable_errors() -> Iterator[None]:
    """Context for actions of Spark in which an error that a task of this package raised is raised as itself.

    Raises
    ------
    DataError
        With the message of the task, if rows or arguments are invalid.
    RarestreamError
        With the message of the task; or that the workers lack this package, or have another version of it.
    """
    try:
        yield
    except Exception as error:
        if not type(error).__module__.startswith(SPARK):
            raise
        readable = readable_error(str(error))
        if readable is None:
            raise
        raise readable from None


def readable_error(text: str) -> RarestreamError | None:
    """Return the error of this package that the text of an exception of Spark tells of; None if there is none."""
    found = _OURS.findall(text)
    if found:
        name, message = found[-1]
        kind = getattr(errors, name, DataError)  # those of other modules are DataErrors
        return DataError(message) if issubclass(kind, DataError) else kind(message)
    missing = _MISSING.search(text)
    if missing is None:
        return None
    if missing[1] == "rarestream":
        return RarestreamError(f"the workers do not have rarestream. {_WAY.format(version=__version__)}")
    return RarestreamError(
        f"a worker has another version of rarestream, without {missing[1] or missing[2]}; the driver has "
        f"{__version__}. " + _WAY.format(version=__version__)
    )
