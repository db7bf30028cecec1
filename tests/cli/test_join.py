"""rarestream join: rows pass as they are written, with their label, from files and pipes; what is wrong is said."""

from __future__ import annotations

import bz2
import csv
import gzip
import json
import os
import random
import signal
from pathlib import Path

import pytest

from rarestream.cli.durations import seconds
from rarestream.cli.parser import UsageError
from tests.cli.conftest import process, run, started
from tests.cli.test_terminal import plain, seen

EVENTS = (
    "id,when,site,price\n"
    'a,2026-01-01T00:00:00Z,"x, y",1.50\n'
    'b,2026-01-01T00:01:00Z,"say ""hi""",2\n'
    "c,2026-01-01T00:02:00Z,z,03\n"
)
LABELS = "id,at\nb,2026-01-01T00:05:00Z\nx,2026-01-01T00:06:00Z\n"
JOINED = (
    "id,when,site,price,label\n"
    'a,2026-01-01T00:00:00Z,"x, y",1.50,0\n'
    'b,2026-01-01T00:01:00Z,"say ""hi""",2,1\n'
    "c,2026-01-01T00:02:00Z,z,03,0\n"
)
JSON_EVENTS = (
    '{"id": "a", "when": "2026-01-01T00:00:00Z", "deep": {"x": [1, {"y": "}"}]}}\n'
    '  {"when": 1767225660, "id": "b", "text": "q\\"}"}  \n'
    '{"id": "c","when":1767225720000}\n'
)
AS_USUAL = ("--key", "id", "--within", "30m")


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        (folder / name.replace("_", ".", 1)).write_bytes(text.encode())


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, events_csv=EVENTS, labels_csv=LABELS, events_jsonl=JSON_EVENTS)


def join(*words: object, events: str = "events.csv", labels: str = "labels.csv", stdin: str | None = None):
    return run("join", events, labels, *AS_USUAL, *words, stdin=stdin)


# -- text


def test_rows_are_passed_on_byte_for_byte_with_a_cell_added():
    ended = join()
    assert ended.stdout == JOINED
    assert ended.exit_code == 0


def test_it_says_what_it_did_and_which_columns_are_the_times():
    assert join().stderr.splitlines()[:2] == [
        "The times of events.csv are in its column when (--time).",
        "The times of labels.csv are in its column at (--label-time).",
    ]
    said = join("--time", "when", "--label-time", "at").stderr
    assert "column" not in said
    assert "3 events and 2 labels in" in said and "3 rows written" in said
    assert "1 with a label (33.3 %)" in said and "2 without a label: negative" in said
    assert "1 not used: a label without an event" in said
    assert join("--quiet").stderr == ""


@pytest.mark.parametrize("end", ["\r\n", "\n"])
def test_line_ends_stay(end: str, tmp_path: Path):
    write(tmp_path, events_csv=EVENTS.replace("\n", end))
    assert join().stdout == JOINED.replace("\n", end)


def test_a_last_line_without_a_line_end_gets_one(tmp_path: Path):
    write(tmp_path, events_csv=EVENTS.rstrip("\n"))
    assert join().stdout == JOINED


def test_tab_separated_rows_and_quotes_as_ordinary_characters(tmp_path: Path):
    (tmp_path / "e.tsv").write_text('id\twhen\tsize\na\t2026-01-01\t5" pipe\nb\t2026-01-01\t"\n')
    ended = join("--no-quoting", "--within", "2d", events="e.tsv")
    assert ended.stdout == 'id\twhen\tsize\tlabel\na\t2026-01-01\t5" pipe\t0\nb\t2026-01-01\t"\t1\n'


def test_a_cell_of_several_lines_stays_whole(tmp_path: Path):
    write(tmp_path, events_csv='id,when,text\n"b",2026-01-01T00:00:00,"two\nlines, ""one"" cell"\n')
    assert join().stdout == 'id,when,text,label\n"b",2026-01-01T00:00:00,"two\nlines, ""one"" cell",1\n'


def test_objects_get_one_key_more_and_are_otherwise_as_they_were():
    ended = join("--time", "when", "--label-time", "at", "--as", "clicked", events="events.jsonl")
    lines = JSON_EVENTS.split("\n")
    assert ended.stdout.split("\n") == [
        lines[0][:-1] + ',"clicked":0}',
        lines[1].rstrip()[:-1] + ',"clicked":1}',
        lines[2][:-1] + ',"clicked":0}',
        "",
    ]
    assert [json.loads(line)["clicked"] for line in ended.stdout.splitlines()] == [0, 1, 0]


