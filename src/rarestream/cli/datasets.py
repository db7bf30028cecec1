"""rarestream datasets: the tables that are part of the package."""

from __future__ import annotations

from typing import Annotated

from rarestream.cli import look, options
from rarestream.cli.parser import Argument, require_choice

Name = Annotated[str | None, Argument("NAME", help="Print only the path of this data set, for other commands.")]


def datasets(name: Name = None, json: options.Json = False) -> None:
    """List the data sets that are part of the package, or print the path of one."""
    from rarestream.datasets import info, load, names

    if name is not None:
        require_choice("NAME", name, names())
    found = [info(one) for one in (names() if name is None else [name])]
    if json:
        for one in found:
            look.print_json({**vars(one), "path": str(load(one.name))})
        return
    if name is not None:
        print(load(name))
        return
    ink = look.stdout()
    for one in found:
        given = " ".join([f"--label {one.label}", *(f"--text {column}" for column in one.text)])
        count = f"{look.count(one.rows)} rows, {look.count(one.positives)} positive"
        ink.line(f"{ink(one.name, 'bold')}  {count} ({look.share(one.positives, one.rows)})")
        for text in (one.about, f"{one.license}; {one.source}"):
            for line in look.wrap(text, look.width() - 2):
                ink.line(f"  {line}")
        command = f'rarestream train "$(rarestream datasets {one.name})" {given} -o {one.name}.rare'
        ink.line(f"  {ink(command, 'dim')}")
