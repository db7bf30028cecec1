"""The requirements of the package and of some of its extras, from pyproject.toml, one per line.

python tools/extras.py test lint > requirements.txt

`pip install -e ".[test]"` builds the package again; `pip install -r requirements.txt` adds what the extra needs and
builds nothing.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

PROJECT = Path(__file__).parent.parent / "pyproject.toml"


def requirements(
    name: str, base: Iterable[str], extras: Mapping[str, Sequence[str]], wanted: Iterable[str]
) -> list[str]:
    """What `name[wanted]` requires, with extras of `name` itself written out; each requirement once."""
    found = dict.fromkeys(base)
    waiting = list(wanted)
    seen: set[str] = set()
    while waiting:
        extra = waiting.pop(0)
        if extra in seen:
            continue
        seen.add(extra)
        if extra not in extras:
            raise KeyError(f"there is no extra {extra!r}; pyproject.toml has: {', '.join(sorted(extras))}")
        for requirement in extras[extra]:
            own = re.fullmatch(rf"{re.escape(name)}\[([^\]]+)\]", requirement.replace(" ", ""))
            if own:
                waiting += own[1].split(",")
            else:
                found[requirement] = None
    return list(found)


def main(wanted: Sequence[str]) -> int:
    project = tomllib.loads(PROJECT.read_text("utf-8"))["project"]
    try:
        lines = requirements(project["name"], project["dependencies"], project["optional-dependencies"], wanted)
    except KeyError as error:
        print(error.args[0], file=sys.stderr)
        return 2
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