def test_the_two_formats_may_differ_and_are_found_without_suffixes(tmp_path: Path):
    (tmp_path / "clicks").write_text('{"id": "b", "at": 1767225900}\n')
    (tmp_path / "log").write_text(EVENTS)
    assert join("--label-time", "at", events="log", labels="clicks").stdout == JOINED


def test_compressed_files_are_read_and_written(tmp_path: Path):
    (tmp_path / "e.csv.gz").write_bytes(gzip.compress(EVENTS.encode()))
    (tmp_path / "l.csv.bz2").write_bytes(bz2.compress(LABELS.encode()))
    assert join("-o", "out.csv.gz", events="e.csv.gz", labels="l.csv.bz2").exit_code == 0
    assert gzip.decompress((tmp_path / "out.csv.gz").read_bytes()).decode() == JOINED


def test_files_without_a_heading(tmp_path: Path):
    write(tmp_path, events_csv=EVENTS.partition("\n")[2], labels_csv=LABELS.partition("\n")[2])
    ended = join("--columns", "id,when,site,price", "--label-columns", "id,at")
    assert ended.stdout == JOINED.partition("\n")[2]


def test_several_files_of_events_have_one_heading(tmp_path: Path):
    heading, first, *rest = EVENTS.splitlines(keepends=True)
    (tmp_path / "day1.csv").write_text(heading + first)
    (tmp_path / "day2.csv").write_text(heading + "".join(rest))
    assert join(events="day*.csv").stdout == JOINED
    (tmp_path / "day3.csv").write_text("when,id\n")
    assert "day3.csv: has other columns" in join(events="day*.csv").stderr


# -- labels


def test_labels_are_written_as_they_are(tmp_path: Path):
    write(tmp_path, labels_csv="id,at,bought\na,2026-01-01T00:05:00Z,1\nb,2026-01-01T00:05:00Z,0\n")
    assert [line.rpartition(",")[2] for line in join("--label", "bought").stdout.splitlines()] == [
        "bought",
        "1",
        "0",
        "0",
    ]


def test_a_positive_label_is_1_and_all_others_0(tmp_path: Path):
    write(tmp_path, labels_csv="id,at,what\na,2026-01-01T00:05:00Z,buy\nb,2026-01-01T00:05:00Z,nan\n")
    found = join("--label", "what", "--positive", "buy").stdout
    assert [line.rpartition(",")[2] for line in found.splitlines()] == ["what", "1", "0", "0"]


def test_text_that_could_not_be_told_from_a_negative_is_an_error(tmp_path: Path):
    write(tmp_path, labels_csv='id,at,what\na,2026-01-01T00:05:00Z,"buy, now"\n')
    ended = join("--label", "what")
    assert (ended.exit_code, ended.stdout) == (
        3,
        "",
    ) and "labels.csv:2: the label 'buy, now' is neither 0 nor 1" in ended.stderr
    assert "--positive VALUE" in ended.stderr and "--unmatched drop" in ended.stderr
    dropped = join("--label", "what", "--unmatched", "drop")
    assert dropped.stdout == 'id,when,site,price,what\na,2026-01-01T00:00:00Z,"x, y",1.50,"buy, now"\n'
    assert "2 without a label: dropped" in dropped.stderr


@pytest.mark.parametrize(
    ("text", "value"), [("1", 1), ("-1.5e3", -1500.0), ("true", True), ("007", "007"), ('q"', 'q"')]
)
def test_a_label_in_an_object_is_a_number_where_it_is_one(text: str, value: object, tmp_path: Path):
    with open("labels.csv", "w", newline="") as file:
        csv.writer(file).writerows([["id", "at", "what"], ["b", "2026-01-01T00:05:00Z", text]])
    found = join(
        "--time", "when", "--label-time", "at", "--label", "what", "--unmatched", "drop", events="events.jsonl"
    )
    assert json.loads(found.stdout)["what"] == value


