"""The cache of `read`: a second pass gives what the first one gave, and a cache that does not fit is never used."""

from __future__ import annotations

import gzip
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rarestream import DataError, Hashed, MissingExtraError, Model, OneVsRest, read
from rarestream.evaluate import TrainingRun, place_in, reading_settings, train
from rarestream.readers import Stream, cache
from rarestream.readers.formats import find_format
from rarestream.readers.sources import expand
from rarestream.writers import blocks as writer

pyarrow = pytest.importorskip("pyarrow")

LONG_AGO = 1_700_000_000


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few hundred rows make several batches."""
    monkeypatch.setattr(writer, "BATCH_ROWS", 64)


def settled(path: Path, seconds: int = LONG_AGO) -> Path:
    """The file, last changed long ago: its time of change can be trusted."""
    os.utime(path, (seconds, seconds))
    return path


def caches(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.blocks"))


def left(folder: Path) -> list[str]:
    """Files that are neither data nor caches."""
    return sorted(path.name for path in folder.iterdir() if path.name.endswith(".part"))


# -- the same rows in every format


def svmlight(folder: Path, rows: int = 300) -> tuple[list[Path], dict[str, Any]]:
    rng = random.Random(1)
    lines = ["# a comment\n", "\n"]
    for row in range(rows):
        features = sorted(rng.sample(range(1, 90), rng.randint(0, 12)))
        words = [rng.choice(["1", "-1", "-1"]), f"qid:{row // 7}"] + ([f"cost:{row % 3 + 0.5}"] if row > 200 else [])
        words += [f"{index}:{rng.choice(['1', '0.5', '-2.25', '1e-30'])}" for index in features]
        lines.append(" ".join(words) + ("\n\n" if row % 50 == 0 else "\n"))
        if row % 90 == 8:
            lines.append("1 broken\n")
    path = folder / "t.svm"
    path.write_text("".join(lines))
    return [path], {"max_bad_rows": 9}


def zero_based(folder: Path) -> tuple[list[Path], dict[str, Any]]:
    path = folder / "zero.svm"
    path.write_text("".join(f"{row % 5 == 0:d} 0:1 {row % 11 + 1}:2\n" for row in range(200)))
    return [path], {}


def vw(folder: Path) -> tuple[list[Path], dict[str, Any]]:
    rng = random.Random(2)
    lines = []
    for row in range(300):
        label = rng.choice(["1", "-1", "-1", ""])
        importance = f" {row % 4 + 1}" if label and row > 150 else ""
        tag = f" 'r{row}" if row % 3 else ""
        lines.append(f"{label}{importance}{tag}|site s{rng.randint(0, 80)} |user u{row}:0.5 age:{row % 9}\n")
    path = folder / "t.vw"
    path.write_text("".join(lines))
    return [path], {"bits": 6}  # so few slots that names collide


TABLE_OPTIONS = {"label": "clicked", "text": ("title",), "crosses": ("site*age",), "importance": "w", "tag": "id"}


def table_rows(rows: int = 300) -> list[dict[str, Any]]:
    rng = random.Random(3)
    return [
        {
            "clicked": rng.choice(["yes", "no", "no", "no", None] if row else ["no"]),
            "site": f"s{rng.randint(0, 60)}.com",
            "age": rng.randint(1, 90),
            "price": rng.choice([None, round(rng.random() * 100, 3)]),
            "title": rng.choice(["hello world", 'say "hi", you', "two\nlines", "café 漢字"]),
            "w": rng.choice([1.0, 2.5]),
            "id": f"row {row}",
        }
        for row in range(rows)
    ]


def csv(folder: Path, name: str = "t.csv") -> tuple[list[Path], dict[str, Any]]:
    import csv

    rows = table_rows()
    path = folder / name
    with path.open("w", newline="", encoding="utf-8") as out:
        lines = csv.writer(out)
        lines.writerow(rows[0])
        lines.writerows(["" if cell is None else cell for cell in row.values()] for row in rows)
    return [path], dict(TABLE_OPTIONS)


def many_csv(folder: Path) -> tuple[list[Path], dict[str, Any]]:
    (whole,), options = csv(folder)
    return [whole, settled(csv(folder, "u.csv")[0][0]), settled(csv(folder, "v.csv")[0][0])], options


def csv_gz(folder: Path) -> tuple[list[Path], dict[str, Any]]:
    (plain,), options = csv(folder)
    path = folder / "t.csv.gz"
    path.write_bytes(gzip.compress(plain.read_bytes()))
    return [path], options


def jsonl(folder: Path) -> tuple[list[Path], dict[str, Any]]:
    path = folder / "t.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in table_rows()))
    return [path], dict(TABLE_OPTIONS)


def parquet(folder: Path) -> tuple[list[Path], dict[str, Any]]:
    import pyarrow.parquet

    path = folder / "t.parquet"
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(table_rows()), path, row_group_size=70)
    return [path], dict(TABLE_OPTIONS)


def feather(folder: Path) -> tuple[list[Path], dict[str, Any]]:
    import pyarrow.feather

    path = folder / "t.feather"
    pyarrow.feather.write_feather(pyarrow.Table.from_pylist(table_rows()), str(path), chunksize=40)
    return [path], dict(TABLE_OPTIONS)


def text(folder: Path) -> tuple[list[Path], dict[str, Any]]:
    rng = random.Random(4)
    words = [f"word{number}" for number in range(200)]
    path = folder / "t.text"
    path.write_text(
        "".join(f"{rng.choice(['spam', 'ham', 'ham', ''])}\t{' '.join(rng.choices(words, k=9))}\n" for _ in range(300))
    )
    return [path], {"ngrams": "words:1-2"}


Door = Callable[[Path], tuple[list[Path], dict[str, Any]]]
DOORS: list[Door] = [svmlight, zero_based, vw, csv, many_csv, csv_gz, jsonl, parquet, feather, text]


def opened(paths: list[Path], features: Any = None, chunk: int = 1500, **options: Any) -> Stream:
    """A stream in chunks so small that there are many."""
    sources = expand([str(path) for path in paths])
    format = find_format(None, sources)
    return Stream(sources, format, format.make_options(**options), rows=50, chunk=chunk, features=features)


def told(stream: Stream) -> dict[str, Any]:
    """All that a stream tells after a pass, apart from its cache."""
    names = None
    if isinstance(stream.features, Hashed) and stream.features.names is not None:
        table = stream.features.names
        slots = np.arange(stream.features.slots, dtype=np.int32)
        arrays = [part.tobytes() for part in table.to_arrays(slots, True)]
        names = [arrays, table.collisions, table.full, table.lost_slots().tobytes()]
    return {
        "settings": stream.settings, "sources": stream.sources, "notes": stream.notes, "facts": stream.facts,
        "refused": stream.refused, "refusals": stream.refusals, "unlabelled": stream.unlabelled,
        "unfinished": stream.unfinished, "fraction": stream.fraction, "names": names,
        "plan": getattr(getattr(stream.features, "plan", None), "settings", lambda: None)(),
    }  # fmt: skip


def rows_of(stream: Stream) -> list[tuple[Any, ...]]:
    """Every row of a pass: features, label, importance, tag, and its place."""
    found = []
    for block in stream:
        for row in range(len(block)):
            part = slice(block.indptr[row], block.indptr[row + 1])
            found.append(
                (
                    block.indices[part].tobytes(),
                    block.values[part].tobytes(),
                    None if block.labels is None else int(block.labels[row]),
                    1.0 if block.importances is None else float(block.importances[row]),
                    None if block.tags is None or block.tags[row] in ("", -1) else block.tags[row].item(),
                    None if block.classes is None else block.classes[row].item(),
                    stream.where(row),
                )
            )
    return found


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
def test_a_cache_gives_what_its_source_gave(door: Door, tmp_path: Path) -> None:
    paths, options = door(tmp_path)
    settled(paths[0])
    plain = opened(paths, **options)
    rows = rows_of(plain)
    truth = told(plain)
    for turn in ("made", "read from this cache"):
        stream = opened(paths, cache=True, **options)
        assert rows_of(stream) == rows
        assert told(stream) == truth
        assert len(stream.cache_notes) == 1 and turn in stream.cache_notes[0]
    assert len(caches(tmp_path)) == 1


@pytest.mark.parametrize("more", [{}, {"passes": 3}, {"shuffle": 5}, {"threads": 0}], ids=str)
@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
def test_a_model_of_a_cache_is_that_of_its_source(door: Door, more: dict[str, Any], tmp_path: Path) -> None:
    paths, options = door(tmp_path)
    passes = more.get("passes", 1)
    options |= {word: value for word, value in more.items() if word != "passes"}

    def trained(**cached: Any) -> bytes:
        model = Model("dual-auc")
        train(model, opened(paths, **options, **cached), passes=passes)
        return model.to_bytes()

    truth = trained()
    assert [trained(cache=True), trained(cache=True)] == [truth, truth]


def test_the_order_of_a_shuffle_is_not_part_of_a_cache(tmp_path: Path) -> None:
    paths, options = csv(tmp_path)
    rows_of(opened(paths, cache=True, **options))
    for seed in (1, 2):
        stream = opened(paths, cache=True, shuffle=seed, **options)
        assert rows_of(stream) == rows_of(opened(paths, shuffle=seed, **options))
        assert "read from this cache" in stream.cache_notes[0]


def test_many_classes_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "t.svm"
    path.write_text("".join(f"{row % 3 if row < 200 else row % 3 + 0.5} {row % 7 + 1}:1\n" for row in range(300)))
    truth = None
    for cached in (False, True, True):
        stream = opened([path], cache=cached, classes="all")
        model = OneVsRest()
        for block in stream:
            model.learn(block)
        found = rows_of(stream), told(stream), model.to_bytes()
        truth = truth or found
        assert found == truth


def test_rows_without_labels_are_kept(tmp_path: Path) -> None:
    paths, options = vw(tmp_path)
    truth = rows_of(opened(paths, labels="optional", **options))
    assert any(row[2] is None for row in truth)
    for _ in range(2):
        assert rows_of(opened(paths, cache=True, labels="optional", **options)) == truth


def test_a_model_resumes_from_a_cache(tmp_path: Path) -> None:
    paths, options = csv(tmp_path)
    settled(paths[0])

    def resumed(**cached: Any) -> bytes:
        model = Model("dual-auc")
        for _ in TrainingRun(model, opened(paths, **options, **cached), max_rows=100):
            pass
        model = Model.from_bytes(model.to_bytes())
        place = place_in(model.source, expand([str(path) for path in paths]))
        settings = {word: value for word, value in place.settings.items() if word != "format"}
        for _ in TrainingRun(model, opened(paths, features=model.features, **settings, **cached), place=place):
            pass
        return model.to_bytes()

    truth = resumed()
    assert resumed(cache=True) == truth
    assert len(caches(tmp_path)) == 1  # made when the model resumed
    rows_of(opened(paths, cache=True, **options))
    assert resumed(cache=True) == truth


def test_skipped_rows_are_part_of_the_cache(tmp_path: Path) -> None:
    paths, options = jsonl(tmp_path)
    truth = rows_of(opened(paths, **options))
    assert rows_of(opened(paths, cache=True, **options).skip(130)) == truth[130:]
    assert rows_of(opened(paths, cache=True, **options)) == truth
    assert rows_of(opened(paths, cache=True, **options).skip(99)) == truth[99:]


def test_names_beyond_their_memory_are_lost_alike(tmp_path: Path) -> None:
    paths, _ = vw(tmp_path)
    truth = None
    for cached in (False, True, True):
        stream = opened(paths, Hashed(10, name_bytes=6000), cache=cached)
        rows = rows_of(stream)
        assert isinstance(stream.features, Hashed) and stream.features.names is not None and stream.features.names.lost
        truth = truth or (rows, told(stream))
        assert (rows, told(stream)) == truth
    known = Hashed(10, name_bytes=6000)  # knows names already: which others find room is not in the cache
    known.names.add(_new_names())  # type: ignore[union-attr]
    stream = opened(paths, known, cache=True)
    assert rows_of(stream) == truth[0]  # type: ignore[index]
    assert not any("read from" in note for note in stream.cache_notes)


def _new_names() -> Any:
    from rarestream import _native

    names = _native.NewNames()
    names.add(b"site", b"another")
    return names


# -- who may use a cache


def test_a_model_evaluates_and_resumes_on_the_cache_of_its_training(tmp_path: Path) -> None:
    for door in DOORS:
        folder = tmp_path / door.__name__
        folder.mkdir()
        paths, options = door(folder)
        model = Model("dual-auc")
        train(model, opened(paths, cache=True, finished=False, **options))
        allowed = {word: options[word] for word in ("max_bad_rows",) if word in options}
        settings = reading_settings(model.source, expand([str(path) for path in paths]))
        again = opened(paths, features=model.features, cache=True, **settings, **allowed)
        plain = opened(paths, features=model.features, **settings, **allowed)
        assert rows_of(again) == rows_of(plain)
        assert (told(again)["notes"], told(again)["settings"]) == (told(plain)["notes"], told(plain)["settings"])
        used = "read from this cache" in again.cache_notes[0]
        assert used == (door is not svmlight)  # which has refused rows: with known labels, their messages are others


def test_a_cache_is_used_under_every_name_of_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (path,), options = svmlight(tmp_path)
    first = opened([path], cache=True, **options)
    rows_of(first)
    monkeypatch.chdir(tmp_path)
    truth = opened([Path(path.name)], **options)
    rows, stream = rows_of(truth), opened([Path(path.name)], cache=True, **options)
    assert rows_of(stream) == rows and rows[0][-1] == "t.svm:3"
    assert told(stream) == told(truth)
    assert stream.refusals[0].startswith("t.svm:13:")
    assert "read from" in stream.cache_notes[0]


@pytest.mark.parametrize(
    "more",
    [
        {"positive": -1.0}, {"zero_based": True, "max_bad_rows": 20}, {"classes": ("-1", "1")}, {"labels": "optional"},
        {"classes": "all"},
    ],
    ids=str,
)  # fmt: skip
def test_other_options_get_a_cache_of_their_own(more: dict[str, Any], tmp_path: Path) -> None:
    paths, options = svmlight(tmp_path)
    rows_of(opened(paths, cache=True, **options))
    for turn in ("cache made", "read from"):
        stream = opened(paths, cache=True, **options | more)
        assert rows_of(stream) == rows_of(opened(paths, **options | more))
        assert turn in stream.cache_notes[0]
    assert len(caches(tmp_path)) == 2


@pytest.mark.parametrize(
    "more", [{"bits": 10}, {"names": False}, {"numbers": "raw"}, {"positive": "no"}, {"tag": None}],
    ids=str,
)  # fmt: skip
def test_other_options_of_a_table_get_a_cache_of_their_own(more: dict[str, Any], tmp_path: Path) -> None:
    paths, options = csv(tmp_path)
    rows_of(opened(paths, cache=True, **options))
    stream = opened(paths, cache=True, **options | more)
    assert rows_of(stream) == rows_of(opened(paths, **options | more))
    if "names" in more:  # which are then left out
        assert "read from" in stream.cache_notes[0] and stream.features.names is None  # type: ignore[union-attr]
    else:
        assert "cache made" in stream.cache_notes[0]


def test_names_are_not_missing_from_a_cache_that_was_made_without(tmp_path: Path) -> None:
    paths, options = csv(tmp_path)
    rows_of(opened(paths, cache=True, names=False, **options))
    stream, truth = opened(paths, cache=True, **options), opened(paths, **options)
    assert rows_of(stream) == rows_of(truth)
    assert told(stream) == told(truth)


def test_rows_of_another_plan_are_not_taken_from_a_cache(tmp_path: Path) -> None:
    paths, options = csv(tmp_path)
    rows_of(opened(paths, cache=True, **options))
    other = opened(paths, numeric=("price",), categorical=("age",), **options)
    rows_of(other)
    space = other.features
    stream = opened(paths, features=space, cache=True, **options)
    assert rows_of(stream) == rows_of(opened(paths, features=space, **options))
    assert "cache made" in stream.cache_notes[0]
    stream = opened(paths, cache=True, **options)  # nor is that one used where no plan is given
    assert rows_of(stream) == rows_of(opened(paths, **options))


def test_a_smaller_budget_for_bad_rows_is_held(tmp_path: Path) -> None:
    paths, options = svmlight(tmp_path)
    rows_of(opened(paths, cache=True, **options))
    (made,) = caches(tmp_path)
    before = made.read_bytes()
    with pytest.raises(DataError, match="3 invalid rows, more than max_bad_rows=2 allows") as raised:
        rows_of(opened(paths, cache=True, max_bad_rows=2))
    with pytest.raises(DataError) as without:
        rows_of(opened(paths, max_bad_rows=2))
    assert str(raised.value) == str(without.value)
    assert made.read_bytes() == before
    stream = opened(paths, cache=True, max_bad_rows=4)
    assert len(rows_of(stream)) == 300 and "read from" in stream.cache_notes[0]


@pytest.mark.parametrize("ended", [True, False])
def test_a_last_line_without_an_end_counts_as_it_should(ended: bool, tmp_path: Path) -> None:
    path = tmp_path / "t.svm"
    path.write_text("".join(f"{row % 2} 1:{row}\n" for row in range(200)) + "1 5:5" + "\n" * ended)
    for finished in (False, True, False, True):
        for cached in (False, True, True):
            stream = opened([path], cache=cached, finished=finished)
            assert len(rows_of(stream)) == 200 + (finished or ended)
            assert (stream.unfinished is None) == (finished or ended)
            if not ended:
                with pytest.raises(DataError, match="there are only 200 rows") if not finished else _nothing():
                    rows_of(opened([path], cache=cached, finished=finished).skip(201))
    assert len(caches(tmp_path)) == (1 if ended else 2)


def _nothing() -> Any:
    from contextlib import nullcontext

    return nullcontext()


# -- stale caches


def remade(paths: list[Path], why: str, **options: Any) -> None:
    """Assert that a cache is not used, that a note says why, and that the new one is used then."""
    truth = rows_of(opened(paths, **options))
    stream = opened(paths, cache=True, **options)
    assert rows_of(stream) == truth
    assert why in stream.cache_notes[0] and "It is made again." in stream.cache_notes[0], stream.cache_notes
    assert "\n" not in stream.cache_notes[0]
    assert "cache made" in stream.cache_notes[1]
    stream = opened(paths, cache=True, **options)
    assert rows_of(stream) == truth
    assert "read from" in stream.cache_notes[0]


@pytest.fixture
def cached(tmp_path: Path) -> tuple[Path, Path]:
    """A file, and its cache."""
    path = tmp_path / "t.svm"
    path.write_text("".join(f"{row % 2} {row % 9 + 1}:1\n" for row in range(40_000)))
    settled(path)
    rows_of(read(str(path), cache=True))
    (made,) = caches(tmp_path)
    return path, made


def test_a_file_that_has_grown_makes_a_cache_stale(cached: tuple[Path, Path]) -> None:
    path, _ = cached
    with path.open("a") as out:
        out.write("1 3:1\n")
    settled(path)
    remade([path], "t.svm has changed since it was made (its size is another)")


def test_a_newer_file_makes_a_cache_stale(cached: tuple[Path, Path]) -> None:
    path, _ = cached
    settled(path, LONG_AGO + 1)
    remade([path], "(its time of change is another)")


def test_another_content_of_the_same_size_and_time_makes_a_cache_stale(cached: tuple[Path, Path]) -> None:
    path, _ = cached
    text = path.read_text()
    path.write_text(text.replace(":1\n", ":2\n"))
    settled(path)
    remade([path], "(its content is another)")


def test_a_change_in_the_same_moment_is_seen(tmp_path: Path) -> None:
    """The time of change of a file does not tell of a second change within its resolution."""
    path = tmp_path / "t.svm"
    lines = [f"{row % 2} {row % 9 + 1}:1\n" for row in range(120_000)]  # of six bytes each
    path.write_text("".join(lines))
    now = time.time_ns()
    os.utime(path, ns=(now, now))
    rows_of(read(str(path), cache=True))
    seen = _covered(path)
    at = next(row for row in range(20_000, 120_000) if not seen[6 * row : 6 * row + 6].any())
    lines[at] = lines[at].replace(":1", ":7")
    path.write_text("".join(lines))
    os.utime(path, ns=(now, now))
    remade([path], "(its content is another)", chunk=1 << 20)


def _covered(path: Path) -> Any:
    """Which bytes of a file the sampled checksum reads."""
    size = path.stat().st_size
    seen = np.zeros(size, bool)

    class Watched:
        def seek(self, at: int) -> None:
            self.at = at

        def read(self, length: int) -> bytes:
            seen[self.at : self.at + length] = True
            return b""

    cache._sampled(Watched(), size)
    assert seen[: 1 << 16].all() and seen[-(1 << 16) :].all() and not seen.all()
    return seen


def test_a_file_that_changes_while_it_is_read_is_not_cached(tmp_path: Path) -> None:
    paths, options = csv(tmp_path)
    settled(paths[0])
    stream = opened(paths, cache=True, **options)
    for number, _ in enumerate(stream):
        if number == 1:
            settled(paths[0], LONG_AGO + 5)
    assert "changed while it was read, so no cache was made" in stream.cache_notes[0]
    assert caches(tmp_path) == [] and left(tmp_path) == []


def test_other_files_have_a_cache_of_their_own(tmp_path: Path) -> None:
    paths, options = many_csv(tmp_path)
    for some in (paths, paths[:1], paths[:2], paths[::-1]):
        stream = opened(some, cache=True, **options)
        assert rows_of(stream) == rows_of(opened(some, **options))
        assert "cache made" in stream.cache_notes[0]
    assert len(caches(tmp_path)) == 4


def test_a_cache_that_is_not_of_these_files_is_not_used(tmp_path: Path) -> None:
    paths, options = csv(tmp_path)
    rows_of(opened(paths, cache=True, **options))
    (mine,) = caches(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    more, _ = csv(other)
    rows_of(opened(more, cache=True, **options))
    mine.write_bytes(caches(other)[0].read_bytes())
    remade(paths, "it is not the cache of these files", **options)


def test_a_file_of_another_version_is_not_used(cached: tuple[Path, Path]) -> None:
    path, made = cached
    made.write_bytes(made.read_bytes().replace(b'{"version": 1,', b'{"version": 2,'))
    remade([path], "written by format 2; this version reads up to 1", chunk=1 << 20)


@pytest.mark.parametrize("content", [b"", b"ARROW1", b"my notes\n" * 1000])
def test_a_foreign_file_is_not_used(content: bytes, cached: tuple[Path, Path]) -> None:
    path, made = cached
    made.write_bytes(content)
    remade([path], "is cut short or damaged, or no .blocks file", chunk=1 << 20)


def test_an_arrow_file_of_others_is_not_used(cached: tuple[Path, Path]) -> None:
    path, made = cached
    table = pyarrow.table({"indices": [[1], [2]], "label": [1, -1]})
    with pyarrow.ipc.new_file(str(made), table.schema) as out:
        out.write_table(table)
    remade([path], "not of the format .blocks", chunk=1 << 20)


def test_a_cache_cut_short_is_not_used(cached: tuple[Path, Path]) -> None:
    path, made = cached
    whole = made.read_bytes()
    for size in (1, 10, len(whole) // 3, len(whole) // 2, len(whole) - 100, len(whole) - 1):
        made.write_bytes(whole[:size])
        stream = read(str(path), cache=True)
        assert sum(map(len, stream)) == 40_000
        assert "cut short or damaged" in stream.cache_notes[0]
        assert len(made.read_bytes()) == len(whole)


def test_a_damaged_cache_is_told_or_gives_the_same_number_of_rows(tmp_path: Path) -> None:
    paths, options = csv(tmp_path)
    rows = len(rows_of(opened(paths, cache=True, **options)))
    (made,) = caches(tmp_path)
    whole, rng = made.read_bytes(), random.Random(7)
    for _ in range(150):
        damaged = bytearray(whole)
        at = rng.choice([rng.randrange(len(whole)), rng.randrange(3000), len(whole) - 1 - rng.randrange(3000)])
        damaged[at] = rng.randrange(256)
        made.write_bytes(bytes(damaged))
        found = rows_or_reason(paths, **options)
        told = f"{made}: is cut short or damaged" in str(found) and "removed: run again to read the files" in str(found)
        assert found == rows or told
        assert made.exists() == (found == rows)
        assert rows_or_reason(paths, **options) == rows


def rows_or_reason(paths: list[Path], **options: Any) -> int | str:
    try:
        return len(rows_of(opened(paths, cache=True, **options)))
    except DataError as error:
        return str(error)


# -- passes that do not end, and disks that do not work


def test_a_pass_that_is_left_leaves_no_cache(tmp_path: Path) -> None:
    paths, options = csv(tmp_path)
    for _ in opened(paths, cache=True, **options):
        break
    for _ in TrainingRun(Model("dual-auc"), opened(paths, cache=True, **options), max_rows=120):
        pass
    stream = opened(paths, cache=True, **options)
    for _ in stream:
        stream.stop()
    assert caches(tmp_path) == [] and left(tmp_path) == []


def test_a_pass_that_fails_leaves_no_cache(tmp_path: Path) -> None:
    paths, _ = svmlight(tmp_path)
    with pytest.raises(DataError, match="no colon"):
        rows_of(opened(paths, cache=True))
    assert caches(tmp_path) == [] and left(tmp_path) == []


def test_a_failed_pass_leaves_the_cache_that_was_there(cached: tuple[Path, Path]) -> None:
    path, made = cached
    before = made.read_bytes()
    with path.open("a") as out:
        out.write("1 broken\n")
    with pytest.raises(DataError, match="no colon"):
        rows_of(read(str(path), cache=True))
    assert made.read_bytes() == before


def test_an_empty_file_has_no_cache(tmp_path: Path) -> None:
    (tmp_path / "t.svm").write_text("# nothing\n")
    with pytest.raises(DataError, match="no rows"):
        rows_of(opened([tmp_path / "t.svm"], cache=True))
    assert caches(tmp_path) == []


def test_the_folder_of_a_cache_can_be_chosen(tmp_path: Path) -> None:
    paths, options = csv(tmp_path)
    folder = tmp_path / "a" / "b"
    for turn in ("cache made", "read from"):
        stream = read([str(path) for path in paths], cache_dir=folder, **options)
        rows_of(stream)
        assert turn in stream.cache_notes[0]
    assert caches(tmp_path) == [] and len(caches(folder)) == 1
    with pytest.raises(DataError, match="cache_dir must be the path of a folder"):
        read(str(paths[0]), cache_dir="")


def test_a_folder_that_cannot_be_written_does_no_harm(tmp_path: Path) -> None:
    paths, options = csv(tmp_path)
    (tmp_path / "file").write_text("")
    stream = opened(paths, cache_dir=str(tmp_path / "file"), **options)
    assert rows_of(stream) == rows_of(opened(paths, **options))
    assert stream.cache_notes[0].startswith("No cache was made: ") and "file" in stream.cache_notes[0]


CHILD = """
import os, resource, signal, sys
from rarestream import Model, read
from rarestream.evaluate import train
from rarestream.writers import blocks
blocks.BATCH_ROWS = 64
what, path, out = sys.argv[1:]
if what == "full":
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
if what == "read-only":
    train(Model("dual-auc"), read(path, cache=True, max_bad_rows=1))  # imports what it needs while it may
    import glob
    for made in glob.glob(path + "*.blocks"):
        os.unlink(made)
    os.chmod(os.path.dirname(path), 0o555)
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
stream = read(path, cache=True)
if what == "killed":
    write = blocks.BlocksWriter._write_rows
    def killed(self, *rows):
        write(self, *rows)
        if self.rows > 20_000:
            self._file.flush()
            os.kill(os.getpid(), signal.SIGKILL)
    blocks.BlocksWriter._write_rows = killed
