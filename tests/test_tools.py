"""The scripts in tools/ that `make` calls: extras, progress, reproduction, wheels."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path

import pytest

from rarestream.reproduce.experiments import check_trials
from tools import extras, progress, reproduction, wheels

HOME = Path(__file__).parent.parent


def test_extras_that_name_other_extras_are_written_out_and_each_requirement_comes_once():
    known = {"a": ["x>=1", "own[b, c]"], "b": ["y", "x>=1"], "c": ["own[a]"]}
    assert extras.requirements("own", ["numpy"], known, ["a"]) == ["numpy", "x>=1", "y"]


def test_an_extra_that_does_not_exist_is_an_error_that_names_those_that_do():
    with pytest.raises(KeyError, match="no extra 'tset'; pyproject.toml has: docs, test"):
        extras.requirements("own", [], {"test": [], "docs": []}, ["tset"])


def test_no_extra_of_the_project_requires_the_package_itself(capsys):
    project = tomllib.loads((HOME / "pyproject.toml").read_text("utf-8"))["project"]
    assert extras.main(list(project["optional-dependencies"])) == 0
    lines = capsys.readouterr().out.splitlines()
    assert set(project["dependencies"]) < set(lines)
    assert not [line for line in lines if line.startswith("rarestream")]


@pytest.mark.parametrize(
    "line, expected",
    [
        ("  [3/35] Building CXX object CMakeFiles/_native.dir/native/kernels_avx2.cpp.o\n", "[3/35] kernels_avx2.cpp"),
        (
            "[35/35] Linking CXX shared module _native.cpython-312-x86_64-linux-gnu.so",
            "[35/35] _native.cpython-312-x86_64-linux-gnu.so",
        ),
        ("  -- Detecting CXX compile features - done\n", None),
        ("  [1/1] Re-running CMake\n", None),
    ],
)
def test_progress_shows_one_line_for_each_compiled_file(line: str, expected: str | None):
    assert progress.step(line) == expected


def test_a_command_that_fails_shows_all_that_it_printed_and_keeps_its_status(capfd):
    script = "import sys; print('[1/2] Building CXX object x/a.cpp.o'); print('the reason'); sys.exit(3)"
    assert progress.main([sys.executable, "-c", script]) == 3
    printed = capfd.readouterr()
    assert "[1/2] a.cpp" in printed.out and "the reason" in printed.err


def trial(method="ftrl_auc", number=0, **other):
    row = {"dataset": "imdb", "ratio": None, "mode": "corrected", "method": method, "grid": "full", "trial": number}
    return {**row, "source": "ab", **other}


def test_trials_are_packed_once_each_in_order_and_into_the_same_bytes(tmp_path):
    kept = tmp_path / "kept.jsonl.xz"
    rows = [trial(number=2), trial(ratio=0.1), trial(number=1), trial("auto", grid="none"), trial(grid="quick")]
    one, two = tmp_path / "one", tmp_path / "two"
    for folder, some in ((one, rows), (two, [trial(number=1, seconds=3), *reversed(rows[:2])])):
        folder.mkdir()
        (folder / "results.jsonl").write_bytes(reproduction.lines(some) + b'{"torn": ')
    assert reproduction.pack(one, kept) == 4  # without the coarse grid
    first = kept.read_bytes()
    assert reproduction.pack(one, kept) == 4 and kept.read_bytes() == first
    assert reproduction.pack(two, kept) == 4
    found = [(row["method"], row["ratio"], row["trial"], row.get("seconds")) for row in reproduction.kept_rows(kept)]
    assert found == [
        ("auto", None, 0, None),
        ("ftrl_auc", None, 1, 3),  # as the folder has it
        ("ftrl_auc", None, 2, None),
        ("ftrl_auc", 0.1, 0, None),
    ]


def test_kept_trials_are_unpacked_beside_those_of_the_folder(tmp_path):
    kept = tmp_path / "kept.jsonl.xz"
    assert reproduction.unpack(tmp_path / "empty", kept) == 0
    (tmp_path / "empty" / "results.jsonl").write_bytes(reproduction.lines([trial()]))
    reproduction.pack(tmp_path / "empty", kept)
    (tmp_path / "empty" / "results.jsonl").write_bytes(reproduction.lines([trial(number=1)]))
    assert reproduction.unpack(tmp_path / "empty", kept) == 2
    assert [row["trial"] for row in reproduction.folder_rows(tmp_path / "empty")] == [0, 1]


def test_the_kept_trials_are_trials_of_the_paper():
    rows = reproduction.kept_rows(reproduction.KEPT)
    check_trials(rows, reproduction.KEPT)
    assert rows and rows == reproduction.merged(rows)


def test_pythons_without_headers_previews_other_implementations_and_old_ones_are_left_out():
    def said(
        name="cpython", version=(3, 12, 1), level="final", free_threaded=False, headers=True
    ) -> wheels.Python | None:
        return wheels.python_of("p", json.dumps([name, version, level, free_threaded, headers]))

    assert said() == wheels.Python("p", (3, 12, 1))
    for answer in (
        said("pypy"),
        said(version=(3, 10, 9)),
        said(level="beta"),
        said(free_threaded=True),
        said(headers=False),
    ):
        assert answer is None
    assert wheels.python_of("p", "pyenv: command not found") is None


def test_of_each_minor_version_the_newest_python_is_taken():
    found = [
        wheels.Python("a", (3, 12, 1)),
        wheels.Python("b", (3, 11, 9)),
        wheels.Python("c", (3, 12, 10)),
        wheels.Python("d", (3, 11, 9)),
    ]
    assert [(python.path, python.tag) for python in wheels.newest(found)] == [("b", "cp311"), ("c", "cp312")]


def test_a_build_for_another_processor_says_so_to_cmake_and_to_the_name_of_the_module():
    settings, variables = wheels.build_settings(wheels.Python("p", (3, 12, 1)), "riscv64", Path("bin"))
    assert settings["cmake.define.CMAKE_SYSTEM_PROCESSOR"] == "riscv64"
    assert variables == {
        "_PYTHON_HOST_PLATFORM": "linux-riscv64",
        "SETUPTOOLS_EXT_SUFFIX": ".cpython-312-riscv64-linux-gnu.so",
    }


def test_stray_files_and_missing_files_of_a_wheel_are_named():
    good = [
        "rarestream/__init__.py",
        "rarestream/py.typed",
        "rarestream/_native.cpython-312-x86_64-linux-gnu.so",
        "rarestream-0.1.0.dist-info/licenses/LICENSE",
        "rarestream-0.1.0.dist-info/licenses/nanobind/LICENSE",
        "rarestream-0.1.0.dist-info/licenses/robin_map/LICENSE",
    ]
    assert wheels.stray(good) == [] and wheels.missing(good) == []
    bad = ["tests/test_a.py", "rarestream/tests/a.py", "rarestream/a.cpp", "rarestream/__pycache__/a.py"]
    assert wheels.stray([*good, *bad]) == bad
    assert wheels.missing(good[:1]) == [
        "py.typed",
        "the licence",
        "the licence of nanobind",
        "the licence of robin_map",
        "the core",
    ]


def test_a_platform_tag_that_promises_nothing_is_newer_than_any_other():
    assert (
        wheels.tag_age("manylinux_2_17_x86_64")
        < wheels.tag_age("manylinux_2_28_x86_64")
        < wheels.tag_age("linux_x86_64")
    )


def test_files_of_the_package_are_of_kinds_that_the_check_of_wheels_knows():
    files = [
        path for path in (HOME / "src" / "rarestream").rglob("*") if path.is_file() and "__pycache__" not in path.parts
    ]
    assert {path.suffix for path in files} <= wheels.PACKED


def test_a_bar_that_is_not_met_is_shown_and_counted(capsys):
    bars = wheels.Bars()
    bars.line("wheel", "1.9 MB", "< 2 MB", True)
    bars.line("wheel", "2.1 MB", "< 2 MB", False)
    assert bars.failed == 1
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["ok", "FAIL"]
