"""What is made of the results of the speed benchmarks: the promises, their pictures, and comparisons of two revisions."""

from __future__ import annotations

import contextlib
import json
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

from rarestream import Block

HOME = Path(__file__).parents[2]
HERE = HOME / "benchmarks"


@pytest.fixture(autouse=True)
def scripts(monkeypatch):
    monkeypatch.syspath_prepend(str(HERE))


def bar(what="learn vs SGD", must=2.0, aim=3.0, measured=4.0, more=True, verdict="aim", unit="x faster"):
    return {
        "what": what,
        "must": must,
        "aim": aim,
        "measured": measured,
        "unit": unit,
        "more_is_better": more,
        "verdict": verdict,
    }


# -- promises


def test_every_promise_has_a_goal_that_is_no_easier():
    import table

    found = table.bars({})
    names = [one.what for one in found]
    assert len(set(names)) == len(names)
    for one in found:
        assert one.verdict == "not measured"
        assert one.aim >= one.must if one.more_is_better else one.aim <= one.must


def test_calls_are_held_against_what_they_replace():
    import calls
    import table

    for line in calls.LINES:
        numbers = {
            line.ours: 2.0 * line.aim if line.slower else 2.0,
            line.other: 2.0 if line.slower else 2.0 * line.aim,
        }
        (found,) = [one for one in table.bars({"calls": numbers}) if one.what == line.what]
        assert found.measured == line.aim
        assert found.more_is_better is not line.slower
        assert found.verdict == "aim"


def test_scores_have_bars_in_nanoseconds():
    import small
    import table

    found = {one.what: one for one in table.bars({"metrics": {small.TIES: 12.0, small.STREAMING: 9.0}})}
    assert found["exact AUC of 500,000 scores, many equal"].verdict == "aim"
    assert found["StreamingAuc.add, a score"].verdict == "BELOW"


def test_the_limit_takes_new_memory_as_a_model_does(monkeypatch):
    import contests
    import machine
    import timing

    given = []
    monkeypatch.setattr(machine, "read_modify_write", lambda indices, table, ahead: given.append((table, ahead)))
    monkeypatch.setattr(timing, "one_core", contextlib.nullcontext)
    block = Block.of((np.array([0, 2]), np.array([3, 8]), np.ones(2)), [1])
    contest = contests._limit(block, 30)
    contest(), contest()
    (first, ahead), (second, _) = given
    assert ahead == 30
    assert first.nbytes == 8 * block.width
    assert first is not second
    assert not first.any()