model = Model("dual-auc")
train(model, stream)
if what not in ("full", "read-only"):
    model.save(out)
print(model.rows, *stream.cache_notes)
"""


def child(what: str, path: Path, out: Path = Path("none")) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", CHILD, what, str(path), str(out)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def large(folder: Path) -> Path:
    path = folder / "t.svm"
    path.write_text("".join(f"{row % 2} {row % 9 + 1}:1 {row % 90 + 20}:0.5\n" for row in range(60_000)))
    return settled(path)


def test_a_full_disk_does_not_stop_the_training(tmp_path: Path) -> None:
    path = large(tmp_path)
    said, errors = child("full", path).communicate()
    assert said.startswith("60000 No cache was made: "), errors
    assert "too large" in said.lower()
    assert caches(tmp_path) == [] and left(tmp_path) == []


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="drops the rights of root")
def test_a_read_only_folder_does_not_stop_the_training(tmp_path_factory: pytest.TempPathFactory) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = large(Path(folder))
        path.chmod(0o444)
        said, errors = child("read-only", path).communicate()
        assert said.startswith("60000 No cache was made: "), errors
        assert "ermission denied" in said
        assert caches(Path(folder)) == []


def test_what_a_killed_run_has_left_goes_with_the_next(tmp_path: Path) -> None:
    path = large(tmp_path)
    killed = child("killed", path)
    killed.communicate()
    assert killed.returncode == -9
    assert caches(tmp_path) == [] and len(left(tmp_path)) == 1
    stream = read(str(path), cache=True)
    rows_of(stream)
    assert "cache made" in stream.cache_notes[0]
    assert left(tmp_path) == []


def test_two_runs_at_once_are_safe(tmp_path: Path) -> None:
    path = large(tmp_path)
    runs = [child("train", path, tmp_path / f"{number}.rare") for number in range(3)]
    said = [run.communicate() for run in runs]
    assert all(out.startswith("60000 ") for out, _ in said), said
    models = {(tmp_path / f"{number}.rare").read_bytes() for number in range(3)}
    assert len(models) == 1
    assert len(caches(tmp_path)) == 1 and left(tmp_path) == []
    stream = read(str(path), cache=True)
    assert sum(map(len, stream)) == 60_000
    assert "read from" in stream.cache_notes[0]


def test_a_cache_may_be_replaced_while_it_is_read(cached: tuple[Path, Path]) -> None:
    path, made = cached
    stream = iter(read(str(path), cache=True, threads=0))
    rows = len(next(stream))
    aside = made.with_suffix(".new")
    aside.write_bytes(b"another")
    aside.replace(made)
    assert rows + sum(map(len, stream)) == 40_000


# -- what cannot be cached


def test_only_files_are_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths, options = csv(tmp_path)
    with pytest.raises(DataError, match="-: cannot be cached: standard input and pipes are not recognised"):
        read("-", format="csv", cache=True)
    with pytest.raises(DataError, match="cannot be cached: rows in memory are not recognised"):
        read([{"a": 1}], cache=True, label="a")
    with (
        paths[0].open("rb") as file,
        pytest.raises(DataError, match="cannot be cached: an open file is not recognised"),
    ):
        read(file, cache=True)
    rows_of(opened(paths, cache=True, **options))
    with pytest.raises(DataError, match="holds the rows as a cache does: it is not cached again. Drop cache"):
        read(str(caches(tmp_path)[0]), cache=True)


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths, options = csv(tmp_path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match='pip install "rarestream\\[arrow\\]"'):
        rows_of(opened(paths, cache=True, **options))
    assert len(rows_of(opened(paths, **options))) > 0


def test_a_model_does_not_remember_a_cache(tmp_path: Path) -> None:
    paths, options = csv(tmp_path)
    stream = opened(paths, cache=True, **options)
    rows_of(stream)
    assert not {"cache", "cache_dir"} & set(stream.settings)
    assert "cache" in asdict(stream._options)
