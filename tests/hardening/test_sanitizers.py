"""The native sources, built with address and undefined-behaviour sanitizers, on golden, hostile and random input."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from tests import children

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "sanitized"
HOURS = 4 * 3600.0  # the limit of a build, and of a run under sanitizers
# The packages that call the native code themselves. The others, from estimators to the command line, call these.
PACKAGES = ["blocks", "readers", "metrics", "learners", "engines", "model", "groups", "writers", "splitting"]
PACKAGES += ["joining", "pruning", "evaluate", "race", "reproduce"]
# Figures and pages are drawn in Python, from numbers that other tests compute under the sanitizers too. Topics of Kafka
# are read by librdkafka.
WITHOUT = [
    "readers/live/test_kafka.py",
    "readers/live/test_pages.py",
    "evaluate/test_figures.py",
    "reproduce/test_figures.py",
    "reproduce/test_report.py",
    "reproduce/test_tables.py",
]
# The native code runs only in programs that it starts, and these load the installed core.
IN_PROGRAMS = [
    "reproduce/test_experiments.py::test_killed_in_the_middle_and_run_again_the_rows_are_the_same",
    "writers/test_convert.py::test_memory_does_not_grow_with_the_data",
    "readers/live/test_stream.py::test_memory_stays_the_same_however_many_rows_come",
]
OPTIONS = ["-q", "-x", "-n", "2", "--dist", "worksteal", "-p", "no:cacheprovider"]


def runtime(name: str) -> str | None:
    """Return the path of the compiler's library for a sanitizer, None when it has none."""
    compiler = os.environ.get("CXX") or shutil.which("g++") or "c++"
    found = children.run([compiler, f"-print-file-name={name}"]).stdout.strip()
    return found if os.path.isabs(found) and os.path.exists(found) else None


@pytest.mark.skipif(not runtime("libasan.so"), reason="the compiler has no address sanitizer")
@pytest.mark.skipif("RARESTREAM_NATIVE" in os.environ, reason="this is the sanitized run")
def test_the_native_core_is_clean_under_address_and_undefined_behaviour_sanitizers():
    cmake = shutil.which("cmake", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    configure = [
        cmake,
        "-S",
        ROOT,
        "-B",
        BUILD,
        "-DRARESTREAM_SANITIZE=ON",
        f"-DPython_EXECUTABLE={sys.executable}",
    ]
    for command in (configure, [cmake, "--build", BUILD, "-j", "2"]):
        done = children.run(command, limit=HOURS)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    native = next(BUILD.glob("_native*.so"))
    environment = {
        **os.environ,
        "RARESTREAM_NATIVE": str(native),
        "LD_PRELOAD": f"{runtime('libasan.so')} {runtime('libstdc++.so.6') or ''}".strip(),
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }
    folders = [str(ROOT / "tests" / package) for package in PACKAGES]
    without = [f"--ignore={ROOT / 'tests' / file}" for file in WITHOUT]
    without += [f"--deselect=tests/{test}" for test in IN_PROGRAMS]
    run = children.run(
        [sys.executable, "-m", "pytest", *OPTIONS, *without, *folders],
        env=environment,
        cwd=ROOT,
        limit=HOURS,
    )
    assert run.returncode == 0, (run.stdout + run.stderr)[-6000:]
