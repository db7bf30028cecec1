"""Downloads a file: resumed where it stopped, checked, and complete once it has its name.

A file comes as NAME.part; NAME.part.json says which version of it that is a part of: the address, and what the server
told of it (ETag, date, size). The rest is asked for with Range and If-Range, so that a server whose file has changed
sends the new one from its start, and so does one that knows no ranges. Whether the answer continues the part is
checked all the same: where it starts, the size of the whole, the ETag.

The size and the checksum of a complete file are compared with those that are known. Where none are, those of the first
download are recorded as NAME.sha256.json, and a later download has to have them too.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import shutil
import socket
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from email.message import Message
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from rarestream._version import __version__
from rarestream.datasets.catalogue import Original
from rarestream.datasets.preparing import sha256_of
from rarestream.errors import DownloadError, OutputError, plain
from rarestream.system import lock_file, write_whole

PIECE = 1 << 17  # bytes read at once
TIMEOUT = 30.0  # seconds that a server may be silent
PAUSES = (1.0, 2.0, 4.0, 8.0)  # seconds before another attempt, if the one before brought nothing
LONGEST_PAUSE = 60.0  # seconds that a server may ask to wait
OFFLINE = 1  # further attempts where the name of the server cannot be resolved: there is no network
MOST_REDIRECTS = 5
SPARE = 64 << 20  # bytes that stay free on the disk
RETRIED = {408, 425, 429, 500, 502, 503, 504}  # statuses of servers that may do better later


class DownloadProgress(NamedTuple):
    """How much of a file has come."""

    file: str
    bytes: int
    total: int | None  # None: the server does not say


Report = Callable[[DownloadProgress], object]


class _RetryError(Exception):
    """An attempt that failed; another one may succeed."""

    def __init__(self, reason: str, pause: float | None = None, most: int | None = None) -> None:
        super().__init__(reason)
        self.pause = pause  # seconds that the server asks to wait
        self.most = most  # attempts after which it is hopeless; None: as many as there are pauses


class _StaleError(_RetryError):
    """The part is of another version of the file: the next attempt starts from nothing."""


def download(
    original: Original, folder: Path, report: Report | None = None, pauses: tuple[float, ...] = PAUSES
) -> Path:
    """Download a file into a folder, or continue a download, and return its path.

    Parameters
    ----------
    original : Original
        The file, its address, and its size and checksum if they are known.
    folder : Path
        Where to write it.
    report : callable, optional
        Called with a DownloadProgress for every piece.
    pauses : tuple of float
        Seconds before each further attempt after one that brought nothing.

    Raises
    ------
    DownloadError
        If the server cannot be reached, does not have the file, or has another one. A part of the file stays, and is
        continued next time, unless the file turned out to be another one.
    OutputError
        If the disk is full, or the folder cannot be written.
    """
    target, part = folder / original.name, folder / f"{original.name}.part"
    with _opened(part) as file:
        failed = 0  # attempts in a row that brought nothing
        while True:
            before = file.seek(0, os.SEEK_END)
            try:
                _attempt(original, file, part, report)
                break
            except _RetryError as error:
                why = error
            if isinstance(why, _StaleError):
                before = _start_over(file, part)
            after = file.seek(0, os.SEEK_END)
            failed = 0 if after > before else failed + 1
            if failed > (len(pauses) if why.most is None else min(why.most, len(pauses))):
                raise DownloadError(_unreachable(original, folder, str(why), after))
            pause = why.pause
            if pause is None:
                pause = pauses[failed - 1] if failed else 0.0
            time.sleep(min(pause, LONGEST_PAUSE))
        with _write_errors(file):
            os.fsync(file.fileno())
        _check_complete(original, folder, file, part)
    os.replace(part, target)
    _meta(part).unlink(missing_ok=True)
    return target


def check(original: Original, path: Path) -> None:
    """Check a file that is there already: its size and checksum, if they are known or were recorded.

    Raises
    ------
    DownloadError
        If they differ.
    """
    known = _known(original, path.parent)
    if known is not None and path.name == original.name:
        _compare(original, known, path.stat().st_size, lambda: sha256_of(path), path)


# -- one attempt


def _attempt(original: Original, file: BinaryIO, part: Path, report: Report | None) -> None:
    """Ask for what is left of the file, and append it to the part; returns once the part is complete."""
    have = file.seek(0, os.SEEK_END)
    meta = _read_json(_meta(part))
    validator = meta.get("etag") or meta.get("last_modified")
    if have and (meta.get("url") != original.url or not (validator or original.sha256)):
        have = _start_over(file, part)
    headers = {"User-Agent": f"rarestream/{__version__}", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
        if validator:
            headers["If-Range"] = validator
    try:
        with _opener().open(urllib.request.Request(original.url, headers=headers), timeout=TIMEOUT) as answer:
            total, have = _begin(original, answer, file, part, meta, have)
            _append(original, answer, file, have, total, report)
    except urllib.error.HTTPError as error:
        with error:
            _refused(original, error, have, part, meta)
    except (OSError, http.client.HTTPException) as error:
        if isinstance(error, DownloadError | OutputError):
            raise
        raise _network_error(original, part.parent, error) from None


def _begin(
    original: Original, answer: Any, file: BinaryIO, part: Path, meta: dict[str, Any], have: int
) -> tuple[int | None, int]:
    """Decide whether the answer continues the part or is the whole file; return the size of the whole, and what is
    there of it."""
    headers: Message = answer.headers
    encoding = headers.get("Content-Encoding", "identity")
    if encoding != "identity":
        raise DownloadError(f"{original.url}: the server sends it {encoding}-encoded, which was not asked for.")
    length = _number(headers.get("Content-Length"))
    if answer.status == 206:
        start, total = _range(headers.get("Content-Range", ""))
        etag, before = _strong(headers.get("ETag")), meta.get("etag")
        if start != have or meta.get("total") not in (None, total) or (etag and before and etag != before):
            raise _StaleError("the server sent another part than was asked for")
    else:  # the whole file: the first time, of a server without ranges, or because it has changed
        total, have = length, _start_over(file, part)
        found = {
            "url": original.url,
            "etag": _strong(headers.get("ETag")),
            "last_modified": headers.get("Last-Modified", ""),
            "total": total,
        }
        write_whole(_meta(part), json.dumps(found).encode())
    if original.bytes is not None and total is not None and total != original.bytes:
        _start_over(file, part)
        raise DownloadError(_another(original, f"{total:,} bytes", f"{original.bytes:,}"))
    if total is not None:
        _check_space(part, total - have)
    return total, have


def _append(
    original: Original, answer: Any, file: BinaryIO, have: int, total: int | None, report: Report | None
) -> None:
    if report is not None:
        report(DownloadProgress(original.name, have, total))
    while piece := answer.read(PIECE):
        with _write_errors(file):
            file.write(piece)
            file.flush()
        have += len(piece)
        if total is not None and have > total:
            raise _StaleError("the server sent more than it said it would")
        if report is not None:
            report(DownloadProgress(original.name, have, total))
    if total is not None and have < total:
        raise _RetryError(f"the connection ended after {have:,} of {total:,} bytes")


def _refused(original: Original, error: urllib.error.HTTPError, have: int, part: Path, meta: dict[str, Any]) -> None:
    """Decide what a status other than success means; return if the part is complete."""
    if error.code == 416:  # there is nothing after the part
        _, total = _range(error.headers.get("Content-Range", ""))
        if total == have and meta.get("total") == total:
            return
        raise _StaleError("the part is longer than the file")
    words = " ".join(str(error.reason).split()).rstrip(".:")  # those of too many redirects are several lines
    reason = f"the server answers {error.code} ({plain(words)})"
    if error.code in RETRIED:
        wait = _number(error.headers.get("Retry-After"))
        raise _RetryError(reason, None if wait is None else float(wait))
    raise DownloadError(_by_hand(original, part.parent, reason))


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows few redirects, and none to an address that is less safe: from https to http, or to a file."""

    max_redirections = MOST_REDIRECTS

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        to = newurl.partition(":")[0].lower()
        if to != "https" and not (to == "http" and req.type == "http"):
            raise DownloadError(f"{req.full_url}: is redirected to {plain(newurl)}, which is not https.")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _opener() -> urllib.request.OpenerDirector:
    return urllib.request.build_opener(_Redirects())


