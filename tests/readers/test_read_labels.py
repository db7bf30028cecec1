"""What becomes of the numbers that stand as labels."""

from __future__ import annotations

import io

import numpy as np
import pytest
from svm_rows import stream_of

from rarestream.blocks import concatenate
from rarestream.errors import DataError
from rarestream.readers import read
from rarestream.readers.labels import LabelRule, OneLabelError


def labels(text: str, **options: object) -> list[int] | None:
    (block,) = read(io.BytesIO(text.replace(" ", " 1:1\n").encode() + b" 1:1\n"), **options)
    return None if block.labels is None else block.labels.tolist()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 -1 1", [1, -1, 1]),
        ("+1 -1", [1, -1]),
        ("1 0 0", [1, -1, -1]),
        ("0 0", [-1, -1]),
        ("-1 -1", [-1, -1]),
        ("1", [1]),
        ("1.0 -1.0e0", [1, -1]),
        ("1 2", [-1, 1]),
        ("4 2 2", [1, -1, -1]),
        ("-3.5 7", [-1, 1]),
    ],
)
def test_two_labels_become_minus_one_and_plus_one(text: str, expected: list[int]) -> None:
    assert labels(text) == expected


@pytest.mark.parametrize(
    ("text", "classes", "expected"),
    [
        ("1 1", (1, 2), [-1, -1]),
        ("2", (1, 2), [1]),
        ("3 2", [2.0, 3.0], [1, -1]),
        ("0 1", (None, 1), [-1, 1]),
        ("-1 1", (None, 1), [-1, 1]),
        ("-1", (-1, 1), [-1]),
    ],
)
def test_labels_known_from_before_are_not_decided_anew(text: str, classes: tuple, expected: list[int]) -> None:
    assert labels(text, classes=classes) == expected


@pytest.mark.parametrize(
    ("text", "classes", "said"),
    [
        ("1 2", (None, 1), r"<file>:2:1: label 2, but 1 counts as \+1, as in .* pass positive=1;"),
        ("1 -1", (1, 2), r"<file>:2:1: label -1, but 2 counts as \+1 and 1 as -1, .* pass positive=2;"),
    ],
)
def test_a_label_that_is_none_of_those_known_is_refused(text: str, classes: tuple, said: str) -> None:
    with pytest.raises(DataError, match=said):
        labels(text, classes=classes)


@pytest.mark.parametrize("classes", [(1,), (1, 1), (1, None), ("ham", "spam"), (1, float("nan")), (1, 2, 3)])
def test_classes_are_two_labels(classes: tuple) -> None:
    with pytest.raises(DataError, match="classes must be two different labels"):
        labels("1 2", classes=classes)


def test_the_labels_found_are_in_the_settings() -> None:
    for text, found in ((b"1 1:1\n2 1:1\n", [1, 2]), (b"0 1:1\n", [0, 1]), (b"1 1:1\n", [None, 1])):
        stream = read(io.BytesIO(text))
        assert stream.settings["classes"] is None
        list(stream)
        assert stream.settings["classes"] == found
    stream = read(io.BytesIO(b"1 1:1\n2 1:1\n"), positive=1)
    list(stream)
    assert stream.settings["classes"] is None


def test_positive_names_the_label_that_counts() -> None:
    assert labels("3 1 7 3", positive=3) == [1, -1, -1, 1]
    assert labels("3 1 7 3", positive="7") == [-1, -1, 1, -1]
    assert labels("-1 1", positive=-1) == [1, -1]
    with pytest.raises(DataError, match="positive must be a finite number"):
        labels("1", positive="spam")


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("1 -1 2", ":3:1: ", "a third label, 2, after -1 and 1"),
        ("1 -1 0", ":3:1: ", "a third label, 0, after -1 and 1"),
        ("3 5 4", ":3:1: ", "a third label, 4, after 3 and 5"),
        ("3 3 3", ":1:1: ", "only the label 3"),
    ],
)
def test_other_labels_are_refused_by_name_and_place(text: str, place: str, said: str) -> None:
    with pytest.raises(DataError) as caught:
        labels(text)
    assert place in str(caught.value)
    assert said in str(caught.value)
    assert "pass positive=VALUE to" in str(caught.value)


