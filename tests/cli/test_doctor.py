"""`doctor`: what it shows, and its exit codes. What it finds is tested in tests/doctor."""

from __future__ import annotations

import json

from tests.cli.conftest import run
from tests.cli.tables import COLUMNS, clicks, rows


def test_doctor_shows_format_classes_columns_and_a_command(tmp_path):
    path = clicks(tmp_path / "clicks.csv", count=500)
    shown = run("doctor", path, "--label", "clicked").stdout
    assert "  format      csv, by its suffix, comma-separated\n" in shown
    assert "  rows        500\n" in shown
    assert "positive is yes: " in shown
    assert "  age      category and number" in shown and "18 to 70" in shown
    assert f"rarestream train {path} --label clicked -o clicks.rare" in shown
    assert all(len(line) <= 80 for line in shown.splitlines() if str(path) not in line)


def test_the_command_it_suggests_works(tmp_path):
    path = tmp_path / "noname"
    path.write_text("".join(f"{number};{line.replace(',', ';')}\n" for number, line in enumerate(rows(3, 500))))
    columns = "id,site,price,age,when,clicked"
    found = json.loads(
        run("doctor", path, "--columns", columns, "--format", "csv", "--label", "clicked", "--json").stdout
    )
    words = found["command"]
    assert words[:3] == ["rarestream", "train", str(path)] and words[words.index("--ignore") + 1] == "id"
    done = run(*words[1:-1], tmp_path / "m.rare")
    assert done.exit_code == 0, done.stderr


def test_problems_are_ranked_and_have_a_way_on(tmp_path):
    path = tmp_path / "t.csv"
    lines = [f"{number},{line}" for number, line in enumerate(rows(3, 500))]
    path.write_text("\n".join([f"id,{COLUMNS}", *lines, "1,2"]) + "\n")
    done = run("doctor", path, "--label", "clicked")
    assert done.exit_code == 0
    levels = [line.split()[0] for line in done.stdout.splitlines() if line.startswith(("error ", "warning ", "note "))]
    assert levels == sorted(levels, key=["error", "warning", "note"].index) and levels[0] == "error"
    assert "t.csv:502:1: this row has 2 cells" in done.stdout.replace("\n           ", " ")
    assert "--max-bad-rows 1" in done.stdout
    found = json.loads(run("doctor", path, "--label", "clicked", "--json").stdout)
    assert [problem["level"] for problem in found["problems"]] == levels and found["usable"] is False


def test_a_table_without_label_lists_what_could_be_it(tmp_path):
    shown = run("doctor", clicks(tmp_path / "t.csv", count=200)).stdout
    assert "not named; columns with two values: clicked" in shown
    assert "--label COLUMN" in shown


def test_data_that_cannot_be_read_are_bad_data(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1\n")
    assert run("doctor", path).exit_code == 3
    path.write_text("")
    assert run("doctor", path).exit_code == 3
    assert run("doctor", tmp_path / "missing.csv").exit_code == 1
    done = run("doctor", path, "--zero-based")
    assert done.exit_code == 2 and "--zero-based" in done.stderr


def test_standard_input_is_examined(tmp_path):
    text = clicks(tmp_path / "t.csv", count=200).read_text()
    shown = run("doctor", "-", "--label", "clicked", stdin=text).stdout
    assert "csv, by its first lines" in shown and "  rows        200\n" in shown
    assert "Pass --format csv" in shown.replace("\n         ", " ")


def test_a_limited_examination_says_so(tmp_path):
    path = clicks(tmp_path / "t.csv", count=900)
    shown = run("doctor", path, "--label", "clicked", "--rows", 300).stdout
    assert "the first 300; about" in shown


def test_names_from_outside_are_escaped(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a\x1b[31m,y\n" + "".join(f"\x1b{i % 3},{i % 2}\n" for i in range(60)))
    done = run("doctor", path, "--label", "y")
    assert done.exit_code == 0 and "\x1b" not in done.stdout
