"""The streaming join gives what the textbook one gives, however its streams are read, and whether it spills or not."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rarestream.errors import DataError, OutputError
from rarestream.joining import Joined, LabelJoin, Refused
from tests.joining import textbook

KEYS = [b"a", b"b", b"c", b"d"]
Steps = list[tuple[float, bytes]]


@st.composite
def streams(draw: st.DrawFn) -> list[textbook.Row]:
    """Rows that are roughly in order: times move on by steps, some of them back, some far."""
    steps = draw(
        st.lists(st.tuples(st.sampled_from(KEYS), st.sampled_from([0, 1, 1, 2, 3, -1, -2, -6, 9, 40])), max_size=25)
    )
    time, rows = 100.0, []
    for number, (key, step) in enumerate(steps):
        time += step
        rows.append((key, time, b"%d" % number))
        if draw(st.booleans()) and abs(step) > 5:
            time -= step  # a single row with a wrong clock
    return rows


@st.composite
def cases(draw: st.DrawFn) -> dict[str, object]:
    return {
        "events": draw(streams()),
        "labels": draw(streams()),
        "within": draw(st.sampled_from([1.0, 3.0, 10.0])),
        "disorder": draw(st.sampled_from([0.0, 2.0, 7.0])),
        "jump": draw(st.sampled_from([5.0, 10.0, math.inf])),
        "keep_unmatched": draw(st.booleans()),
        "turns": draw(st.lists(st.tuples(st.booleans(), st.integers(1, 6)), min_size=1, max_size=12)),
        "order": draw(st.sampled_from(["event", "match"])),
        "memory": draw(st.sampled_from([0, 400, 1500, 10**9])),
        "one_by_one": draw(st.booleans()),
    }


def run(case: dict[str, object], **changed: object) -> tuple[list[Joined], LabelJoin]:
    """Run the streaming join, its streams read in turns: so many events, so many labels, and so on."""
    case = {**case, **changed}
    join = LabelJoin(
        case["within"],
        disorder=case["disorder"],
        jump=case["jump"],
        unmatched="negative" if case["keep_unmatched"] else "drop",
        order=case["order"],
        memory=case["memory"],
    )
    found: list[Joined] = []
    rest = {True: list(case["events"]), False: list(case["labels"])}
    turns = list(case["turns"])
    while rest[True] or rest[False]:
        of_events, count = turns.pop(0) if turns else (bool(rest[True]), 100)
        rows, rest[of_events] = rest[of_events][:count], rest[of_events][count:]
        if case["one_by_one"]:
            for row in rows:
                found += join.event(*row) if of_events else join.label(*row)
        elif rows:
            columns = [list(column) for column in zip(*rows, strict=True)]
            found += join.events(*columns) if of_events else join.labels(*columns)
    found += join.finish()
    assert join.held == 0
    return found, join


def expected(case: dict[str, object]) -> textbook.Result:
    return textbook.join(
        case["events"], case["labels"], case["within"], case["disorder"], case["jump"], case["keep_unmatched"]
    )


def pairs(found: list[Joined]) -> list[tuple[bytes, bytes | None]]:
    return [(joined.payload, joined.label) for joined in found]


@given(cases())
@settings(max_examples=400, deadline=None)
def test_it_agrees_with_the_textbook(case: dict[str, object]):
    found, join = run(case)
    wanted = expected(case)
    assert (pairs(found) if case["order"] == "event" else sorted(pairs(found), key=str)) == (
        wanted.joined if case["order"] == "event" else sorted(wanted.joined, key=str)
    )
    assert join.counts.as_dict() == wanted.counts


@given(cases())
@settings(max_examples=100, deadline=None)
def test_spilling_to_disk_changes_nothing(case: dict[str, object]):
    assert pairs(run(case, memory=0)[0]) == pairs(run(case, memory=10**9)[0])


def test_a_row_comes_back_with_what_came_with_it():
    join = LabelJoin(30.0, order="match")
    assert list(join.event("a", 5.0, b"payload")) == []
    (joined,) = join.label("a", 10.0, 1)
    assert joined == Joined(b"payload", 1, b"a", 5.0) and joined.matched


def test_events_come_in_their_order_by_default():
    join = LabelJoin(30.0, disorder=0)
    assert list(join.event("a", 0.0, b"first")) == []
    assert list(join.event("b", 1.0, b"second")) == []
    assert list(join.label("b", 2.0, 1)) == []  # the first is not decided
    assert pairs(list(join.label("a", 3.0, 0))) == [(b"first", 0), (b"second", 1)]


def test_an_event_without_a_label_is_negative_once_the_labels_have_passed_its_window():
    join = LabelJoin(30.0, disorder=10.0)
    assert list(join.event("a", 0.0, b"a")) == []
    assert list(join.label("x", 40.0, 1)) == []  # a label of 30 s could still come, 10 s out of order
    assert pairs(list(join.label("y", 40.5, 1))) == [(b"a", None)]
    assert not next(iter([Joined(b"a", None, b"a", 0.0)])).matched


def test_a_label_may_come_before_its_event():
    join = LabelJoin(30.0)
    assert list(join.label("a", 0.0, 1)) == []
    assert pairs([*join.event("a", 30.0, b"a"), *join.finish()]) == [(b"a", 1)]
    assert join.counts.matched == 1


def test_a_late_label_is_counted_apart_from_one_without_an_event():
    join = LabelJoin(30.0)
    found = [*join.event("a", 0.0, b"a"), *join.label("a", 31.0, 1), *join.label("b", 32.0, 1), *join.finish()]
    assert pairs(found) == [(b"a", None)]
    assert (join.counts.late_labels, join.counts.labels_without_event) == (1, 1)


def test_a_key_may_be_used_again_after_two_windows():
    join = LabelJoin(10.0)
    found = [*join.event("a", 0.0, b"first"), *join.event("a", 20.0, b"copy"), *join.event("a", 20.5, b"second")]
    found += [*join.label("a", 15.0, 1), *join.finish()]
    assert pairs(found) == [(b"first", None), (b"second", 1)]
    assert join.counts.duplicate_events == 1


def test_advancing_the_time_decides_what_it_can():
    join = LabelJoin(30.0, disorder=0, order="match")
    list(join.event("a", 0.0, b"a"))
    assert list(join.advance(30.0)) == []
    assert pairs(list(join.advance(30.5))) == [(b"a", None)]
    assert list(join.label("a", 31.0, 1)) == []
    assert list(join.finish()) == [] and join.counts.late_labels == 1


def test_one_wrong_clock_does_not_end_the_time_of_the_others():
    refused: list[Refused] = []
    join = LabelJoin(30.0, on_refused=refused.append)
    found = [*join.event("a", 0.0, b"a"), *join.event("b", 4e9, b"b"), *join.event("c", 1.0, b"c")]
    found += [*join.label("a", 2.0, 1), *join.label("c", 2.0, 1), *join.finish()]
    assert pairs(found) == [(b"a", 1), (b"c", 1)]
    assert refused == [Refused("events", 1, 4e9, 0.0, "ahead")]
    assert join.counts.refused_events == 1


def test_a_gap_in_the_log_is_no_wrong_clock():
    join = LabelJoin(30.0)
    found = [*join.event("a", 0.0, b"a"), *join.event("b", 1e6, b"b"), *join.event("c", 1e6, b"c"), *join.finish()]
    assert len(found) == 3 and join.counts.refused_events == 0


def test_a_row_far_behind_is_refused_and_said():
    refused: list[Refused] = []
    join = LabelJoin(30.0, disorder=60.0, on_refused=refused.append)
    list(join.events([b"a", b"b", b"c"], [0.0, 30.0, 61.0], [b"a", b"b", b"c"]))
    list(join.events([b"d", b"e"], [61.0, 0.5], [b"d", b"e"]))
    assert refused == [Refused("events", 4, 0.5, 61.0, "behind")]
    assert len(list(join.finish())) == 4


@pytest.mark.parametrize("order", ["event", "match"])
def test_memory_is_bounded_and_the_rest_is_on_disk(order: str, tmp_path: Path):
    join = LabelJoin(1000.0, memory=100_000, order=order, folder=str(tmp_path))
    held, found = 0, 0
    for start in range(0, 5000, 100):
        numbers = range(start, start + 100)
        found += len(list(join.events([b"%d" % i for i in numbers], [float(i) for i in numbers], [b"x" * 200] * 100)))
        held = max(held, join.held)
    assert held <= 100_000  # after each batch
    assert join.spilled > 4000
    assert list(tmp_path.iterdir()) == []  # the file has no name
    for i in range(0, 5000, 10):
        found += len(list(join.label(b"%d" % i, i + 1.0, 1)))
    found += len(list(join.finish()))
    assert found == 5000 and join.counts.matched == 500
    assert join.spilled == 0


def test_what_has_passed_is_forgotten_on_disk_too():
    join = LabelJoin(10.0, disorder=0.0, memory=5000)
    most = 0
    for i in range(3000):
        list(join.event(b"%d" % i, float(i), b"x" * 50))
        list(join.label(b"%d" % (i + 1), float(i), 1))
        most = max(most, join.spilled)
    assert 0 < most < 200  # two windows of 10 s, an event and a label each second


def test_rows_that_are_not_taken_come_with_the_next_call():
    join = LabelJoin(10.0, order="match")
    join.event("a", 0.0, b"a")
    join.label("a", 1.0, 1)
    join.event("b", 0.0, b"b")
    assert pairs(list(join.label("b", 1.0, 1))) == [(b"a", 1), (b"b", 1)]


@pytest.mark.parametrize(
    "arguments",
    [
        {"within": 0.0},
        {"within": math.nan},
        {"within": math.inf},
        {"within": 1.0, "disorder": -1.0},
        {"within": 1.0, "unmatched": "positive"},
        {"within": 1.0, "order": "label"},
        {"within": 1.0, "memory": -1},
    ],
)
def test_arguments_that_make_no_sense_are_refused(arguments: dict[str, object]):
    with pytest.raises(DataError, match=list(arguments)[-1]):
        LabelJoin(**arguments)


def test_rows_that_make_no_sense_are_refused_and_change_nothing():
    join = LabelJoin(10.0)
    with pytest.raises(DataError, match="finite"):
        join.event("a", math.nan, b"a")
    with pytest.raises(DataError, match="finite"):
        join.events([b"a", b"b"], [0.0, math.inf], [b"a", b"b"])
    with pytest.raises(DataError, match="equally many"):
        join.events([b"a"], [0.0, 1.0], [b"a"])
    with pytest.raises(DataError, match="None"):
        join.label("a", 0.0, None)
    with pytest.raises(DataError, match="nan"):
        join.advance(math.nan)
    assert join.counts.events == 0 and list(join.finish()) == []


def test_a_full_disk_is_said():
    join = LabelJoin(10.0, memory=0)
    list(join.event("a", 0.0, b"a"))
    join._disk._base.execute("PRAGMA max_page_count = 8")
    with pytest.raises(OutputError, match="full.*Free some space"):
        list(join.events([b"%d" % i for i in range(1000)], [0.0] * 1000, [b"x" * 100] * 1000))


def test_many_labels_of_one_key_wait_and_one_is_taken():
    join = LabelJoin(10.0)
    list(join.labels([b"nobody"] * 100_000, [0.0] * 100_000, [1] * 100_000))
    assert pairs(list(join.event("nobody", 5.0, b"x")) + list(join.finish())) == [(b"x", 1)]
    assert join.counts.duplicate_labels == 99_999


def test_a_folder_that_is_not_there_is_said():
    join = LabelJoin(10.0, memory=0, folder="/no/such/folder")
    with pytest.raises(OutputError, match="/no/such/folder"):
        list(join.event("a", 0.0, b"a"))