def test_a_label_that_comes_after_the_first_chunk_is_refused_at_its_place() -> None:
    rows = b"1 1:1\n" * 10 + b"  2 1:1\n"
    with pytest.raises(DataError, match=r"<file>:11:3: label 2, after rows with only 1\..*positive=VALUE"):
        list(stream_of(rows, chunk=12))


def test_rows_with_a_third_label_can_be_skipped_and_counted() -> None:
    stream = read(io.BytesIO(b"1 1:1\n-1 2:1\n5 3:1\n1 4:1\n"), max_bad_rows=1)
    (block,) = stream
    assert block.indices.tolist() == [0, 1, 3]
    assert stream.refused == 1
    assert "a third label, 5" in stream.refusals[0]


def test_optional_labels_may_be_missing_or_anything() -> None:
    assert labels("1 -1", labels="optional") == [1, -1]
    assert labels("3 3", labels="optional") is None
    assert labels("1 -1 8", labels="optional") is None
    (block,) = read(io.BytesIO(b"1:1 2:1\nqid:3 4:1\n"), labels="optional")
    assert block.labels is None
    assert block.indices.tolist() == [0, 1, 3]
    known, unknown = read(io.BytesIO(b"1 1:1\n-1 1:1\n1 1:1\n2:1\n"), rows=2, labels="optional")
    assert known.labels is not None
    assert known.labels.tolist() == [1, -1]
    assert unknown.labels is None


def test_one_label_and_a_bad_row_among_those_allowed_are_no_reason_to_skip_a_chunk() -> None:
    text = b"2 1:1\nx\n" + b"2 1:1\n" * 200_000 + b"4 2:1\n2 1:1\n" * 10
    with pytest.raises(DataError, match="the first 1 MB have only the label 2"):
        list(read(io.BytesIO(text), max_bad_rows=5))
    stream = read(io.BytesIO(text), max_bad_rows=5, positive=4)
    assert (sum(map(len, stream)), stream.refused) == (200_021, 1)
    with pytest.raises(DataError, match="3 invalid rows, more than max_bad_rows=2"):
        list(read(io.BytesIO(b"2 1:1\n" + b"x\n" * 3 + b"4 1:1\n"), max_bad_rows=2))


# -- labels that are text


def codes(words: str) -> tuple[np.ndarray, list[str]]:
    """Labels as a parser of text gives them: positions in a list of texts; a dash is no label."""
    texts = list(dict.fromkeys(word for word in words.split() if word != "-"))
    return np.array([np.nan if word == "-" else texts.index(word) for word in words.split()]), texts


@pytest.mark.parametrize(
    ("words", "expected", "classes"),
    [
        ("yes no no", [1, -1, -1], ("no", "yes")),
        ("False True", [-1, 1], ("False", "True")),
        ("NO YES NO", [-1, 1, -1], ("NO", "YES")),
        ("1 0", [1, -1], (0.0, 1.0)),
        ("1.0 -1 1", [1, -1, 1], (-1.0, 1.0)),
        ("1 no", [1, -1], ("no", 1.0)),
        ("3 5 3", [-1, 1, -1], (3.0, 5.0)),
        ("spam ham ham", [1, -1, -1], ("ham", "spam")),
        ("ham spam ham -", [-1, 1, -1, 0], ("ham", "spam")),
        ("b a", [1, -1], ("a", "b")),  # as often: the later in the alphabet
        ("yes", [1], (None, "yes")),
        ("- -", [0, 0], None),
        ("no no", [-1, -1], None),
        ("yes true", [1, -1], ("true", "yes")),  # both could be positive: the rarer one
        ("ham spam eggs ham", [-1, 1, 0, -1], ("ham", "spam")),
    ],
)
def test_two_texts_become_minus_one_and_plus_one(words: str, expected: list[int], classes: tuple | None) -> None:
    rule = LabelRule(None, optional=False)
    assert rule.signs(*codes(words)).tolist() == expected
    assert rule.classes == classes


def test_what_was_decided_about_texts_is_said_once_both_are_known() -> None:
    rule = LabelRule(None, optional=False)
    rule.signs(*codes("no no"))
    assert rule.note is None
    assert rule.signs(*codes("yes no")).tolist() == [1, -1]
    assert rule.note == "label 'no' counts as -1 and 'yes' as +1"
    assert rule.signs(*codes("maybe no")).tolist() == [0, -1]
    assert "a third label, 'maybe', after 'no' and 'yes'" in rule.error_message(0.0, ["maybe"])
    numbers = LabelRule(None, optional=False)
    numbers.signs(*codes("1 0"))
    assert numbers.note is None


