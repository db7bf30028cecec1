"""Runs a command that compiles, and shows one line for each compiled file instead of everything it prints.

python tools/progress.py python -m pip install -v -e .

A build of the core takes minutes. pip says nothing meanwhile, or, with -v, far too much. If the command fails, all that
it printed is shown, and the exit status is the command's.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

STEP = re.compile(r"\s*\[(\d+)/(\d+)\] (Building|Linking) .*?([^/\s]+?)(?:\.o|\.obj)?\s*$")


def step(line: str) -> str | None:
    """A line of Ninja as `[3/35] kernels_avx2.cpp`; None if it is none."""
    found = STEP.match(line)
    return f"[{found[1]}/{found[2]}] {found[4]}" if found else None


def run(command: Sequence[str], show: Callable[[str], None], env: dict[str, str] | None = None) -> tuple[int, str]:
    """Runs a command, shows its steps as they are done, and returns its exit status and all that it printed."""
    printed = []
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", env=env
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            printed.append(line)
            found = step(line)
            if found:
                show(found)
    return process.returncode, "".join(printed)


def say(text: str) -> None:
    print(text, flush=True)


def main(command: Sequence[str]) -> int:
    if not command:
        print(__doc__, file=sys.stderr)
        return 2
    began = time.monotonic()
    steps = 0

    def show(text: str) -> None:
        nonlocal steps
        steps += 1
        say(f"  {text}  {time.monotonic() - began:.0f} s")

    status, printed = run(command, show)
    if status:
        print(printed, file=sys.stderr)
    elif steps:
        say(f"  built in {time.monotonic() - began:.0f} s")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
