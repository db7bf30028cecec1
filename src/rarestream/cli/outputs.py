"""Files that commands write. All is checked before any work is done: nothing is lost, and nothing fails at the end."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from rarestream.cli import failures
from rarestream.errors import plain

OPEN_FILES = ("/dev/fd/", "/dev/stderr", "/proc/self/fd/")  # what a shell has opened: 3> scores.txt

Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the file to write even if it is not a model.")]
OverwriteAny = Annotated[bool, typer.Option("--overwrite", help="Replace the file to write if there is one.")]


class ModelOutput(NamedTuple):
    """Where a model goes, and what to say once it is there."""

    path: Path
    note: str | None  # of the model that is replaced


def files_of(data: Iterable[str]) -> list[Path]:
    """The files that names, globs and standard input stand for."""
    from rarestream.readers.sources import expand

    return [Path(source.path or "/dev/stdin") for name in data for source in expand(name)]


def for_model(path: Path, reads: Sequence[Path], overwrite: bool, resumed: Path | None = None) -> ModelOutput:
    """A model file to write: a new one, one instead of another model, or with --overwrite one instead of any file.
    The model that is `resumed` is replaced without a word."""
    from rarestream.modelfile import peek

    kind = _checked(path, reads, "--output")
    if kind is None:
        _check_writable(path)
        return ModelOutput(path, None)
    if not stat.S_ISREG(kind):
        failures.say(f"{plain(path)}: is not a file that a model could replace. Choose another name.", failures.FAILED)
    header = None
    if resumed is None or not path.samefile(resumed):
        header = peek(path)
        if header is None and not overwrite:
            _refuse(path, "is not a model", "--output")
    _check_writable(path)
    return ModelOutput(path, None if header is None else _note(path, header))


def for_scores(path: Path, reads: Sequence[Path], overwrite: bool) -> bool:
    """A file for scores; True if it is to be written whole, False for a pipe, a device or an open file."""
    kind = _checked(path, reads, "--output")
    if kind is not None and (not stat.S_ISREG(kind) or str(path).startswith(OPEN_FILES)):
        return False
    for_file(path, reads, overwrite, "--output")
    return True


def for_file(path: Path, reads: Sequence[Path], overwrite: bool, option: str) -> None:
    """Any other file to write: a new one, or with --overwrite one instead of any."""
    if _checked(path, reads, option) is not None and not overwrite:
        _refuse(path, "exists", option)
    _check_writable(path)


def for_folder(folder: Path, names: Iterable[str], reads: Sequence[Path] = ()) -> None:
    """A folder of results, made now. Files there by these names are replaced only beside results of an earlier run."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        failures.say(f"{plain(folder)}: is not a folder. Choose another name.", failures.FAILED)
    found = [folder / name for name in names if os.path.lexists(folder / name)]
    for path in found:
        _checked(path, reads, "--out")
    if found and not (folder / "results.jsonl").exists():
        failures.say(
            f"{plain(found[0])}: is there, but no results.jsonl beside it, so it is not of an earlier run and is not "
            "replaced. Choose another folder.",
            failures.FAILED,
        )


def _checked(path: Path, reads: Sequence[Path], option: str) -> int | None:
    """The mode of what is there; None if nothing is. Ends the program if it is a folder, in none, or read as well."""
    target = Path(os.path.realpath(path))  # a link is followed, even one to a file that is not there yet
    if os.path.isdir(target):
        failures.say(f"{plain(path)}: is a directory; name a file in it.", failures.FAILED)
    if not os.path.isdir(target.parent):
        failures.say(
            f"{plain(path)}: the folder {plain(target.parent)} does not exist. Make it first.", failures.FAILED
        )
    try:
        now = os.stat(path)
    except OSError:  # why it cannot be looked at, `_check_writable` says
        return None
    for name in reads:
        if stat.S_ISREG(now.st_mode) and name.exists() and name.samefile(path):
            raise typer.BadParameter(f"{plain(path)} is also what is read; it would be lost.", param_hint=f"'{option}'")
    return now.st_mode


def _check_writable(path: Path) -> None:
    from rarestream.system import check_writable

    check_writable(path)


def _refuse(path: Path, why: str, option: str) -> None:
    raise typer.BadParameter(
        f"{plain(path)} {why}, and is kept. Choose another name, or replace it: --overwrite.",
        param_hint=f"'{option}'",
    )


def _note(path: Path, header: dict[str, Any]) -> str:
    learner, rows = header.get("learner"), header.get("rows")
    name = learner.get("name") if isinstance(learner, dict) else None
    known = isinstance(name, str) and isinstance(rows, int)
    what = f" ({plain(name)}, {rows:,} rows)" if known else ""
    return f"{plain(path)}: replaced the model that was there{what}"