def test_rows_are_the_same_whether_their_columns_are_near_or_far():
    import calls

    near = Block.of((np.array([0, 2, 3]), np.array([3, 8, 1]), np.ones(3)), [1, -1])
    far = calls.spread(near, 167)
    assert far.indices.tolist() == [501, 1336, 167]
    assert far.labels.tolist() == [1, -1]
    assert (calls.NARROW - 1) * (calls.WIDE // calls.NARROW) < calls.WIDE


def test_rows_that_come_alone_have_as_many_features_as_is_said():
    import calls

    assert all(len(row[0]) == len(row[1]) == calls.LISTED for row in calls.listed_rows()[:20])
    assert all(len(row) == calls.NAMED and json.loads(json.dumps(row)) == row for row, _ in calls.named_rows()[:20])
    assert all(len(row) == calls.NAMED for row, _ in calls.number_rows()[:20])
    X, y = calls.dense_rows()
    assert X.shape == calls.DENSE
    assert 0.05 < (y > 0).mean() < 0.5


# -- pictures


def texts_of(picture: str) -> list[str]:
    return ["".join(element.itertext()) for element in ET.fromstring(picture).iter("{http://www.w3.org/2000/svg}text")]


def bars_of(picture: str) -> list[ET.Element]:
    rows = ET.fromstring(picture).iter("{http://www.w3.org/2000/svg}rect")
    return [row for row in rows if row.get("class") in ("aim", "must", "below")]


def test_a_bar_ends_at_the_line_where_the_promise_is_just_kept():
    import plots

    run = {
        "bars": [
            bar(measured=2.0, verdict="must"),
            bar("learn vs limit", 3.0, 2.0, 6.0, False, "BELOW", "x slower"),
            bar("learn vs other", measured=400.0),
            bar("learn vs nobody", measured=None, verdict="not measured"),
        ]
    }
    picture = plots.files(run)["learning.svg"]
    just, half, far = bars_of(picture)
    line = plots._x(1)
    assert float(just.get("x")) + float(just.get("width")) == pytest.approx(line, abs=0.1)
    assert float(half.get("width")) == pytest.approx(float(just.get("width")) / 2, abs=0.1)
    assert float(far.get("width")) == pytest.approx(3 * float(just.get("width")), abs=0.2)
    assert half.get("class") == "below"
    texts = texts_of(picture)
    assert any(text.startswith("400x ▸") for text in texts)
    assert any("≤ 3, goal 2" in text for text in texts)
    assert not any("nobody" in text for text in texts)
    assert "prefers-color-scheme: dark" in picture


def test_names_are_escaped_and_every_bar_is_in_one_picture():
    import plots
    import table

    odd = 'fit on <b> & "c" | d'
    made = plots.files({"bars": [bar(odd)], "date": "2026-01-02T03:04", "machine": {"cores": 2}, "commit": "abc"})
    assert odd in texts_of(made["calls.svg"])
    assert "&#124; d" in made["about.inc"]
    assert "1 of 1 promises" in made["about.inc"]
    found = [plots.Bar(one.what, one.must, one.aim, 1.0, one.unit, one.more_is_better, "aim") for one in table.bars({})]
    groups = plots.grouped(found)
    assert sum(map(len, groups.values())) == len(found)
    assert all(groups.values())
    for text, some in zip((plots.picture("t", some) for some in groups.values()), groups.values(), strict=True):
        assert len(bars_of(text)) == len(some)


def test_what_the_page_shows_was_made_from_its_results():
    import plots

    folder = HOME / "docs" / "speed"
    made = plots.files(json.loads((folder / "results.json").read_text("utf-8")))
    assert {path.name for path in folder.iterdir()} == set(made)
    for name, text in made.items():
        assert (folder / name).read_text("utf-8") == text, (
            f"python benchmarks/plots.py docs/speed/results.json writes {name}"
        )
    page = (HOME / "docs" / "speed.md").read_text("utf-8")
    assert all(f"speed/{name}" in page for name in made)


# -- two revisions


def test_what_looks_slower_is_measured_again_before_it_is_believed(capsys):
    import before_after

    sides = tuple(before_after.Side(name, Path(name), Path("bench.py")) for name in ("before", "after"))
    noise = iter([1.5, 1.3, 1.0])  # of one line, in the runs of the second side
    asked = []

    def measure(side, parts, shapes):
        asked.append((side.name, parts, shapes))
        fast = 1.0 if side.name == "before" else next(noise)
        return {("learn", "rcv1b", "dual-auc"): fast, ("one row", "learn_one", "10000"): 2.0}

    before, after = before_after.compare(sides, measure, "learn,one-row", rounds=1, again=4, allow=0.05)
    assert asked == [
        ("before", "learn,one-row", None),
        ("after", "learn,one-row", None),
        ("after", "learn", "rcv1b"),
        ("before", "learn", "rcv1b"),
        ("before", "learn", "rcv1b"),
        ("after", "learn", "rcv1b"),
    ]
    assert before_after.show(before, after, 0.05) == 0
    assert "0 of 2 lines slower by more than 5%" in capsys.readouterr().out


def test_what_stays_slower_is_counted_and_shown_first(capsys):
    import before_after

    before = {("learn", "avazu", "x"): 1.0, ("metrics", "auc"): 1.0, ("text", "gone"): 1.0}
    after = {("learn", "avazu", "x"): 1.04, ("metrics", "auc"): 1.06, ("calls", "new"): 1.0}
    assert before_after.show(before, after, 0.05) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("metrics / auc")
    assert lines[1].endswith("1.060  SLOWER")
    assert lines[2].endswith("1.040")
    assert "only before" in lines[3]
    assert "only after" in lines[4]
    assert before_after.parts_of([("one row", "a", "10"), ("text", "avazu", "ours")]) == ("one-row,text", "avazu")


@pytest.mark.parametrize(("ratio", "code"), [(1.2, 1), (1.0, 0)])
def test_a_slower_line_is_a_failure(ratio, code, monkeypatch, capsys):
    import before_after

    monkeypatch.setattr(before_after.sys, "argv", ["before_after.py", "--base", "HEAD", "--parts", "metrics"])
    monkeypatch.setattr(before_after, "checkout", lambda revision: Path("other"))
    monkeypatch.setattr(before_after, "runs", lambda side: True)
    times = {"before": 1.0, "after": ratio}
    monkeypatch.setattr(before_after, "measured", lambda side, *rest: {("metrics", "auc"): times[side.name]})
    with pytest.raises(SystemExit) as ended:
        before_after.main()
    assert ended.value.code == code
    assert "metrics / auc" in capsys.readouterr().out


def test_the_numbers_of_a_run_are_found_at_any_depth():
    import before_after

    results = {
        "learn": {"rcv1b": {"dual-auc": 2.5}},
        "one row": {"learn_one": {"10000": 3}},
        "installed": {"python": 5},
        "learners": [{"learner": "rda", "seconds": 0.5, "must": 3}],
    }
    assert dict(before_after.numbers(results)) == {
        ("learn", "rcv1b", "dual-auc"): 2.5,
        ("one row", "learn_one", "10000"): 3.0,
        ("learners", "rda"): 0.5,
    }
