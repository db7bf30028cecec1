"""Downloads: complete or not there, continued where they stopped, and never mixed of two versions."""

from __future__ import annotations

import hashlib
import json
import shutil
import signal
import socket
import sys
import urllib.request
from pathlib import Path

import numpy as np
import pytest

from rarestream.datasets import DownloadError
from rarestream.datasets import download as module
from rarestream.datasets.download import DownloadProgress, check, download
from rarestream.errors import OutputError
from tests import children
from tests.datasets.conftest import Server

NO_PAUSES = (0.0, 0.0, 0.0)
CONTENT = np.random.default_rng(0).bytes(1_000_000)


@pytest.fixture
def serving(server: Server) -> Server:
    server.content = CONTENT
    return server


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def part_left(serving: Server, folder: Path, size: int) -> None:
    """A part as a download leaves it that was cut off and given up."""
    serving.cuts = [size, 0]
    with pytest.raises(
        DownloadError, match=r"the connection ended after 300,000 of 1,000,000 bytes.* 0.3 MB of it are"
    ):
        download(serving.original(), folder, pauses=())
    serving.asked.clear()


def test_a_file_is_downloaded_recorded_and_reported(serving, tmp_path):
    told: list[DownloadProgress] = []
    path = download(serving.original(), tmp_path / "new" / "folder", told.append)
    assert path == tmp_path / "new" / "folder" / "rows.bz2"
    assert path.read_bytes() == CONTENT
    assert files(path.parent) == {"rows.bz2", "rows.bz2.sha256.json"}
    record = json.loads((path.parent / "rows.bz2.sha256.json").read_text())
    assert record == {"url": serving.original().url, "bytes": len(CONTENT), "sha256": digest(CONTENT)}
    assert told[0] == ("rows.bz2", 0, len(CONTENT)) and told[-1] == ("rows.bz2", len(CONTENT), len(CONTENT))
    assert serving.asked[0]["Accept-Encoding"] == "identity"


def test_a_cut_connection_is_continued_where_it_ended(serving, tmp_path):
    serving.cuts = [300_000, 200_000]
    assert download(serving.original(), tmp_path, pauses=NO_PAUSES).read_bytes() == CONTENT
    assert serving.starts == [None, "bytes=300000-", "bytes=500000-"]
    assert {headers.get("If-Range") for headers in serving.asked[1:]} == {'"first"'}


def test_a_part_is_continued_by_the_next_run(serving, tmp_path):
    part_left(serving, tmp_path, 300_000)
    assert files(tmp_path) == {"rows.bz2.part", "rows.bz2.part.json"}
    told: list[DownloadProgress] = []
    assert download(serving.original(), tmp_path, told.append).read_bytes() == CONTENT
    assert serving.starts == ["bytes=300000-"]
    assert told[0].bytes == 300_000


def test_a_date_serves_where_there_is_no_etag(serving, tmp_path):
    serving.etag, serving.date = 'W/"weak"', "Mon, 02 Mar 2020 10:00:00 GMT"
    serving.cuts = [300_000]
    assert download(serving.original(), tmp_path, pauses=NO_PAUSES).read_bytes() == CONTENT
    assert serving.asked[1]["If-Range"] == serving.date and serving.starts[1] == "bytes=300000-"


@pytest.mark.parametrize("known", [False, True])
def test_without_a_mark_of_the_version_only_a_checksum_allows_to_continue(serving, tmp_path, known):
    serving.etag = None
    serving.cuts = [300_000]
    original = serving.original(sha256=digest(CONTENT)) if known else serving.original()
    assert download(original, tmp_path, pauses=NO_PAUSES).read_bytes() == CONTENT
    assert serving.starts == [None, "bytes=300000-" if known else None]


def test_a_server_without_ranges_sends_it_again(serving, tmp_path):
    serving.ranges = False
    serving.cuts = [300_000, 600_000]
    assert download(serving.original(), tmp_path, pauses=NO_PAUSES).read_bytes() == CONTENT
    assert len(serving.asked) == 3


@pytest.mark.parametrize("honest", [True, False])
def test_a_file_that_changed_meanwhile_is_fetched_from_its_start(serving, tmp_path, honest):
    part_left(serving, tmp_path, 300_000)
    serving.content, serving.etag, serving.if_range = CONTENT[::-1], '"second"', honest
    assert download(serving.original(), tmp_path, pauses=NO_PAUSES).read_bytes() == CONTENT[::-1]
    # One that ignores If-Range sends the end of another file: its ETag tells.
    assert serving.starts == (["bytes=300000-"] if honest else ["bytes=300000-", None])


def test_a_file_of_another_size_is_not_continued(serving, tmp_path):
    part_left(serving, tmp_path, 300_000)
    serving.content, serving.if_range = CONTENT + b"more", False  # and the same ETag
    assert download(serving.original(), tmp_path, pauses=NO_PAUSES).read_bytes() == CONTENT + b"more"


