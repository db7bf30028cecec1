"""What `examine` finds in data, each fault in a table that has only that."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import numpy as np
import pytest

from rarestream import DataError
from rarestream.doctor import Report, examine
from rarestream.doctor.columns import Cells, Table, predictive
from rarestream.doctor.recognise import format_of_text
from rarestream.features import Hashed
from rarestream.readers import read
from tests.doctor.made_up import ROWS, clicks, labels, with_column, write_table


def said(report: Report, words: str) -> bool:
    return any(words in f"{problem.level}: {problem.what} {problem.way_on}" for problem in report.problems)


def found(report: Report, name: str):
    return next(column for column in report.columns if column.name == name)


def test_a_sound_table_has_no_problems(tmp_path):
    path = clicks(tmp_path)
    report = examine([str(path)], label="clicked")
    assert report.problems == []
    assert (report.format, report.delimiter, report.compression) == ("csv", ",", None)
    assert (report.rows, report.complete, report.usable) == (ROWS, True, True)
    assert [column.name for column in report.columns] == ["clicked", "site", "price", "age"]
    assert report.command == ["rarestream", "train", str(path), "--label", "clicked", "-o", "clicks.rare"]


def test_classes_are_counted(tmp_path):
    path = clicks(tmp_path)
    ones = sum(labels(path))
    label = examine([str(path)], label="clicked").label
    assert label.column == "clicked" and label.positive == "1" and label.positives == ones
    assert [tuple(entry) for entry in label.classes] == [("0", ROWS - ones), ("1", ones)]


def test_distinct_values_missing_cells_and_examples_are_those_of_the_file(tmp_path):
    path = clicks(tmp_path)
    report = examine([str(path)], label="clicked")
    rows = [line.split(",") for line in path.read_text().splitlines()[1:]]
    for at, name in enumerate(["site", "price", "age", "clicked"]):
        cells = [row[at] for row in rows]
        column = found(report, name)
        assert column.distinct == len({cell for cell in cells if cell})
        assert column.missing == cells.count("")
        assert set(column.examples) <= set(cells)
    assert found(report, "age").examples == ("18", "60")


def test_without_a_label_the_columns_with_two_values_are_listed(tmp_path):
    path = with_column(clicks(tmp_path), "half", [i % 2 for i in range(ROWS)])
    report = examine([str(path)])
    assert report.label is None and report.candidates == ["half", "clicked"]
    assert report.command[3:5] == ["--label", "COLUMN"]


def test_a_column_that_gives_the_answer_away_is_a_leak(tmp_path):
    path = clicks(tmp_path)
    path = with_column(path, "status", ["paid" if label else "open" for label in labels(path)])
    report = examine([str(path)], label="clicked")
    assert found(report, "status").auc == 1.0
    assert said(report, "warning: column 'status' alone has an AUC of 1.0000")
    assert "--ignore" in report.command and "status" in report.command


@pytest.mark.parametrize("sign", [1, -1])
def test_a_number_that_ranks_the_rows_is_a_leak(tmp_path, sign):
    path = clicks(tmp_path)
    draw = random.Random(1)
    path = with_column(path, "amount", [f"{sign * (label + draw.random() / 3):.9f}" for label in labels(path)])
    assert said(examine([str(path)], label="clicked"), "column 'amount' alone has an AUC")


def test_cells_missing_where_the_label_is_negative_are_a_leak(tmp_path):
    path = clicks(tmp_path)
    path = with_column(path, "order", [f"n{i}" if label else "" for i, label in enumerate(labels(path))])
    assert said(examine([str(path)], label="clicked"), "column 'order' alone has an AUC of 1.0000")


def test_ids_are_no_leak_but_say_nothing(tmp_path):
    path = with_column(clicks(tmp_path), "id", [f"u{i}" for i in range(ROWS)])
    report = examine([str(path)], label="clicked")
    assert found(report, "id").auc == pytest.approx(0.5, abs=0.05)
    assert said(report, f"warning: column 'id' has {ROWS} different values in {ROWS} rows")
    assert report.command[-4:-2] == ["--ignore", "id"]


def test_different_whole_numbers_in_no_order_may_be_amounts(tmp_path):
    values = random.Random(4).sample(range(10**6), ROWS)
    report = examine([str(with_column(clicks(tmp_path), "cents", values))], label="clicked")
    assert report.command[-4:-2] == ["--numeric", "cents"]


def test_free_text_is_recognised(tmp_path):
    draw = random.Random(2)
    words = ["a", "nice", "day", "to", "walk", "home", "again", "and", "sing"]
    texts = [" ".join(draw.choices(words, k=draw.randint(4, 12))) + f" {i}" for i in range(ROWS)]
    report = examine([str(with_column(clicks(tmp_path), "message", texts))], label="clicked")
    assert said(report, "column 'message' looks like free text")
    assert report.command[-4:-2] == ["--text", "message"]


def test_numbers_with_a_word_for_missing_are_recognised(tmp_path):
    draw = random.Random(2)
    values = ["NA" if i % 30 == 3 else round(draw.random(), 4) for i in range(ROWS)]
    path = with_column(clicks(tmp_path), "score", values)
    report = examine([str(path)], label="clicked")
    assert said(report, "column 'score' is a category because of 'NA'")
    assert report.command[-4:-2] == ["--missing", "NA"]
    assert found(examine([str(path)], label="clicked", missing=("NA",)), "score").missing == values.count("NA")


def test_empty_and_constant_columns_are_named(tmp_path):
    path = with_column(with_column(clicks(tmp_path), "none", [""] * ROWS), "same", ["x"] * ROWS)
    report = examine([str(path)], label="clicked")
    assert said(report, "note: column 'none' is empty") and said(report, "note: column 'same' is the same in every row")


def test_repeated_rows_are_counted_and_contradictions_told(tmp_path):
    path = clicks(tmp_path)
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines, *lines[1:61]]) + "\n")
    report = examine([str(path)], label="clicked")
    assert report.duplicates == 60 and said(report, "warning: 60 rows (13 %) repeat an earlier row")
    turned = [line[:-1] + str(1 - int(line[-1])) for line in lines[1:61]]
    path.write_text("\n".join([*lines, *turned]) + "\n")
    report = examine([str(path)], label="clicked")
    assert report.duplicates == 0 and said(report, "120 rows are the same as rows with the other label")


def test_rows_sorted_by_label_are_to_be_shuffled(tmp_path):
    path = clicks(tmp_path)
    head, *rows = path.read_text().splitlines()
    path.write_text("\n".join([head, *sorted(rows, key=lambda row: row[-1])]) + "\n")
    report = examine([str(path)], label="clicked")
    assert said(report, "warning: The rows look sorted by label")
    assert report.command[-4:-2] == ["--shuffle", "1"]


@pytest.mark.parametrize("newest_first", [False, True])
def test_order_by_time_is_told(tmp_path, newest_first):
    days = [f"2026-01-{1 + 30 * i // ROWS:02d} {i % 24:02d}:00" for i in range(ROWS)]
    days = sorted(set(days), reverse=newest_first)[:ROWS]
    days = sorted((days * 2)[:ROWS], reverse=newest_first)
    report = examine([str(with_column(clicks(tmp_path), "when", days))], label="clicked")
    assert said(report, "by column 'when', the newest first" if newest_first else "note: the rows are in order of time")


def test_a_heading_that_looks_like_data_is_told(tmp_path):
    path = clicks(tmp_path)
    path.write_text(path.read_text().partition("\n")[2])
    names = path.read_text().split("\n")[0].split(",")
    report = examine([str(path)])
    assert said(report, "the first row looks like data") and report.columns[0].name == names[0]


def test_three_labels_need_one_that_counts(tmp_path):
    path = write_table(tmp_path / "t.csv", ["x", "y"], [(i % 7, "abc"[i % 3]) for i in range(90)])
    report = examine([str(path)], label="y")
    assert not report.usable and report.command == []
    assert said(report, "error: the label 'y' has 3 values") and not said(report, "invalid")
    report = examine([str(path)], label="y", positive="b")
    assert report.usable and report.label.positives == 30 and report.command[5:7] == ["--positive", "b"]


def test_a_single_class_is_an_error(tmp_path):
    path = write_table(tmp_path / "t.csv", ["x", "y"], [(i % 7, 1) for i in range(90)])
    assert said(examine([str(path)], label="y"), "error: all 90 rows are positive")


def test_few_positives_are_told(tmp_path):
    path = write_table(tmp_path / "t.csv", ["x", "y"], [(i % 7, int(i == 50)) for i in range(90)])
    assert said(examine([str(path)], label="y"), "warning: only 1 of 90 rows is positive")


def test_missing_labels_are_counted(tmp_path):
    path = write_table(tmp_path / "t.csv", ["x", "y"], [(i % 7, "" if i < 5 else i % 2) for i in range(90)])
    report = examine([str(path)], label="y")
    assert report.label.missing == 5 and said(report, "note: 5 of 90 rows have no label")


def test_invalid_rows_are_told_with_their_places(tmp_path):
    path = clicks(tmp_path)
    path.write_text(path.read_text() + "a,b\n" * 2)
    report = examine([str(path)], label="clicked")
    assert report.refused == 2 and report.rows == ROWS and not report.usable
    assert f":{ROWS + 2}:1: this row has 2 cells" in report.problems[0].details[0]
    assert report.command[-4:-2] == ["--max-bad-rows", "2"]
    assert examine([str(path)], label="clicked", max_bad_rows=2).usable


def test_a_quote_that_is_never_closed_leaves_the_rows_before_it(tmp_path):
    path = clicks(tmp_path)
    path.write_text(path.read_text() + '"open,1,2,0\n')
    report = examine([str(path)], label="clicked")
    assert report.rows == ROWS and not report.usable


def test_only_the_first_rows_are_examined(tmp_path):
    report = examine([str(clicks(tmp_path))], rows=100, label="clicked")
    assert report.rows == 100 and not report.complete
    assert report.label.rows == 100
    assert examine([str(clicks(tmp_path))], rows=ROWS, label="clicked").complete


def test_data_without_a_valid_row_are_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1\n2\n")
    with pytest.raises(DataError, match="no valid rows.*\n.*t.csv:2:1: this row has 1 cell,"):
        examine([str(path)])


def test_an_unknown_label_is_refused(tmp_path):
    with pytest.raises(DataError, match="Did you mean 'clicked'"):
        examine([str(clicks(tmp_path))], label="clickd")


def test_compression_is_told(tmp_path):
    path = clicks(tmp_path)
    packed = tmp_path / "clicks.csv.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert examine([str(packed)], label="clicked").compression == "gzip"


# -- rows of features


def test_rows_of_svmlight_are_described(tmp_path):
    draw = random.Random(3)
    path = tmp_path / "t.svm"
    rows = [(draw.choice([1, -1]), draw.sample(range(2, 50), 3)) for _ in range(300)]
    path.write_text("".join(f"{y} " + " ".join(f"{j}:0.5" for j in sorted(x)) + "\n" for y, x in rows) + "1\n")
    report = examine([str(path)])
    assert (report.format, report.rows) == ("svmlight", 301)
    features = report.features
    assert (features.fewest, features.most, features.smallest, features.largest) == (0, 3, 0.5, 0.5)
    assert features.distinct == len({j for _, x in rows for j in x}) and features.empty == 1
    assert report.label.positives == sum(y > 0 for y, _ in rows) + 1
    assert said(report, "1 row has no features")


def test_a_feature_that_gives_the_answer_away_is_named_as_in_the_file(tmp_path):
    path = tmp_path / "t.svm"
    draw = random.Random(3)
    path.write_text("".join(f"{y} {'7:1 ' if y > 0 else ''}{draw.randint(8, 30)}:1\n" for y in [1, -1, -1] * 50))
    assert said(examine([str(path)]), "feature 7 alone has an AUC of 1.0000")
    path.write_text("".join(f"{y} 3:{y + 2 + draw.random():.3f} 9:1\n" for y in [1, -1, -1] * 50))
    assert said(examine([str(path)]), "feature 3 alone has an AUC of 1.0000")


def test_three_labels_of_svmlight_are_told(tmp_path):
    path = tmp_path / "t.svm"
    path.write_text("".join(f"{i % 3} {1 + i % 5}:1\n" for i in range(60)))
    report = examine([str(path)])
    assert not report.usable and "a third label" in report.problems[0].details[0]


def test_namespaces_of_vw_are_described(tmp_path):
    draw = random.Random(3)
    path = tmp_path / "t.vw"
    lines = [f"{draw.choice([1, -1])} |site s{draw.randint(0, 4)} |ad a:0.5 b{draw.randint(0, 30)}" for _ in range(200)]
    path.write_text("\n".join(lines) + "\n")
    report = examine([str(path)])
    assert report.format == "vw" and report.features.most == 3 and report.label.rows == 200
    assert {column.name: column.missing for column in report.columns} == {"site": 0, "ad": 0}
    assert found(report, "site").distinct == 5
    path.write_text("\n".join(f"{line} |y x" if line[0] == "1" else line for line in lines) + "\n")
    assert said(examine([str(path)]), "feature y = x alone has an AUC of 1.0000")


@pytest.mark.parametrize("format", ["jsonl", "parquet"])
def test_a_table_is_the_same_in_every_format(tmp_path, format):
    pandas = pytest.importorskip("pandas")
    path = clicks(tmp_path)
    table = pandas.read_csv(path)
    other = tmp_path / f"clicks.{format}"
    if format == "jsonl":
        table.to_json(other, orient="records", lines=True)
    else:
        pytest.importorskip("pyarrow")
        table.to_parquet(other)
    mine, theirs = examine([str(path)], label="clicked"), examine([str(other)], label="clicked")
    assert theirs.format == format and theirs.label == mine.label and theirs.problems == []
    for name in ("site", "age", "price"):
        assert found(theirs, name).distinct == found(mine, name).distinct
        assert found(theirs, name).missing == found(mine, name).missing
        assert found(theirs, name).auc == pytest.approx(found(mine, name).auc)


# -- parts


@pytest.mark.parametrize(
    ("text", "format"),
    [
        ("1 3:1 4:2\n-1 5:1\n", "svmlight"),
        ('{"a": 1}\n{"a": 2}\n', "jsonl"),
        ("1 |a b c\n-1 |a d\n", "vw"),
        ("a,b\n1,2\n3,4\n", "csv"),
        ("a\tb\n1\t2\n", "csv"),
        ("ham\tsee you there\nspam\twin a prize now\n" * 4, "text"),
        ("PAR1\0\0", "parquet"),
        ("nothing known\nhere is text\n", None),
        ("", None),
    ],
)
def test_a_format_is_recognised_by_its_first_lines(text, format):
    assert format_of_text(text.encode()) == format


def test_a_file_whose_name_says_nothing_is_read_as_what_it_looks_like(tmp_path):
    path = clicks(tmp_path, "clicks.data")
    report = examine([str(path)], label="clicked")
    assert report.format == "csv" and report.needs_format
    assert report.command[3:5] == ["--format", "csv"]


def test_the_score_of_a_column_is_measured_on_other_rows():
    draw = np.random.default_rng(1)
    signs = np.where(draw.random(2000) < 0.1, 1, -1).astype(np.int8)
    ids = Cells(np.arange(2000), np.arange(2000), np.arange(2000, dtype=np.int32))
    assert predictive(ids, signs, None) == pytest.approx(0.5, abs=0.03)
    few = Cells(np.arange(2000), (draw.random(2000) < 0.5).astype(np.int64), np.arange(2, dtype=np.int32))
    assert predictive(few, signs, None) == pytest.approx(0.5, abs=0.05)
    told = Cells(np.arange(2000), (signs > 0).astype(np.int64), np.arange(2, dtype=np.int32))
    assert predictive(told, signs, None) == 1.0
    assert predictive(told, np.abs(signs), None) is None


def test_cells_that_share_a_slot_are_not_missing(tmp_path):
    rows = [(f"a{i}", f"b{i % 50}", i % 3) for i in range(1000)]
    path = write_table(tmp_path / "t.csv", ["u", "v", "w"], rows)
    space = Hashed(13)  # so few slots that many cells share one
    blocks = list(read(path, labels="optional", features=space, categorical=["u", "v", "w"]))
    table = Table(blocks[0], space, ["u", "v", "w"], single=True)
    assert space.names.collisions > 20
    for name in ("v", "w"):
        cells = table.cells(name)
        known = len(np.unique(cells.rows)) + int(table.unknown[table.columns.index(name)])
        assert 985 <= known <= 1000


def test_a_column_may_have_a_caret_in_its_name(tmp_path):
    path = write_table(tmp_path / "t.csv", ["a^b", "y"], [(f"x^{i % 4}", i % 2) for i in range(80)])
    report = examine([str(path)], label="y")
    assert found(report, "a^b").distinct == 4 and found(report, "a^b").examples[0].startswith("x^")
    assert len(report.columns) == 2


def test_memory_is_bounded_by_the_size_of_the_sample(tmp_path, monkeypatch):
    from rarestream.doctor import sample

    monkeypatch.setattr(sample, "MOST_CELLS", 200)
    monkeypatch.setattr(sample, "FEW_ROWS", 50)
    report = examine([str(clicks(tmp_path))], label="clicked")
    assert report.rows < ROWS and not report.complete


def test_records_are_json(tmp_path):
    import json

    record = json.loads(json.dumps(examine([str(clicks(tmp_path))], label="clicked").record(), allow_nan=False))
    assert record["label"]["positive"] == "1" and record["columns"][1]["kind"] == "category"
    assert record["usable"] is True and Path(record["data"][0]).name == "clicks.csv"
