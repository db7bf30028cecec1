"""rarestream datasets: the tables that are part of the package, and the sets of the paper, which are downloaded."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rarestream.cli import failures, look, options
from rarestream.cli.parser import Argument, Option, require_choice
from rarestream.errors import plain

if TYPE_CHECKING:
    from rarestream.datasets import DataSet

REDRAWN = 0.1  # seconds between two drawings of the progress

Name = Annotated[
    str | None,
    Argument("NAME", help="Print only the path of this data set, for other commands; download it if it is missing."),
]
DataDir = Annotated[
    Path | None,
    Option(
        "--data-dir",
        metavar="DIR",
        help="The folder of downloaded data.",
        default="$RARESTREAM_DATA, else rarestream in the user's cache",
    ),
]
Offline = Annotated[bool, Option("--offline", help="Download nothing: use only files that are in DIR.")]


def datasets(name: Name = None, data_dir: DataDir = None, offline: Offline = False, json: options.Json = False) -> None:
    """List the data sets, or print the path of one.

    Two tables are part of the package. The others are those of the FTRL-AUC paper: the first time, they are downloaded
    from their publishers and prepared. After Ctrl-C or a lost connection, rerun the same command to continue.
    """
    from rarestream.datasets import info, names, user_folder

    folder = user_folder() if data_dir is None else data_dir
    if name is not None:
        require_choice("NAME", name, names())
        path = _load(name, folder, offline)
        if json:
            look.print_json(_record(info(name), folder, path))
        else:
            print(path)
        return
    for one in map(info, names()):
        if json:
            look.print_json(_record(one, folder, None))
        else:
            _show(one, folder, data_dir)


def _load(name: str, folder: Path, offline: bool) -> Path:
    import warnings

    from rarestream.datasets import load

    progress = _Progress(name)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            path = load(name, folder, download=not offline, report=progress)
    except KeyboardInterrupt:
        progress.end()
        failures.exit_with(
            f"interrupted; what has been downloaded is kept in {plain(folder)}. Rerun the same command to continue.",
            failures.INTERRUPTED,
        )
    finally:
        progress.end()
    for one in caught:
        look.warn(str(one.message))
    return path


def _record(one: DataSet, folder: Path, path: Path | None) -> dict[str, Any]:
    """The JSON object of a data set; its path is null as long as it is not prepared."""
    from rarestream.datasets import is_present, load
    from rarestream.datasets.catalogue import FOLDER

    if path is None:
        path = load(one.name) if one.packaged else folder / FOLDER / one.file
    return {
        **vars(one),
        "originals": [original._asdict() for original in one.originals],
        "present": is_present(one.name, folder),
        "path": str(path) if path.is_file() else None,
    }


def _show(one: DataSet, folder: Path, data_dir: Path | None) -> None:
    from rarestream.datasets import is_present

    ink = look.stdout()
    count = f"{look.count(one.rows)} rows, {look.count(one.positives)} positive"
    features = f", {look.count(one.features)} features" if one.features else ""
    ink.line(f"{ink(one.name, 'bold')}  {count} ({look.share(one.positives, one.rows)}){features}")
    if one.packaged:
        where = ""
    elif is_present(one.name, folder):
        where = f"in {plain(folder)}"
    else:
        where = "to be downloaded"
    for text in (one.about, f"{one.license}; {one.source}", where):
        for line in look.wrap(text, look.width() - 2) if text else ():
            ink.line(f"  {line}")
    words = ["rarestream", "datasets", one.name, *(() if data_dir is None or one.packaged else ("--data-dir", folder))]
    given = [f"--label {one.label}"] if one.label else []
    given += [f"--text {column}" for column in one.text]
    command = " ".join([f'rarestream train "$({look.quoted(words)})"', *given, f"-o {one.name}.rare"])
    ink.line(f"  {ink(command, 'dim')}")


class _Progress:
    """Shows how much of a file has come, and how many rows are prepared: a line that is redrawn in a terminal; in a log
    a line when something begins."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._ink = look.stderr()
        self._live_line = look.LiveLine(self._ink.terminal)
        self._begun: set[str] = set()
        self._drawn = 0.0

    def __call__(self, now: Any) -> None:
        if isinstance(now, int):
            step, begin, text = "prepare", f"preparing {self._name}", f"preparing {self._name}: {look.count(now)} rows"
        else:
            total = "" if now.total is None else f" of {look.size(now.total)}"
            text = f"downloading {now.file}: {look.size(now.bytes)}{total}"
            step, begin = now.file, f"downloading {now.file}{f' ({look.size(now.total)})' if now.total else ''}"
            if now.bytes:
                begin = f"continuing {now.file} after {look.size(now.bytes)}{total}"
        if not self._live_line.shown and step not in self._begun:
            self._ink.line(f"{begin} ...")
        elif self._live_line.shown and time.monotonic() - self._drawn >= REDRAWN:
            self._drawn = time.monotonic()
            self._live_line.draw(look.cut(plain(text), look.width() - 1))
        self._begun.add(step)

    def end(self) -> None:
        self._live_line.clear()
