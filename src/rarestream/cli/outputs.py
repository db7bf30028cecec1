"""Files that commands write. All are checked before any work is done, so that no file is lost and no work is."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from rarestream.cli import failures, look
from rarestream.cli.parser import Option, UsageError
from rarestream.errors import plain

OPEN_FILES = ("/dev/fd/", "/dev/stderr", "/proc/self/fd/")  # what a shell has opened: 3> scores.txt

Overwrite = Annotated[bool, Option("--overwrite", help="Replace the output file even if it is not a model.")]
OverwriteAny = Annotated[bool, Option("--overwrite", help="Replace the output file if it exists.")]


class ModelOutput(NamedTuple):
    """A model file to write."""

    path: Path
    note: str | None  # to print once the model there has been replaced


def files_of(data: Iterable[str]) -> list[Path]:
    """The files that names, globs and standard input stand for."""
    from rarestream.readers.sources import expand

    return [Path(source.path or "/dev/stdin") for name in data for source in expand(name)]


def for_model(path: Path, reads: Sequence[Path], overwrite: bool, resumed: Path | None = None) -> ModelOutput:
    """Check a model file to write: a new one, one that replaces a model, or with --overwrite one that replaces any
    file. The note is None for the model that is `resumed`: replacing it is expected."""
    from rarestream.modelfile import peek

    kind = _checked(path, reads, "--output")
    if kind is None:
        _check_writable(path)
        return ModelOutput(path, None)
    if not stat.S_ISREG(kind):
        failures.exit_with(
            f"{plain(path)}: is not a regular file, which a model could replace. Choose another name.", failures.FAILED
        )
    header = None
    if resumed is None or not path.samefile(resumed):
        header = peek(path)
        if header is None and not overwrite:
            _refuse(path, "is not a model", "--output")
    _check_writable(path)
    return ModelOutput(path, None if header is None else _note(path, header))


def for_scores(path: Path, reads: Sequence[Path], overwrite: bool) -> bool:
    """Check a file for scores. True if it is written atomically, False for a pipe, a device or an open file."""
    kind = _checked(path, reads, "--output")
    if kind is not None and (not stat.S_ISREG(kind) or str(path).startswith(OPEN_FILES)):
        return False
    for_file(path, reads, overwrite, "--output")
    return True


def for_file(path: Path, reads: Sequence[Path], overwrite: bool, option: str) -> None:
    """Check any other file to write: a new one, or with --overwrite one that replaces any file."""
    if _checked(path, reads, option) is not None and not overwrite:
        _refuse(path, "exists", option)
    _check_writable(path)


def for_folder(folder: Path, names: Iterable[str], reads: Sequence[Path] = ()) -> None:
    """Make a folder of results. Files of these names in it are replaced only if it has results of an earlier run."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        failures.exit_with(f"{plain(folder)}: is not a folder. Choose another name.", failures.FAILED)
    existing = [folder / name for name in names if os.path.lexists(folder / name)]
    for path in existing:
        _checked(path, reads, "--out")
    if existing and not (folder / "results.jsonl").exists():
        failures.exit_with(
            f"{plain(existing[0])}: exists, but the folder has no results.jsonl, so it is not of an earlier run and is "
            "not replaced. Choose another folder.",
            failures.FAILED,
        )


def _checked(path: Path, reads: Sequence[Path], option: str) -> int | None:
    """The mode of an existing file, else None. Exits if it is a directory, in none, or also an input."""
    target = Path(os.path.realpath(path))  # a link is followed, even one to a file that is not there yet
    if os.path.isdir(target):
        failures.exit_with(f"{plain(path)}: is a directory; name a file in it.", failures.FAILED)
    if not os.path.isdir(target.parent):
        failures.exit_with(
            f"{plain(path)}: the folder {plain(target.parent)} does not exist. Create it first.", failures.FAILED
        )
    try:
        now = os.stat(path)
    except OSError:  # `_check_writable` reports why it cannot be accessed
        return None
    for name in reads:
        if stat.S_ISREG(now.st_mode) and name.exists() and name.samefile(path):
            raise UsageError(f"{plain(path)} is also an input file; it would be lost.", option)
    return now.st_mode


def _check_writable(path: Path) -> None:
    from rarestream.system import check_writable

    check_writable(path)


def _refuse(path: Path, why: str, option: str) -> None:
    raise UsageError(f"{plain(path)} {why}, and is not replaced. Choose another name, or pass --overwrite.", option)


def _note(path: Path, header: dict[str, Any]) -> str:
    learner, rows = header.get("learner"), header.get("rows")
    name = learner.get("name") if isinstance(learner, dict) else None
    what = ""
    if isinstance(name, str) and isinstance(rows, int):
        what = f" ({plain(name)}, {look.counted(rows, 'row')})"
    return f"{plain(path)}: replaced the previous model{what}"
