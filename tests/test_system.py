"""The machine: its cores, its memory, and files that appear whole or not at all."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from rarestream import system
from rarestream.errors import ModelFileError, OutputError
from rarestream.model import Model
from rarestream.system import check_writable, whole, write_whole
from tests import children

ROOT = Path(__file__).parents[1]

KILLED = """
import os, sys
from rarestream.system import whole
with whole(sys.argv[1]) as file:
    file.write(b"half of it")
    print("ready", flush=True)
    sys.stdin.read()
"""


def names(folder):
    return sorted(entry.name for entry in folder.iterdir())


def test_a_file_is_there_whole_once_the_block_ends(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")
    with whole(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert names(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, BrokenPipeError])
def test_an_error_within_leaves_what_was_there(tmp_path, error):
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")

    def fail() -> None:
        with whole(path) as file:
            file.write(b"new")
            raise error

    with pytest.raises(error):
        fail()
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["a.txt"]


def test_a_full_disk_is_said_and_leaves_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(
        OutputError, match=r"a.txt: could not be saved \(No space left on device\); the file was not made"
    ):
        write_whole(path, b"new")
    with pytest.raises(ModelFileError, match="could not be saved"):
        Model().save(path)
    assert names(tmp_path) == []


def test_a_link_stays_and_what_it_points_to_is_written(tmp_path):
    (tmp_path / "there").mkdir()
    target, link, dangling = tmp_path / "there" / "a.txt", tmp_path / "link", tmp_path / "dangling"
    target.write_bytes(b"old")
    link.symlink_to("there/a.txt")
    dangling.symlink_to("there/b.txt")
    write_whole(link, b"new")
    write_whole(dangling, b"new")
    assert link.is_symlink() and dangling.is_symlink()
    assert target.read_bytes() == (tmp_path / "there" / "b.txt").read_bytes() == b"new"
    assert names(tmp_path / "there") == ["a.txt", "b.txt"]


def test_the_mode_of_the_file_stays(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")
    path.chmod(0o600)
    with whole(path):
        (aside,) = tmp_path.glob(".*.part")
        assert aside.stat().st_mode & 0o777 == 0o600
    assert path.stat().st_mode & 0o777 == 0o600


def test_names_as_long_as_the_file_system_has_them_are_fine_and_longer_ones_refused_at_once(tmp_path):
    longest = tmp_path / ("x" * 255)
    check_writable(longest)
    write_whole(longest, b"new")
    assert longest.read_bytes() == b"new"
    for name in ("x" * 256, "\N{SNOWMAN}" * 100):
        with pytest.raises(OutputError, match="cannot be written"):
            check_writable(tmp_path / name)
    write_whole(tmp_path / ("\N{SNOWMAN}" * 80), b"new")
    assert len(names(tmp_path)) == 2


def test_what_cannot_be_written_is_known_before(tmp_path):
    circle = tmp_path / "circle"
    circle.symlink_to(circle)
    (tmp_path / "file").write_bytes(b"")
    for path, said in (
        (tmp_path, "is a directory"),
        ("/dev/null", "is not a regular file"),
        (circle, "cannot be written"),
        (tmp_path / "no" / "a.txt", "cannot be written"),
        (tmp_path / "file" / "a.txt", "cannot be written"),
    ):
        with pytest.raises(OutputError, match=said):
            check_writable(path)
        with pytest.raises(OutputError, match=said):
            write_whole(path, b"new")
    assert names(tmp_path) == ["circle", "file"]


def test_what_a_killed_process_has_left_goes_with_the_next_write(tmp_path):
    path, other = tmp_path / "a.txt", tmp_path / "b.txt"
    with children.Child([sys.executable, "-c", KILLED, path], stdin=subprocess.PIPE) as process:
        process.line()
        write_whole(path, b"another writer")  # leaves the part of the one that still writes
        assert len(names(tmp_path)) == 2
        process.send_signal(signal.SIGKILL)
        process.communicate()
    write_whole(other, b"another file")
    assert len(names(tmp_path)) == 3
    check_writable(path)
    assert names(tmp_path) == ["a.txt", "b.txt"]
    assert path.read_bytes() == b"another writer"


def test_only_parts_of_the_same_file_are_removed(tmp_path):
    kept = [".a.txt.part", ".a.txt-12345678-0123456789abcdef.part", ".a.txt-0.part", "a.txt.part"]
    for name in kept:
        (tmp_path / name).write_bytes(b"mine")
    write_whole(tmp_path / "a.txt", b"new")
    assert names(tmp_path) == sorted([*kept, "a.txt"])


def test_many_writers_of_one_file_do_not_disturb_each_other(tmp_path):
    path, failed = tmp_path / "a.txt", []
    until = time.monotonic() + 1

    def write(number: int) -> None:
        try:
            while time.monotonic() < until:
                write_whole(path, bytes([number]) * 1000)
        except Exception as error:  # pragma: no cover
            failed.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert len(set(path.read_bytes())) == 1
    assert names(tmp_path) == ["a.txt"]


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine with 8 GB, of which 3 GB are available; `set(name, text)` says what a file of the system holds."""
    cgroups = tuple((f"{tmp_path}/{version}.max", f"{tmp_path}/{version}.used") for version in ("two", "one"))
    monkeypatch.setattr(system, "CGROUPS", cgroups)
    monkeypatch.setattr(system, "MEMINFO", f"{tmp_path}/meminfo")
    monkeypatch.setattr(os, "sysconf", lambda name: {"SC_PHYS_PAGES": 2_000_000, "SC_PAGE_SIZE": 4000}[name])

    def put(name, text):
        (tmp_path / name).write_text(text)

    put("meminfo", "MemTotal: 7812500 kB\nMemAvailable: 2929687 kB\n")
    return put


