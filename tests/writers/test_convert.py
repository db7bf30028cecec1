"""What `convert` refuses, says and leaves behind."""

from __future__ import annotations

import io
import sys

import numpy as np
import pytest

from rarestream import Block, DataError, OutputError, convert, read
from rarestream.blocks import concatenate
from rarestream.writers.svmlight import SvmlightWriter
from rarestream.writers.vw import VwWriter

PARTLY = "y,a\n1,x\n,y\n0,z\n"


def put(path, text):
    path.write_text(text)
    return path


def test_a_row_without_a_label_is_refused_in_svmlight_with_its_place(tmp_path):
    source = put(tmp_path / "t.csv", PARTLY)
    with pytest.raises(DataError, match=r'.*t\.csv:3: this row has no label, which svmlight needs.*unlabelled="drop"'):
        convert(source, tmp_path / "o.svm", label="y")
    assert list(tmp_path.iterdir()) == [source]
    done = convert(source, tmp_path / "o.svm", label="y", unlabelled="drop")
    assert (done.rows, done.unlabelled) == (2, 1)
    assert (tmp_path / "o.svm").read_text().count("\n") == 2


def test_vw_text_keeps_rows_without_a_label_beside_others(tmp_path):
    source = put(tmp_path / "t.csv", PARTLY)
    done = convert(source, tmp_path / "o.vw", label="y")
    assert (done.rows, done.positives, done.unlabelled) == (3, 1, 1)
    assert (tmp_path / "o.vw").read_text() == "1 |a x\n|a y\n-1 |a z\n"
    stream = read(tmp_path / "o.vw", labels="missing")
    assert np.concatenate([block.labels for block in stream.partly_labelled()]).tolist() == [1, 0, -1]
    assert [block.labels for block in read(tmp_path / "o.vw", labels="missing")] == [None]
    assert concatenate(read(tmp_path / "o.vw")).labels.tolist() == [1, -1]


def test_a_table_without_label_must_say_so(tmp_path):
    source = put(tmp_path / "t.csv", PARTLY)
    with pytest.raises(DataError, match="which column is the label"):
        convert(source, tmp_path / "o.vw")
    convert(source, tmp_path / "o.vw", unlabelled="all", ignore=["y"])
    assert (tmp_path / "o.vw").read_text() == "|a x\n|a y\n|a z\n"


def test_a_third_label_is_never_taken_for_a_missing_one(tmp_path):
    source = put(tmp_path / "t.svm", "1 1:1\n-1 2:1\n3 1:1\n")
    with pytest.raises(DataError, match=r"t\.svm:3:1: a third label, 3"):
        convert(source, tmp_path / "o.vw")
    done = convert(source, tmp_path / "o.svm", classes="all")
    assert (tmp_path / "o.svm").read_text() == "1 1:1\n-1 2:1\n3 1:1\n"
    assert done.unlabelled == 0


def test_classes_that_are_text_are_refused(tmp_path):
    source = put(tmp_path / "t.csv", "y,a\ncat,x\ndog,y\n")
    with pytest.raises(DataError, match="the classes are text, such as 'cat', but labels of VW text are numbers"):
        convert(source, tmp_path / "o.vw", label="y", classes="all")


@pytest.mark.parametrize(
    ("to", "tag", "message"),
    [
        ("svm", "abc", "has the tag 'abc', but the qid of svmlight is a whole number"),
        ("svm", "007", "has the tag '007'"),
        ("svm", str(2**63), "has the tag '9223372036854775808'"),
        ("vw", "a b", "has the tag 'a b', but a tag of VW text has no blank"),
        ("vw", "a|b", r"has the tag 'a\|b'"),
    ],
)
def test_a_tag_that_the_format_cannot_hold_is_refused_with_its_place(tmp_path, to, tag, message):
    source = put(tmp_path / "t.csv", f"y,a,id\n1,x,5\n0,y,{tag}\n")
    with pytest.raises(DataError, match=rf"t\.csv:3: this row {message}"):
        convert(source, tmp_path / f"o.{to}", label="y", tag="id")
    assert list(tmp_path.iterdir()) == [source]


def test_notes_say_what_the_format_does_not_hold(tmp_path):
    table = put(tmp_path / "t.csv", "y,my site\n1,New York\n0,b\n")
    (names,) = convert(table, tmp_path / "a.vw", label="y").notes
    assert names.startswith("2 names have characters that VW text cannot hold") and "my site^New York" in names
    notes = convert(table, tmp_path / "b.vw", label="y", bits=18, names=False).notes
    assert "Features have 18 bits: for the same slots, read the file with bits=18." in notes
    assert any(note.startswith("The names of 2 features are not known") for note in notes)
    assert convert(table, tmp_path / "a.svm", label="y").notes == [
        "The names of features are gone: svmlight has the numbers of their slots as columns, from 1."
    ]
    rows = put(tmp_path / "r.svm", "1 1:0 2:1\n-1 3:1\n")
    columns, zeros = convert(rows, tmp_path / "c.vw").notes
    assert "Columns have no names" in columns and zeros == "1 value of 0 is left out: VW text does not have them."
    unlabelled = put(tmp_path / "u.csv", "y,a,w\n1,x,1\n,y,2\n0,z,1\n")
    assert (
        "The importance of 1 row without a label is left out"
        in convert(unlabelled, tmp_path / "u.vw", label="y", importance="w").notes[-1]
    )