# -- what is wrong


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--key", "idd"), "--key names the column 'idd', which is not there. Did you mean 'id'?"),
        (("--time", "then"), "events.csv: --time names the column 'then'"),
        (("--label", "what"), "labels.csv: --label names the column 'what'"),
        (("--label-key", "k"), "labels.csv: --label-key names the column 'k'"),
        (("--as", "site"), "events.csv:1: there is a column 'site' already."),
        (("--time", "site"), "events.csv:2:1: 'x, y' in 'site' is no time: an ISO date"),
    ],
)
def test_wrong_columns_are_named(words: tuple[str, ...], said: str):
    ended = join(*words)
    assert (ended.exit_code, ended.stdout) == (3, "")
    assert said in ended.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--within", "30"), "30 needs a unit: 30s, 30m, 30h or 30d"),
        (("--within", "0s"), "such as 30s, 30m, 12h or 7d"),
        (("--disorder", "soon"), "'--disorder'"),
        (("--memory", "much"), "such as 500M or 4G"),
        (("--positive", "1"), "needs --label"),
        (("--label", "at", "--positive", "nan"), "must be a number or a text"),
        (("--unmatched", "positive"), "one of negative, drop"),
        (("--label", "id"), "is the key already"),
        (("--time", "id"), "is the key already"),
        (("--temporary", "nowhere"), "not a folder"),
        (("-o", "events.csv", "--overwrite"), "is also an input file"),
    ],
)
def test_wrong_usage_is_said(words: tuple[str, ...], said: str):
    ended = join(*words)
    assert ended.exit_code == 2 and said in " ".join(ended.stderr.split())
    assert Path("events.csv").read_text() == EVENTS


def test_both_cannot_be_standard_input():
    assert join(events="-", labels="-").exit_code == 2


def test_a_time_that_is_not_named_must_be_the_only_one(tmp_path: Path):
    write(tmp_path, events_csv="id,from,to\na,2026-01-01,2026-01-02\n")
    assert "2 columns hold dates (from, to). Name the one with the time of the row: --time COLUMN." in join().stderr
    write(tmp_path, events_csv=EVENTS, labels_csv="id,n\nb,5\n")
    ended = join()
    assert (
        "labels.csv: no column holds dates (columns: id, n)." in ended.stderr and "--label-time COLUMN" in ended.stderr
    )
    assert ended.exit_code == 3


def test_the_time_of_labels_has_the_name_of_that_of_events(tmp_path: Path):
    write(tmp_path, events_csv="id,ts\na,1767225600\n", labels_csv="id,ts,n\na,1767225601,7\n")
    assert join("--time", "ts").stdout == "id,ts,label\na,1767225600,1\n"


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("e,2026-13-01T00:00:00Z,x,1", "events.csv:5:1: '2026-13-01T00:00:00Z' in 'when' is no time"),
        (",2026-01-01T00:03:00Z,x,1", "events.csv:5:1: the key 'id' is missing"),
        ("e,,x,1", "events.csv:5:1: the time 'when' is missing"),
        ("e,2026-01-01T00:03:00Z,x", "events.csv:5:1: this row has 3 cells, but there are 4 columns"),
        ('e,2026-01-01T00:03:00Z,"x"y,1', "events.csv:5:27: text after a closing quote"),
        ("e,2025-12-31T12:00:00Z,x,1", "events.csv:5: its time, 2025-12-31T12:00:00Z, is 12h before the latest so far"),
        (
            "e,2099-01-01T00:00:00Z,x,1",
            "events.csv:5: its time, 2099-01-01T00:00:00Z, is 26663d after the latest so far",
        ),
    ],
)
def test_invalid_rows_are_an_error_or_skipped_and_counted(row: str, said: str, tmp_path: Path):
    last = "d,2026-01-01T00:03:00Z,x,1\n"
    write(tmp_path, events_csv=EVENTS + row + "\n" + last)
    ended = join("-o", "out.csv")
    assert ended.exit_code == 3 and said in ended.stderr
    assert not Path("out.csv").exists()
    ended = join("--max-bad-rows", "1")
    assert ended.stdout == JOINED + last.replace("\n", ",0\n")
    assert "1 invalid row was skipped" in ended.stderr and said in ended.stderr
    assert ended.exit_code == 0


def test_labels_out_of_order_name_the_option_that_allows_it(tmp_path: Path):
    write(tmp_path, labels_csv="id,at\nb,2026-01-01T00:25:00Z\na,2026-01-01T00:05:00Z\n")
    ended = join()
    assert ended.exit_code == 3 and "labels.csv:3: its time, 2026-01-01T00:05:00Z, is 20m before" in ended.stderr
    assert "--disorder 20m" in ended.stderr
    assert join("--disorder", "20m").stdout.count(",1\n") == 2


def test_a_row_that_has_the_new_key_already_is_an_error(tmp_path: Path):
    write(tmp_path, events_jsonl='{"id": "a", "when": "2026-01-01"}\n{"id": "b", "when": "2026-01-01", "label": 1}\n')
    ended = join(events="events.jsonl")
    assert ended.exit_code == 3 and "events.jsonl:2:1: there is a column 'label' already" in ended.stderr


