"""The tables in the package: they are there, as described, small, and installed with it."""

from __future__ import annotations

import csv
import json
import lzma
import sys

import pytest

from rarestream import DataError, datasets
from tests import children
from tests.program import run

LARGEST = 200_000  # bytes; they are part of every wheel
PACKAGED = ["flights", "sms"]
NAMES = "flights, sms, real-sim, farm-ads, rcv1b, imdb, reviews, news20b, avazu"


def rows(name: str) -> list[dict[str, str]]:
    with lzma.open(datasets.load(name), "rt", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, strict=True))


@pytest.mark.parametrize("name", PACKAGED)
def test_a_table_is_as_described(name: str):
    about = datasets.info(name)
    found = rows(name)
    assert about.name == name
    assert len(found) == about.rows
    assert sum(row[about.label] == about.positive for row in found) == about.positives
    assert len({row[about.label] for row in found}) == 2
    assert set(about.text) <= set(found[0])
    assert all(None not in row and None not in row.values() for row in found)  # no row is longer or shorter


@pytest.mark.parametrize("name", PACKAGED)
def test_a_table_is_small_and_its_license_stands_beside_it(name: str):
    path, about = datasets.load(name), datasets.info(name)
    assert path.stat().st_size < LARGEST
    text = (path.parent / "README.md").read_text("utf-8")
    section = text.partition(f"\n## {about.file}\n")[2].partition("\n## ")[0]
    assert f"License: {about.license}" in section
    assert f"{about.rows:,}" in section and f"{about.positives:,}" in section


def test_the_flights_are_in_order_of_time():
    times = [row["departs"] for row in rows("flights")]
    assert times == sorted(times)


def test_an_unknown_name_is_an_error_that_lists_the_names():
    with pytest.raises(
        DataError, match=rf"no data set is called 'flight'; did you mean 'flights'\? There are {NAMES}\."
    ):
        datasets.load("flight")
    with pytest.raises(DataError, match=rf"no data set is called 'zzz'; there are {NAMES}\."):
        datasets.info("zzz")


def test_some_are_part_of_the_package_and_the_others_are_the_papers():
    assert ", ".join(datasets.names()) == NAMES
    assert [name for name in datasets.names() if datasets.info(name).packaged] == PACKAGED
    assert all(datasets.is_present(name) for name in PACKAGED)


def test_importing_the_names_reads_nothing():
    code = "import sys; from rarestream import datasets; datasets.names(); print(*sys.modules)"
    loaded = set(children.run([sys.executable, "-c", code]).stdout.split())
    assert "rarestream.datasets" in loaded
    assert not loaded & {"numpy", "importlib.resources", "lzma", "urllib.request", "rarestream.readers"}


def test_the_command_lists_the_tables_and_prints_a_path():
    listed = run("datasets")
    assert listed.exit_code == 0
    for name in datasets.names():
        assert f"\n{name}  " in f"\n{listed.stdout}"
        assert datasets.info(name).license in listed.stdout.replace("\n  ", " ")
    for name in PACKAGED:
        assert f'train "$(rarestream datasets {name})" --label {datasets.info(name).label}' in listed.stdout
        assert run("datasets", name).stdout == f"{datasets.load(name)}\n"


def test_the_command_refuses_other_names():
    refused = run("datasets", "flight")
    assert refused.exit_code == 2
    assert f"must be one of {NAMES}, got 'flight'. Did you mean flights?" in refused.stderr


def test_the_command_prints_json(tmp_path):
    lines = [json.loads(line) for line in run("datasets", "--json", "--data-dir", tmp_path).stdout.splitlines()]
    assert [line["name"] for line in lines] == datasets.names()
    for line in lines:
        packaged = line["name"] in PACKAGED
        assert line["present"] is packaged
        assert line["path"] == (str(datasets.load(line["name"])) if packaged else None)
    assert json.loads(run("datasets", "sms", "--json").stdout)["text"] == ["message"]