def _network_error(original: Original, folder: Path, error: Exception) -> Exception:
    reason = getattr(error, "reason", error)
    if isinstance(reason, ssl.SSLCertVerificationError):
        return DownloadError(
            _by_hand(original, folder, f"its certificate cannot be verified ({reason.verify_message})")
        )
    if isinstance(reason, socket.gaierror):
        return _RetryError("its name cannot be resolved", most=OFFLINE)
    if isinstance(reason, TimeoutError):
        return _RetryError(f"it was silent for {TIMEOUT:.0f} seconds")
    return _RetryError(str(getattr(reason, "strerror", None) or reason or type(error).__name__).lower())


# -- the part and the complete file


@contextlib.contextmanager
def _opened(part: Path) -> Iterator[BinaryIO]:
    """Open the part, which no other process may write."""
    try:
        part.parent.mkdir(parents=True, exist_ok=True)
        file = os.fdopen(os.open(part, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666), "r+b")
    except OSError as error:
        raise OutputError(f"{plain(part)}: cannot be written ({error.strerror}). Choose another folder.") from None
    with file:
        try:
            lock_file(file.fileno())
        except BlockingIOError:
            raise DownloadError(
                f"{plain(part)}: another process is downloading this file. Wait until it is done."
            ) from None
        except OSError:
            pass  # a file system without locks
        try:
            yield file
        finally:
            if not file.seek(0, os.SEEK_END):  # nothing came
                with contextlib.suppress(OSError):  # Windows does not remove open files
                    part.unlink()