def test_a_key_that_is_no_single_value_is_an_error(tmp_path: Path):
    write(tmp_path, events_jsonl='{"id": ["a"], "when": "2026-01-01"}\n')
    assert "'id' is a list or an object" in join(events="events.jsonl").stderr


def test_other_formats_are_refused(tmp_path: Path):
    (tmp_path / "rows.svm").write_text("1 1:1\n")
    ended = join(events="rows.svm")
    assert ended.exit_code == 3 and "rows.svm: is in the format svmlight" in ended.stderr


def test_no_events_and_no_labels(tmp_path: Path):
    (tmp_path / "empty.csv").write_text("")
    assert "empty.csv: is empty" in join(events="empty.csv").stderr
    assert join(labels="empty.csv").stdout.count(",0\n") == 3
    write(tmp_path, labels_csv="id,at\n")
    assert join().stdout.count(",0\n") == 3
    write(tmp_path, events_csv="id,when\n")
    assert join().stdout == "id,when,label\n"


def test_keys_that_never_agree_are_warned_of(tmp_path: Path):
    write(tmp_path, labels_csv="id,at\nq,2026-01-01T00:05:00Z\n")
    assert "no event has a label. Check that the keys are the same" in join().stderr


def test_an_output_file_is_replaced_only_if_that_is_asked_for(tmp_path: Path):
    (tmp_path / "out.csv").write_text("before")
    assert join("-o", "out.csv").exit_code == 2 and (tmp_path / "out.csv").read_text() == "before"
    assert join("-o", "out.csv", "--overwrite").exit_code == 0 and (tmp_path / "out.csv").read_text() == JOINED


# -- summary


def test_the_summary_as_json():
    ended = join("--json")
    assert ended.stdout == JOINED
    record = json.loads(ended.stderr)
    assert {name: record[name] for name in ("events", "labels", "matched", "unmatched", "written")} == {
        "events": 3, "labels": 2, "matched": 1, "unmatched": 2, "written": 3,
    }  # fmt: skip
    assert (record["time"], record["label_time"], record["labels_without_event"]) == ("when", "at", 1)
    ended = join("--json", "-o", "out.csv")
    assert json.loads(ended.stdout)["matched"] == 1 and ended.stderr == ""


def test_everything_fits_in_a_terminal_of_80_columns():
    code, text = seen(80, "join", "events.csv", "labels.csv", *AS_USUAL, "-o", "out.csv")
    assert code == 0 and "1 with a label" in text
    assert max(len(line) for line in plain(text).replace("\r", "\n").split("\n")) <= 80
    code, text = seen(80, "join", "-h")
    assert code == 0 and max(len(line.rstrip()) for line in text.split("\n")) <= 80


# -- pipes and processes


def test_standard_input_may_be_either(tmp_path: Path):
    assert join(events="-", stdin=EVENTS).stdout == JOINED
    assert join(labels="-", stdin=LABELS).stdout == JOINED


def test_rows_of_pipes_are_written_as_soon_as_they_are_decided(tmp_path: Path):
    os.mkfifo("clicks")
    words = ("join", "-", "clicks", *AS_USUAL, "--disorder", "0", "-q", "--order", "match")
    with started(*words, stdin=-1) as child, open("clicks", "w") as clicks:
        child.stdin.write(EVENTS)
        child.stdin.flush()
        assert child.line() == "id,when,site,price,label\n"
        clicks.write("id,at\nc,2026-01-01T00:03:00Z\n")
        clicks.flush()
        assert child.line() == "c,2026-01-01T00:02:00Z,z,03,1\n"  # while a label of the others may still come
        clicks.write("x,2026-01-01T00:30:30Z\n")
        clicks.flush()
        assert child.line() == 'a,2026-01-01T00:00:00Z,"x, y",1.50,0\n'
        clicks.close()
        assert child.line() == 'b,2026-01-01T00:01:00Z,"say ""hi""",2,0\n'
        child.stdin.close()
        assert child.wait() == 0


def test_a_reader_that_leaves_is_no_error():
    write(Path(), events_csv=EVENTS + "".join(f"{i},2026-01-01T00:03:00Z,x,1\n" for i in range(200_000)))
    program = started("join", "events.csv", "labels.csv", *AS_USUAL, "-q")
    with program as child:
        child.line()
        child.stdout.close()
        assert child.wait() == 141


def test_an_interrupt_leaves_no_output_file():
    with started("join", "-", "labels.csv", *AS_USUAL, "-o", "out.csv", stdin=-1) as child:
        child.stdin.write(EVENTS)
        child.stdin.flush()
        child.line("stderr")  # rows have been read
        child.send_signal(signal.SIGINT)
        assert child.wait() == 130
    assert sorted(path.name for path in Path().iterdir()) == ["events.csv", "events.jsonl", "labels.csv"]


