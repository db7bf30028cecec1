"""Snapshots: the whole state of the service after an entry of the log, each a folder.

    snapshots/00000000000000012000/   the state after entry 12,000
        model.rare, ...
        manifest.json                 {"format": 1, "sequence": 12000, "files": {"model.rare": {"size": 9, "crc32": 7}},
                                       "crc32": 5}, the last one of the JSON of "files"

A snapshot is written under another name, flushed to disk and renamed. One that is removed is renamed first. So a folder
with a number for a name is whole, unless the disk has damaged it; and that is checked when it is read.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping
from typing import Any, NamedTuple
from zlib import crc32

from rarestream.errors import DataError, OutputError, plain
from rarestream.system import sync_folder

FORMAT = 1
MANIFEST = "manifest.json"
LARGEST_MANIFEST = 1 << 20  # bytes
NAMED = re.compile(r"\d{20}")
UNFINISHED = re.compile(r"\.\d{20}\.(part|removed)")
FILE_NAMED = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,100}")


class Snapshot(NamedTuple):
    """The state after an entry of the log."""

    sequence: int
    files: dict[str, bytes]


class _NotWholeError(Exception):
    """Why a snapshot cannot be used."""


class Snapshots:
    """The snapshots of a state directory. One process writes, which has the lock of the directory; others may read.

    Parameters
    ----------
    folder
        Where they are. It is made when the first is written.
    keep
        Number of snapshots that are kept, at least 1.
    """

    def __init__(self, folder: str | os.PathLike[str], keep: int = 2) -> None:
        if keep < 1:
            raise DataError(f"Snapshots: keep must be >= 1, got {keep}.")
        self.folder, self.keep = os.fspath(folder), keep

    def sequences(self) -> list[int]:
        """Return the sequence numbers of the snapshots on disk, ascending, whole or not."""
        return sorted(int(name) for name in self._names() if NAMED.fullmatch(name))

    def write(self, sequence: int, files: Mapping[str, bytes]) -> None:
        """Write a snapshot. When this returns, it is on disk; then old ones are removed.

        The state after an entry is always the same, so a whole snapshot of the same number stays as it is.

        Parameters
        ----------
        sequence
            The entry after which the state is this one, at least 0.
        files
            What it consists of, by name.

        Raises
        ------
        OutputError
            If it cannot be written. The snapshots that were there are unchanged.
        """
        for name in files:
            if not FILE_NAMED.fullmatch(name) or name == MANIFEST:
                raise DataError(f"Snapshots.write: {name!r} cannot be the name of a file in a snapshot.")
        if sequence < 0:
            raise DataError(f"Snapshots.write: sequence must be >= 0, got {sequence}.")
        try:
            if not os.path.isdir(self.folder):
                os.makedirs(self.folder, exist_ok=True)
                sync_folder(os.path.dirname(os.path.abspath(self.folder)))
            self._remove_unfinished()
            if self.problem(sequence) is not None:
                self._write(sequence, files)
        except OSError as error:
            raise OutputError(
                f"{plain(self._path(sequence))}: the snapshot could not be written ({error.strerror}). Those that were "
                "there are unchanged, and the log has everything since. Free some space and try again."
            ) from error
        self._remove_old(sequence)

    def newest(self) -> tuple[Snapshot | None, list[str]]:
        """Return the newest snapshot that is whole, or None, and what is wrong with those that are newer."""
        problems: dict[int, str] = {}
        while True:
            left = [sequence for sequence in reversed(self.sequences()) if sequence not in problems]
            if not left:
                return None, list(problems.values())
            try:
                return Snapshot(left[0], self._load(left[0])), list(problems.values())
            except _NotWholeError as error:
                # One that is gone has been removed while it was read: there are newer ones by now.
                if os.path.isdir(self._path(left[0])):
                    problems[left[0]] = f"{plain(self._path(left[0]))}: {error}"

    def problem(self, sequence: int, *, thorough: bool = True) -> str | None:
        """Return why a snapshot is not whole, or None if it is; unless `thorough`, its CRCs are not checked."""
        try:
            for name, (size, crc) in self._manifest(sequence).items():
                self._check(sequence, name, size, crc if thorough else None)
        except _NotWholeError as error:
            return str(error)
        return None

    def load(self, sequence: int) -> Snapshot:
        """Return one of the snapshots; OutputError if it is not whole."""
        try:
            return Snapshot(sequence, self._load(sequence))
        except _NotWholeError as error:
            raise OutputError(f"{plain(self._path(sequence))}: {error}") from error

    def file(self, sequence: int, name: str) -> bytes:
        """Return a file of a snapshot; OutputError if it is not as it was written."""
        try:
            size, crc = self._manifest(sequence)[name]
            data = self._read(sequence, name, size)
            if crc32(data) != crc:
                raise _NotWholeError(f"{plain(name)} is not as it was written (its CRC is wrong)")
        except (_NotWholeError, KeyError) as error:
            raise OutputError(f"{plain(self._path(sequence))}: {error}") from error
        return data

    # -- writing

    def _write(self, sequence: int, files: Mapping[str, bytes]) -> None:
        aside = self._hidden(sequence, "part")
        try:
            os.mkdir(aside)
            entries = {name: {"size": len(data), "crc32": crc32(data)} for name, data in files.items()}
            crc = crc32(json.dumps(entries).encode())
            manifest = {"format": FORMAT, "sequence": sequence, "files": entries, "crc32": crc}
            for name, data in {**files, MANIFEST: json.dumps(manifest).encode()}.items():
                _write_file(os.path.join(aside, name), data)
            sync_folder(aside)
            if os.path.isdir(self._path(sequence)):  # damaged, or it would not be written again
                self._remove(sequence)
            os.rename(aside, self._path(sequence))
        except BaseException:
            shutil.rmtree(aside, ignore_errors=True)
            raise
        sync_folder(self.folder)

    def _remove_old(self, written: int) -> None:
        """Remove snapshots older than those that are kept. Errors are of no consequence: they are tried again."""
        whole = [one for one in self.sequences() if one == written or self.problem(one, thorough=False) is None]
        oldest = min([*whole[-self.keep :], written])
        for sequence in self.sequences():
            if sequence < oldest:
                try:
                    self._remove(sequence)
                except OSError:
                    return

    def _remove(self, sequence: int) -> None:
        aside = self._hidden(sequence, "removed")
        shutil.rmtree(aside, ignore_errors=True)
        os.rename(self._path(sequence), aside)
        shutil.rmtree(aside, ignore_errors=True)

    def _remove_unfinished(self) -> None:
        """Remove what a process has left that ended while it was writing or removing."""
        for name in self._names():
            if UNFINISHED.fullmatch(name):
                shutil.rmtree(os.path.join(self.folder, name), ignore_errors=True)

    # -- reading

    def _load(self, sequence: int) -> dict[str, bytes]:
        manifest = self._manifest(sequence)
        for name, (size, _) in manifest.items():  # before anything is read
            self._check(sequence, name, size, None)
        found = {}
        for name, (size, crc) in manifest.items():
            data = self._read(sequence, name, size)
            if len(data) != size or crc32(data) != crc:
                raise _NotWholeError(f"{plain(name)} is not as it was written (its CRC is wrong)")
            found[name] = data
        return found

    def _check(self, sequence: int, name: str, size: int, crc: int | None) -> None:
        """Check the size of a file and, if it is given, its CRC."""
        path = os.path.join(self._path(sequence), name)
        try:
            found = os.stat(path).st_size
            if found != size:
                raise _NotWholeError(f"{plain(name)} has {found:,} bytes, and was written with {size:,}")
            if crc is None:
                return
            counted = 0
            with open(path, "rb") as file:
                while data := file.read(1 << 20):
                    counted = crc32(data, counted)
        except OSError as error:
            raise _NotWholeError(f"{plain(name)} cannot be read ({error.strerror})") from error
        if counted != crc:
            raise _NotWholeError(f"{plain(name)} is not as it was written (its CRC is wrong)")

    def _manifest(self, sequence: int) -> dict[str, tuple[int, int]]:
        """Return size and CRC of each file."""
        data = self._read(sequence, MANIFEST, LARGEST_MANIFEST)
        try:
            manifest: Any = json.loads(data)
            version = manifest["format"]
        except (ValueError, KeyError, TypeError, RecursionError):
            raise _NotWholeError(f"{MANIFEST} is not the manifest of a snapshot") from None
        if version != FORMAT:
            raise _NotWholeError(f"written by snapshot format {version!r}; this version reads {FORMAT}")
        try:
            files = {str(name): (entry["size"], entry["crc32"]) for name, entry in manifest["files"].items()}
            crc = crc32(json.dumps(manifest["files"]).encode())
            good = (manifest["sequence"], manifest["crc32"]) == (sequence, crc) and all(
                FILE_NAMED.fullmatch(name) and name != MANIFEST and type(size) is type(crc) is int and size >= 0
                for name, (size, crc) in files.items()
            )
        except (KeyError, TypeError, AttributeError):
            good = False
        if not good:
            raise _NotWholeError(f"{MANIFEST} is damaged")
        return files

    def _read(self, sequence: int, name: str, most: int) -> bytes:
        try:
            with open(os.path.join(self._path(sequence), name), "rb") as file:
                return file.read(most)
        except OSError as error:
            raise _NotWholeError(f"{plain(name)} cannot be read ({error.strerror})") from error

    def _names(self) -> list[str]:
        try:
            return os.listdir(self.folder)
        except FileNotFoundError:
            return []

    def _path(self, sequence: int) -> str:
        return os.path.join(self.folder, f"{sequence:020}")

    def _hidden(self, sequence: int, kind: str) -> str:
        return os.path.join(self.folder, f".{sequence:020}.{kind}")


def _write_file(path: str, data: bytes) -> None:
    with open(path, "xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