def _start_over(file: BinaryIO, part: Path) -> int:
    """Empty the part; what was known of it is forgotten first."""
    _meta(part).unlink(missing_ok=True)
    file.seek(0)
    file.truncate()
    return 0


def _check_space(part: Path, needed: int) -> None:
    free = shutil.disk_usage(part.parent).free
    if free < needed + SPARE:
        raise OutputError(
            f"{plain(part)}: {_megabytes(needed)} are still to come, and {_megabytes(free)} are free on this disk. "
            "Free some space, or choose another folder."
        )


@contextlib.contextmanager
def _write_errors(file: BinaryIO) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OutputError(
            f"{plain(file.name)}: could not be written ({error.strerror}). Free some space, and run this again: the "
            "download continues."
        ) from None


def _check_complete(original: Original, folder: Path, file: BinaryIO, part: Path) -> None:
    """Compare a complete file with what is known of it; the first time, record what it is."""
    size, digest = file.seek(0, os.SEEK_END), sha256_of(part)
    known = _known(original, folder)
    if known is not None:
        try:
            _compare(original, known, size, lambda: digest)
        except DownloadError:
            _start_over(file, part)  # continuing it would end in the same
            raise
    if known is None:
        record = {"url": original.url, "bytes": size, "sha256": digest}
        write_whole(_record(folder, original), (json.dumps(record, indent=1) + "\n").encode())


class _Known(NamedTuple):
    bytes: int | None
    sha256: str
    recorded: Path | None  # where the first download was recorded; None: known without one


def _known(original: Original, folder: Path) -> _Known | None:
    if original.sha256 is not None:
        return _Known(original.bytes, original.sha256, None)
    path = _record(folder, original)
    found = _read_json(path)
    return _Known(found["bytes"], found["sha256"], path) if {"bytes", "sha256"} <= found.keys() else None


def _compare(original: Original, known: _Known, size: int, digest: Callable[[], str], path: Path | None = None) -> None:
    if known.bytes is not None and size != known.bytes:
        message = _another(original, f"{size:,} bytes", f"{known.bytes:,}", path, known.recorded)
    elif (found := digest()) != known.sha256:
        message = _another(original, f"the SHA-256 {found}", known.sha256, path, known.recorded)
    else:
        return
    raise DownloadError(message)


def _meta(part: Path) -> Path:
    return part.with_name(f"{part.name}.json")


def _record(folder: Path, original: Original) -> Path:
    return folder / f"{original.name}.sha256.json"


def _read_json(path: Path) -> dict[str, Any]:
    """Return the object that a file holds; an empty one if there is none."""
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.strip().isdecimal() else None


def _strong(etag: str | None) -> str:
    """Return an ETag; an empty text for a weak one, which does not promise the same bytes."""
    return "" if etag is None or etag.startswith("W/") else etag


def _range(text: str) -> tuple[int | None, int | None]:
    """Return the start and the size of the whole of a Content-Range: bytes 5-9/10, bytes */10."""
    found = re.fullmatch(r"bytes (?:(\d+)-\d+|\*)/(\d+|\*)", text.strip())
    if found is None:
        return None, None
    return _number(found[1]), _number(found[2])


# -- messages


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"


def _unreachable(original: Original, folder: Path, reason: str, have: int) -> str:
    kept = f" {_megabytes(have)} of it are kept, and continued next time." if have else ""
    return _by_hand(original, folder, reason) + kept


def _by_hand(original: Original, folder: Path, reason: str) -> str:
    return (
        f"{original.url}: cannot be downloaded: {reason}. Without a connection, fetch it on another machine and put it "
        f"into the folder {plain(folder)} as {original.name}."
    )


def _another(
    original: Original, found: str, expected: str, path: Path | None = None, recorded: Path | None = None
) -> str:
    what = original.url if path is None else plain(path)
    if recorded is None:
        return f"{what}: has {found}, where {expected} is right. Fetch it again, or from elsewhere."
    return (
        f"{what}: has {found}, where the first download had {expected}: the file has changed. If that is right, remove "
        f"{plain(recorded)}."
    )