def test_a_part_that_starts_elsewhere_is_not_appended(serving, tmp_path):
    part_left(serving, tmp_path, 300_000)
    serving.wrong_start = 7
    assert download(serving.original(), tmp_path, pauses=NO_PAUSES).read_bytes() == CONTENT


def test_a_part_of_another_address_is_not_continued(serving, tmp_path):
    part_left(serving, tmp_path, 300_000)
    other = serving.original()._replace(url=f"{serving.address}/other/rows.bz2")
    assert download(other, tmp_path).read_bytes() == CONTENT
    assert serving.starts == [None]


def test_a_part_that_is_complete_only_gets_its_name(serving, tmp_path):
    part_left(serving, tmp_path, 300_000)
    (tmp_path / "rows.bz2.part").write_bytes(CONTENT)
    assert download(serving.original(), tmp_path).read_bytes() == CONTENT
    assert serving.starts == ["bytes=1000000-"]


def test_a_part_that_is_longer_than_the_file_is_dropped(serving, tmp_path):
    part_left(serving, tmp_path, 300_000)
    (tmp_path / "rows.bz2.part").write_bytes(CONTENT + b"more")
    assert download(serving.original(), tmp_path, pauses=NO_PAUSES).read_bytes() == CONTENT


def test_a_file_of_unknown_length_is_complete_where_it_ends(serving, tmp_path):
    serving.lengths = False
    told: list[DownloadProgress] = []
    assert download(serving.original(), tmp_path, told.append).read_bytes() == CONTENT
    assert told[-1].total is None


def test_a_wrong_checksum_is_refused_and_nothing_stays(serving, tmp_path):
    original = serving.original(sha256="0" * 64, bytes=len(CONTENT))
    with pytest.raises(DownloadError, match=rf"has the SHA-256 {digest(CONTENT)}, where 0000.* is right"):
        download(original, tmp_path, pauses=NO_PAUSES)
    assert files(tmp_path) == set()


def test_a_wrong_size_is_refused_before_it_is_fetched(serving, tmp_path):
    with pytest.raises(DownloadError, match="has 1,000,000 bytes, where 5 is right"):
        download(serving.original(sha256="0" * 64, bytes=5), tmp_path, pauses=NO_PAUSES)
    assert files(tmp_path) == set()


def test_another_file_than_the_first_download_is_refused(serving, tmp_path):
    original = serving.original()
    path = download(original, tmp_path)
    check(original, path)
    path.unlink()
    serving.content = CONTENT[:-1] + b"x"
    with pytest.raises(
        DownloadError, match=r"the first download had .*: the file has changed. If that is right, remove"
    ):
        download(original, tmp_path)
    assert files(tmp_path) == {"rows.bz2.sha256.json"}
    (tmp_path / "rows.bz2.sha256.json").unlink()
    assert download(original, tmp_path).read_bytes() == serving.content


def test_a_file_that_was_changed_on_the_disk_is_noticed(serving, tmp_path):
    path = download(serving.original(), tmp_path)
    path.write_bytes(CONTENT[:-1] + b"x")
    with pytest.raises(DownloadError, match=r"rows.bz2: has the SHA-256"):
        check(serving.original(), path)
    path.write_bytes(CONTENT[:-1])
    with pytest.raises(DownloadError, match=r"rows.bz2: has 999,999 bytes, where the first download had 1,000,000"):
        check(serving.original(), path)


@pytest.mark.parametrize("status", [404, 403, 410])
def test_a_server_that_does_not_have_it_is_asked_once(serving, tmp_path, status):
    serving.statuses = [(status, {})]
    with pytest.raises(DownloadError) as error:
        download(serving.original(), tmp_path, pauses=NO_PAUSES)
    message = str(error.value)
    assert f"{serving.address}/rows.bz2: cannot be downloaded: the server answers {status}" in message
    assert f"put it into the folder {tmp_path} as rows.bz2." in message
    assert len(serving.asked) == 1
    assert files(tmp_path) == set()


def test_a_busy_server_is_asked_again(serving, tmp_path, monkeypatch):
    slept: list[float] = []
    monkeypatch.setattr(module.time, "sleep", slept.append)
    serving.statuses = [(503, {}), (500, {}), (429, {"Retry-After": "7"}), (503, {"Retry-After": "100000"})]
    assert download(serving.original(), tmp_path).read_bytes() == CONTENT
    assert slept == [1.0, 2.0, 7.0, 60.0]


def test_in_the_end_it_gives_up(serving, tmp_path, monkeypatch):
    slept: list[float] = []
    monkeypatch.setattr(module.time, "sleep", slept.append)
    serving.statuses = [(503, {})] * 9
    with pytest.raises(DownloadError, match=r"the server answers 503 \(Service Unavailable\)"):
        download(serving.original(), tmp_path)
    assert slept == list(module.PAUSES)


