"""`convert`: words, messages and exit codes. What it writes is tested in tests/writers."""

from __future__ import annotations

import gzip
import json

from rarestream import read
from rarestream.blocks import concatenate
from tests import children
from tests.cli.conftest import PROGRAM, process, run
from tests.cli.tables import clicks
from tests.strategies import same_rows


def test_convert_writes_a_file_and_says_what_it_holds(tmp_path):
    path = clicks(tmp_path / "clicks.csv", count=500)
    out = tmp_path / "out.vw.gz"
    done = run("convert", path, out, "--label", "clicked")
    assert done.exit_code == 0 and not done.stderr
    first, *notes = done.stdout.splitlines()
    assert first.startswith(f"{out} written: vw, ") and "500 rows, " in first
    assert notes == ["label 'no' counts as -1 and 'yes' as +1"]
    same_rows(concatenate(read(out)), concatenate(read(path, label="clicked")))


def test_several_files_become_one_and_the_last_word_is_the_output(tmp_path, events):
    out = tmp_path / "out.svm"
    assert run("convert", events, events, out).exit_code == 0
    assert out.read_bytes() == events.read_bytes() * 2
    done = run("convert", events)
    assert done.exit_code == 2 and "Missing argument 'OUT'" in done.stderr


def test_text_goes_to_standard_output_and_messages_do_not(tmp_path):
    path = tmp_path / "rows.svm"
    path.write_text("1 1:1 5:0.5\n-1 2:1\n")
    done = process("convert", path, "-", "--to", "vw")
    assert done.stdout == "1 | 1 5:0.5\n-1 | 2\n"
    assert "standard output written: vw, 19 bytes, 2 rows, 1 positive" in done.stderr
    assert run("convert", "-", "-", "--to", "svmlight", stdin="1 |a x\n-1 |a y\n").exit_code == 3  # svmlight by default
    done = run("convert", "-", "-", "--to", "svmlight", "--format", "vw", stdin="1 |a x\n-1 |a y\n")
    assert done.exit_code == 0 and done.stdout.startswith("+1 ")


def test_convert_as_json(tmp_path):
    path = clicks(tmp_path / "clicks.csv", count=100)
    found = json.loads(run("convert", path, tmp_path / "o.svm", "--label", "clicked", "--json").stdout)
    assert list(found) == ["output", "to", "rows", "positives", "unlabelled", "bytes", "refused", "notes"]
    assert found["bytes"] == (tmp_path / "o.svm").stat().st_size and found["rows"] == 100
    assert run("convert", path, "-", "--to", "vw", "--json").exit_code == 2


def test_an_existing_file_is_replaced_only_if_asked(tmp_path, events):
    out = tmp_path / "out.vw"
    out.write_text("before")
    done = run("convert", events, out)
    assert done.exit_code == 2 and "exists, and is not replaced" in done.stderr and out.read_text() == "before"
    assert run("convert", events, out, "--overwrite").exit_code == 0
    done = run("convert", out, out, "--overwrite")
    assert done.exit_code == 2 and "is also an input file" in done.stderr


def test_bad_words_and_bad_data_have_their_exit_codes(tmp_path):
    path = clicks(tmp_path / "clicks.csv", count=100)
    done = run("convert", path, tmp_path / "o.txt")
    assert done.exit_code == 2 and "Pass --to svmlight|vw|blocks" in done.stderr
    done = run("convert", path, tmp_path / "o.vw")
    assert done.exit_code == 3 and "which column is the label? Pass --label COLUMN" in done.stderr
    path.write_text("y,a\n1,x\n,y\n0,z\n")
    done = run("convert", path, tmp_path / "o.svm", "--label", "y")
    assert done.exit_code == 3 and "clicks.csv:3: this row has no label" in done.stderr
    assert "pass --unlabelled drop" in done.stderr and not (tmp_path / "o.svm").exists()
    done = run("convert", path, tmp_path / "o.svm", "--label", "y", "--unlabelled", "drop")
    assert done.exit_code == 0 and "2 rows, 1 positive, 1 without a label left out" in done.stdout
    done = run("convert", path, tmp_path / "o.vw", "--unlabelled", "all", "--ignore", "y")
    assert done.exit_code == 0 and "3 rows, 3 without a label" in done.stdout
    assert run("convert", tmp_path / "none.csv", tmp_path / "p.vw").exit_code == 1


def test_many_classes_keep_their_numbers(tmp_path):
    path = tmp_path / "rows.svm"
    path.write_text("3 1:1\n1 2:1\n2 1:1\n")
    assert run("convert", path, tmp_path / "o.svm.gz").exit_code == 3
    assert run("convert", path, tmp_path / "o.svm.gz", "--classes", "all").exit_code == 0
    assert gzip.decompress((tmp_path / "o.svm.gz").read_bytes()) == path.read_bytes()


def test_a_reader_that_leaves_ends_it_quietly(events):
    done = children.run(f"{' '.join(PROGRAM)} convert {events} - --to vw | head -1", shell=True)
    assert done.stdout.count("\n") == 1 and "Traceback" not in done.stderr