def test_the_memory_of_a_machine_without_limits(machine):
    assert system.machine_memory() == 8_000_000_000
    assert system.free_memory() == 2929687 * 1024
    machine("two.max", "max\n")  # a container without a limit
    assert system.machine_memory() == 8_000_000_000


@pytest.mark.parametrize("version", ["one", "two"])
def test_the_memory_of_a_container(machine, version):
    machine(f"{version}.max", "2000000000\n")
    assert system.machine_memory() == system.free_memory() == 2_000_000_000
    machine(f"{version}.used", "500000000\n")
    assert system.machine_memory() == 2_000_000_000
    assert system.free_memory() == 1_500_000_000
    machine(f"{version}.used", "2000004096\n")
    assert system.free_memory() == 0


def test_a_machine_that_does_not_tell_what_is_free(machine):
    machine("meminfo", "")
    assert system.free_memory() == system.UNKNOWN_FREE


def test_cores_are_those_this_process_may_use():
    assert system.cores() == len(os.sched_getaffinity(0))
    code = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); from rarestream.system import cores; print(cores())"
    assert children.run([sys.executable, "-c", code]).stdout == "1\n"


EVERYTHING = """
import hashlib, os, sys
from pathlib import Path
from tests import other_systems
getattr(other_systems, sys.argv[1], lambda: None)()
if sys.argv[1] == "windows":
    from rarestream import system
    assert system.fcntl is None
    system.WINDOWS = True

import numpy as np
from rarestream import Model, read, system
from rarestream.cli import main
from rarestream.learners.state import zeros
from rarestream.study.store import Store, TrialsError

if sys.argv[1] != "linux":
    assert system.cores() == os.cpu_count()
    assert system.free_memory() == system.UNKNOWN_FREE
assert system.machine_memory() >= 1 << 28
assert not zeros((1 << 20,), np.float64, few=True).any()

folder = Path(sys.argv[2])
rows = b"".join(b"%d %d:1 %d:0.5\\n" % (i % 3 == 0, i % 7 + 1, 10 + i % 3) for i in range(2000))
(folder / "rows.svm").write_bytes(rows)
for _ in range(2):  # the second time, it replaces a model
    model = Model()
    for block in read(folder / "rows.svm"):
        model.learn(block)
    model.save(folder / "model.rare")
loaded = Model.load(folder / "model.rare")
loaded.save(folder / "model.rare")  # and here the one that it was loaded from
reader, writer = os.pipe()
os.write(writer, rows[: rows.index(b"\\n", 5000) + 1])
os.close(writer)
with os.fdopen(reader, "rb", buffering=0) as pipe:
    piped = np.concatenate([loaded.score(block) for block in read(pipe)])
system.check_writable(folder / "model.rare")

with Store(folder / "results.jsonl") as store:
    store.append({"trial": 1})
    try:
        Store(folder / "results.jsonl")
    except TrialsError as error:
        assert "another run writes to it" in str(error)
    else:
        raise AssertionError("locked twice")

for words in (["train", "rows.svm", "-o", "cli.rare", "--shuffle", "1"], ["predict", "cli.rare", "rows.svm", "-o", "scores.txt"]):
    try:
        sys.argv = ["rarestream", *(str(folder / word) if "." in word else word for word in words)]
        main()
    except SystemExit as end:
        assert not end.code, words
for path in sorted(folder.iterdir()):
    print(path.name, hashlib.sha256(path.read_bytes()).hexdigest())
print(hashlib.sha256(piped.tobytes()).hexdigest())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="imitates other systems on Linux")
@pytest.mark.parametrize("name", ["macos", "windows"])
def test_everything_works_without_what_other_systems_lack(tmp_path, name):
    printed = {}
    for one in ("linux", name):
        (tmp_path / one).mkdir()
        done = children.run([sys.executable, "-c", EVERYTHING, one, tmp_path / one], check=True, cwd=ROOT)
        printed[one] = done.stdout.replace(str(tmp_path / one), "")
    assert printed[name] == printed["linux"]
    assert "cli.rare" in printed[name]


def test_without_locks_files_are_removed_that_a_killed_process_left_an_hour_ago(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    with whole(path) as file:
        file.write(b"old")
        (left,) = tmp_path.iterdir()
    old, new = (tmp_path / f"{left.name[:-21]}{digit * 16}.part" for digit in "ab")
    for one in (old, new):
        one.write_bytes(b"half of it")
    os.utime(old, (1, 1))
    monkeypatch.setattr(system, "fcntl", None)
    write_whole(path, b"new")
    assert path.read_bytes() == b"new"
    assert names(tmp_path) == sorted([new.name, "a.txt"])