def test_without_a_server_the_message_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with socket.socket() as nobody:  # bound, but not listening
        nobody.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}/rows.bz2"
        with pytest.raises(DownloadError) as error:
            download(Server().original()._replace(url=url), tmp_path, pauses=NO_PAUSES)
    assert str(error.value) == (
        f"{url}: cannot be downloaded: connection refused. Without a connection, fetch it on another machine and put it "
        f"into the folder {tmp_path} as rows.bz2."
    )


def test_a_server_that_falls_silent_is_asked_for_the_rest(serving, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "TIMEOUT", 0.2)
    serving.stall = 400_000
    assert download(serving.original(), tmp_path, pauses=()).read_bytes() == CONTENT
    assert len(serving.asked) >= 3 and None not in serving.starts[1:]
    (tmp_path / "rows.bz2").unlink()
    serving.stall = 0
    with pytest.raises(DownloadError, match=r"it was silent for 0 seconds"):
        download(serving.original(), tmp_path, pauses=())


def test_redirects_are_followed_a_few_times(serving, tmp_path):
    there = {"Location": f"{serving.address}/elsewhere"}
    serving.statuses = [(302, there), (307, {"Location": "/relative"})]
    assert download(serving.original(), tmp_path).read_bytes() == CONTENT
    (tmp_path / "rows.bz2").unlink()
    serving.statuses = [(302, {"Location": f"{serving.address}/{number}"}) for number in range(50)]
    serving.asked.clear()
    with pytest.raises(DownloadError, match="the server answers 302"):
        download(serving.original(), tmp_path, pauses=NO_PAUSES)
    assert len(serving.asked) == 1 + module.MOST_REDIRECTS


@pytest.mark.parametrize("to", ["file:///etc/passwd", "ftp://127.0.0.1/x"])
def test_redirects_to_anything_but_the_web_are_refused(serving, tmp_path, to):
    serving.statuses = [(302, {"Location": to})]
    with pytest.raises(DownloadError):
        download(serving.original(), tmp_path, pauses=())


def test_redirects_from_https_stay_there():
    redirects, safe = module._Redirects(), urllib.request.Request("https://a.org/rows")
    assert redirects.redirect_request(safe, None, 302, "", {}, "https://b.org/rows") is not None
    with pytest.raises(
        DownloadError, match=r"https://a.org/rows: is redirected to http://b.org/rows, which is not https"
    ):
        redirects.redirect_request(safe, None, 302, "", {}, "http://b.org/rows")


def test_an_encoding_that_was_not_asked_for_is_refused(serving, tmp_path):
    serving.statuses = [(200, {"Content-Encoding": "gzip"})]
    with pytest.raises(DownloadError, match="gzip-encoded"):
        download(serving.original(), tmp_path, pauses=NO_PAUSES)


def test_a_full_disk_is_noticed_before_it_is_full(serving, tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: shutil._ntuple_diskusage(10**9, 10**9, 500_000))
    with pytest.raises(OutputError, match=r"1.0 MB are still to come, and 0.5 MB are free on this disk"):
        download(serving.original(), tmp_path)
    assert "rows.bz2" not in files(tmp_path)


def test_a_folder_that_cannot_be_made_is_an_error(serving, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot be written"):
        download(serving.original(), tmp_path / "file" / "folder")


def test_two_processes_do_not_download_the_same_file(serving, tmp_path):
    def again(now: DownloadProgress) -> None:
        with pytest.raises(DownloadError, match="another process is downloading this file"):
            download(serving.original(), tmp_path)

    assert download(serving.original(), tmp_path, again).read_bytes() == CONTENT


def test_ctrl_c_leaves_a_part_that_the_next_run_continues(serving, tmp_path):
    code = (
        "import sys, pathlib; from rarestream.datasets.catalogue import Original\n"
        "from rarestream.datasets.download import download\n"
        "def wait(now):\n"
        "    print(now.bytes, flush=True)\n"
        "    if now.bytes > 400_000: sys.stdin.read()\n"
        "download(Original('rows.bz2', sys.argv[1]), pathlib.Path(sys.argv[2]), wait)"
    )
    command = [sys.executable, "-c", code, serving.original().url, tmp_path]
    with children.Child(command, stdin=children.subprocess.PIPE) as child:
        for line in child.lines():
            if int(line) > 400_000:
                break
        child.send_signal(signal.SIGINT)
        child.communicate()
    size = (tmp_path / "rows.bz2.part").stat().st_size
    assert 400_000 < size < len(CONTENT)
    serving.asked.clear()
    assert download(serving.original(), tmp_path).read_bytes() == CONTENT
    assert serving.starts == [f"bytes={size}-"]