def test_positive_may_be_a_text_and_a_text_may_be_a_number() -> None:
    assert LabelRule("spam", optional=False).signs(*codes("spam ham eggs - spam")).tolist() == [1, -1, -1, 0, 1]
    assert LabelRule(2.0, optional=False).signs(*codes("2 2.0 two 1")).tolist() == [1, 1, -1, -1]
    assert LabelRule("spam", optional=False).signs(np.array([1.0, np.nan])).tolist() == [-1, 0]


def test_numbers_and_texts_of_the_same_column_agree() -> None:
    rule = LabelRule(None, optional=False)
    assert rule.signs(np.array([1.0, 0.0, np.nan])).tolist() == [1, -1, 0]
    assert rule.signs(*codes("0 1.0 yes")).tolist() == [-1, 1, 0]
    late = LabelRule(None, optional=False)
    assert late.signs(np.array([1.0])).tolist() == [1]
    assert late.signs(*codes("1 no")).tolist() == [1, -1]
    assert late.signs(np.array([1.0, 0.0])).tolist() == [1, 0]
    assert late.classes == ("no", 1.0)


def test_texts_known_from_before_are_not_decided_anew() -> None:
    rule = LabelRule(None, optional=False, classes=("spam", "ham"))
    assert rule.signs(*codes("spam spam ham")).tolist() == [-1, -1, 1]
    assert rule.note is None
    assert rule.signs(*codes("eggs")).tolist() == [0]
    assert "label 'eggs', but 'ham' counts as +1 and 'spam' as -1" in rule.error_message(0.0, ["eggs"])


def test_one_text_alone_decides_nothing() -> None:
    rule = LabelRule(None, optional=False)
    assert rule.undecided(*codes("spam - spam"))
    assert not rule.undecided(*codes("spam ham"))
    assert not rule.undecided(*codes("no"))
    with pytest.raises(OneLabelError) as raised:
        rule.signs(*codes("spam - spam"))
    assert "the first rows have only the label 'spam'; labels are" in raised.value.message("first rows")
    assert LabelRule(None, optional=True).signs(*codes("spam spam")).tolist() == [0, 0]


def test_many_different_texts_are_refused_one_by_one(tab_format: str) -> None:
    text = b"y\ta\n" + b"".join(b"id%d\t1\n" % i for i in range(10))
    with pytest.raises(DataError, match="<file>:4:1: a third label, 'id2', after 'id0' and 'id1'.*positive=VALUE"):
        list(read(io.BytesIO(text), "tab"))
    stream = read(io.BytesIO(text), "tab", max_bad_rows=8)
    assert (sum(map(len, stream)), stream.refused) == (2, 8)
    stream = read(io.BytesIO(text), "tab", positive="id3")
    assert concatenate(stream).labels.tolist() == [1 if i == 3 else -1 for i in range(10)]  # type: ignore[union-attr]
    assert stream.settings["positive"] == "id3"
    assert stream.settings["classes"] is None
    assert stream.notes == []


@pytest.mark.parametrize(
    ("format", "text", "options"),
    [
        ("svmlight", "1 1:1\n2:1\n-1 1:1\n", {}),
        ("vw", "1 |a x\n|a y\n-1 |a x\n", {}),
        ("csv", "y,a\n1,x\n,y\n0,x\n", {"label": "y"}),
        ("jsonl", '{"y": 1, "a": "x"}\n{"a": "y"}\n{"y": 0, "a": "x"}\n', {"label": "y"}),
    ],
)
def test_missing_labels_are_kept_beside_others_and_a_third_label_is_none(format, text, options) -> None:
    stream = read(io.BytesIO(text.encode()), format, labels="missing", **options)
    assert [block.labels.tolist() for block in stream.partly_labelled()] == [[1, 0, -1]]
    assert [block.labels for block in stream] == [None]
    assert stream.unlabelled == 0
    third = text + {"svmlight": "5 1:1\n", "vw": "5 |a x\n", "csv": "5,x\n", "jsonl": '{"y": 5, "a": "x"}\n'}[format]
    with pytest.raises(DataError, match=r"a third label, 5, after .* and 1"):
        list(read(io.BytesIO(third.encode()), format, labels="missing", **options))