def test_a_failure_leaves_the_file_that_was_there_and_nothing_else(tmp_path):
    good = "".join(f"{(-1) ** row} 1:1\n" for row in range(100_000))
    source = put(tmp_path / "t.svm", good + "1 x\n")
    out = put(tmp_path / "o.vw.gz", "before")
    with pytest.raises(DataError, match=r"t\.svm:100001"):
        convert(source, out, overwrite=True)
    assert out.read_text() == "before" and sorted(tmp_path.iterdir()) == [out, source]
    done = convert(source, out, overwrite=True, max_bad_rows=1)
    assert (done.rows, done.refused) == (100_000, 1) and "t.svm:100001" in done.refusals[0]


def test_an_existing_file_and_an_input_are_not_replaced(tmp_path):
    source = put(tmp_path / "t.svm", "1 1:1\n-1 2:1\n")
    out = put(tmp_path / "o.svm", "before")
    with pytest.raises(OutputError, match="exists, and is not replaced.*overwrite=True"):
        convert(source, out)
    with pytest.raises(DataError, match="is also an input file"):
        convert(source, source, overwrite=True)
    assert out.read_text() == "before" and source.read_text() == "1 1:1\n-1 2:1\n"


def test_the_format_follows_from_the_name_or_is_asked_for(tmp_path):
    source = put(tmp_path / "t.svm", "1 1:1\n-1 2:1\n")
    with pytest.raises(DataError, match="the name does not tell the format"):
        convert(source, tmp_path / "o.txt")
    with pytest.raises(DataError, match="to must be one of svmlight, vw, blocks, got 'vvw'. Did you mean 'vw'?"):
        convert(source, tmp_path / "o.txt", "vvw")
    with pytest.raises(DataError, match="blocks cannot be written to a compressed file"):
        convert(source, tmp_path / "o.blocks.gz")
    with pytest.raises(DataError, match="unlabelled must be one of keep, drop, all"):
        convert(source, tmp_path / "o.vw", unlabelled="some")
    assert convert(source, tmp_path / "o.txt", "vw").to == "vw"
    assert (tmp_path / "o.txt").read_text() == "1 | 1\n-1 | 2\n"


def test_the_same_rows_give_the_same_compressed_bytes(tmp_path):
    source = put(tmp_path / "t.svm", "1 1:1\n-1 2:1\n" * 1000)
    for name in ("a.vw.gz", "b.vw.gz"):
        convert(source, tmp_path / name)
    assert (tmp_path / "a.vw.gz").read_bytes() == (tmp_path / "b.vw.gz").read_bytes()


def test_the_core_checks_what_it_writes():
    good = Block.of(np.eye(3), [1, 0, 1])
    for broken in (
        Block(np.array([0, 9, 2, 3]), good.indices, good.values, 3, good.labels),
        Block(good.indptr, np.array([-1, 1, 2], np.int32), good.values, 3, good.labels),
        Block(good.indptr, good.indices, np.array([1, np.nan, 1], np.float32), 3, good.labels),
        Block(good.indptr, good.indices[:2], good.values, 3, good.labels),
    ):
        for writer in (SvmlightWriter, VwWriter):
            with pytest.raises(ValueError):  # noqa: PT011
                writer(io.BytesIO()).write(broken)


def test_memory_does_not_grow_with_the_data(tmp_path):
    """The second of two conversions has eight times the rows, and not much more memory than the first."""
    from tests import children

    code = (
        "import sys; from rarestream import convert\n"
        "convert(sys.argv[1], sys.argv[2], overwrite=True, threads=1)\n"
        # Not ru_maxrss, which a process has from the one that started it.
        "print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))"
    )
    used = []
    for copies in (8, 64):
        source = put(
            tmp_path / "t.vw",
            "".join(f"{(-1) ** row} |a x{row % 9000} |b y:{row % 7}\n" for row in range(20_000)) * copies,
        )
        done = children.run([sys.executable, "-c", code, str(source), str(tmp_path / "o.vw")])
        assert done.returncode == 0, done.stderr
        used.append(int(done.stdout))
    assert used[1] < used[0] + 30_000  # kilobytes