def test_a_kill_leaves_no_output_file(tmp_path: Path):
    with started("join", "-", "labels.csv", *AS_USUAL, "-o", "out.csv", stdin=-1) as child:
        child.stdin.write(EVENTS)
        child.stdin.flush()
        child.line("stderr")  # rows have been read
        child.send_signal(signal.SIGKILL)
        child.wait()
    assert not Path("out.csv").exists()
    assert join("-o", "out.csv").exit_code == 0  # which removes what was left
    assert sorted(path.name for path in tmp_path.iterdir()) == ["events.csv", "events.jsonl", "labels.csv", "out.csv"]


# -- the whole way


def big(rows: int) -> tuple[str, str, str]:
    """Events, labels, and the events with their labels."""
    generator = random.Random(5)
    events, direct, labels = ["id,ts,site,price\n"], ["id,ts,site,price,clicked\n"], []
    for number in range(rows):
        time, site = 1767225600 + number, generator.randrange(9)
        clicked = int(generator.random() < (0.4 if site < 3 else 0.05))
        row = f"k{number},{time},s{site},{generator.random():.4f}"
        events.append(row + "\n")
        direct.append(f"{row},{clicked}\n")
        if clicked:
            labels.append((time + generator.random() * 1000, f"k{number}"))
    text = "id,ts\n" + "".join(f"{key},{time:.3f}\n" for time, key in sorted(labels))
    return "".join(events), text, "".join(direct)


@pytest.mark.parametrize("memory", ["500M", "50K"])
def test_a_model_of_joined_rows_is_that_of_labelled_rows(memory: str, tmp_path: Path):
    events, labels, direct = big(8000)
    write(tmp_path, events_csv=events, labels_csv=labels, direct_csv=direct)
    words = ("--time", "ts", "--as", "clicked", "--memory", memory)
    assert join(*words, "-o", "joined.csv").exit_code == 0
    assert (tmp_path / "joined.csv").read_text() == direct
    for name in ("joined", "direct"):
        (tmp_path / name).mkdir()
        os.replace(f"{name}.csv", f"{name}/rows.csv")
        os.chdir(name)
        assert run("train", "rows.csv", "--label", "clicked", "--learner", "dual-auc", "-o", "m.rare").exit_code == 0
        os.chdir("..")
    assert (tmp_path / "joined" / "m.rare").read_bytes() == (tmp_path / "direct" / "m.rare").read_bytes()


@pytest.mark.parametrize("chunk", [64, 1000])
def test_where_chunks_end_does_not_matter(chunk: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("rarestream.readers.picking.CHUNK", chunk)
    events, labels, direct = big(1500)
    write(Path(), events_csv=events, labels_csv=labels)
    assert join("--time", "ts", "--as", "clicked").stdout == direct
    lines = events.splitlines(keepends=True)
    lines.insert(700, "early,1700000000,s1,1\n")
    lines.insert(900, "ahead,1900000000,s1,1\n")
    write(Path(), events_csv="".join(lines))
    ended = join("--time", "ts", "--as", "clicked", "--max-bad-rows", "2")
    assert ended.stdout == direct
    assert "events.csv:701: its time, 2023-11-14" in ended.stderr
    assert "events.csv:901: its time, 2030-03-17" in ended.stderr


def test_it_ends_in_a_pipe_to_train():
    events, labels, _ = big(500)
    write(Path(), events_csv=events, labels_csv=labels)
    joined = process("join", "events.csv", "labels.csv", *AS_USUAL, "--time", "ts", "--as", "clicked", "-q")
    ended = process(
        "train", "-", "--format", "csv", "--label", "clicked", "-o", "m.rare", input=joined.stdout, stdin=None
    )
    assert ended.returncode == 0, ended.stderr


# -- durations


@pytest.mark.parametrize(
    ("text", "length"),
    [("30s", 30), ("30m", 1800), ("12h", 43200), ("7d", 604800), ("1.5h", 5400), ("250ms", 0.25), ("2w", 1209600)],
)
def test_lengths_of_time(text: str, length: float):
    assert seconds(text) == length


@pytest.mark.parametrize("text", ["", "m", "-5m", "5 minutes", "nan s", "inf", "1e400s", "5M", "0"])
def test_what_is_no_length_of_time(text: str):
    with pytest.raises(UsageError):
        seconds(text, "--within")
    assert seconds("0", zero=True) == 0
