"""The paper's sets from files as their publishers have them: the rows that the paper learned, and nothing else taken for
them."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import signal
import sys
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rarestream import Block, DataError, datasets, read
from rarestream.blocks import concatenate
from rarestream.datasets import originals
from rarestream.datasets.catalogue import DATA_SETS, OTHER_ORIGINALS
from rarestream.datasets.originals import unit
from rarestream.errors import OutputError
from rarestream.evaluate.synthetic import write_svmlight
from rarestream.reproduce import protocol
from rarestream.reproduce.datasets import sources
from rarestream.reproduce.paper import numbers
from tests import children
from tests.program import run

PAPER = [name for name in datasets.names() if not datasets.info(name).packaged]


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch):
    """Sets what a data set is known to hold, for small ones under its name."""

    def put(name: str, rows: int, positives: int, features: int) -> None:
        known = replace(DATA_SETS[name], rows=rows, positives=positives, features=features)
        monkeypatch.setitem(DATA_SETS, name, known)

    return put


def loaded(name: str, folder: Path) -> Block:
    path = datasets.load(name, folder, download=False)
    assert path == folder / "prepared" / f"{name}.svm.gz"
    return concatenate(read(path))


def dense(block: Block) -> list[list[float]]:
    return [[round(float(value), 6) for value in row] for row in block.to_csr().toarray()]


def tar(path: Path, members: dict[str, bytes]) -> None:
    with tarfile.open(path, "w:gz") as archive:
        for name, data in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))


def test_the_counts_are_those_of_table_1_but_one():
    for name in PAPER:
        known, published = datasets.info(name), numbers()["table1"][name]
        assert (known.rows, known.positives) == (published["n"], published["n_pos"])
        assert known.features == published["d"] + (name == "farm-ads")  # the paper counts one less
        assert all(original.url.startswith("https://") for original in known.originals)


@pytest.mark.parametrize("name", ["news20b", "real-sim"])
def test_files_of_libsvm_are_taken_as_they_are(tmp_path, counts, name):
    counts(name, 3, 1, 3)
    (original,) = datasets.info(name).originals
    (tmp_path / original.name).write_bytes(bz2.compress(b"+1 1:0.6 3:0.8 \n-1 2:1 \n-1 \n"))
    block = loaded(name, tmp_path)
    assert dense(block) == [[0.6, 0, 0.8], [0, 1, 0], [0, 0, 0]]
    assert block.labels.tolist() == [1, -1, -1]


def test_rcv1b_is_its_training_rows_then_its_test_rows(tmp_path, counts):
    counts("rcv1b", 3, 2, 3)
    (tmp_path / "rcv1_test.binary.bz2").write_bytes(bz2.compress(b"1 3:1\n1 2:1\n"))
    (tmp_path / "rcv1_train.binary").write_bytes(b"-1 1:1\n")  # decompressed: that is fine too
    block = loaded("rcv1b", tmp_path)
    assert block.labels.tolist() == [-1, 1, 1]
    assert block.indices.tolist() == [0, 2, 1]


@pytest.mark.parametrize("names", [["avazu-app.tr.bz2", "avazu-app.val.bz2"], ["avazu-app.bz2"]])
def test_avazu_is_positive_above_zero_and_scaled(tmp_path, counts, names):
    counts("avazu", 4, 1, 1_000_000)
    rows = [b"0 1:1 5:1\n0 2:1\n", b"1 7:1 8:1 9:1 10:1\n-1 1:1\n"]
    texts = rows if len(names) == 2 else [b"".join(rows)]
    for name, text in zip(names, texts, strict=True):
        (tmp_path / name).write_bytes(bz2.compress(text))
    block = loaded("avazu", tmp_path)
    assert block.labels.tolist() == [-1, -1, 1, -1]
    assert block.values.tolist() == [np.float32(0.5**0.5)] * 2 + [1] + [0.5] * 4 + [1]


@pytest.mark.parametrize("form", ["farm+ads.zip", "farm-ads.zip", "farm-ads-vect", "farm-ads-vect.gz"])
def test_farm_ads_in_its_archive_or_unpacked(tmp_path, counts, form):
    counts("farm-ads", 3, 2, 4)
    text = b"1 1:1 2:1 3:1 4:1\n-1 2:3 4:4\n1 4:1 1:1 4:2\n"
    if form.endswith(".zip"):
        with zipfile.ZipFile(tmp_path / form, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("farm-ads", "1 ad-words and words\n")
            archive.writestr("farm-ads-vect", text)
    else:
        (tmp_path / form).write_bytes(gzip.compress(text) if form.endswith(".gz") else text)
    block = loaded("farm-ads", tmp_path)
    # Duplicates are summed before the norm is taken: 3 / sqrt(10).
    expected = [[0.5, 0.5, 0.5, 0.5], [0, 0.6, 0, 0.8], [0.316228, 0, 0, 0.948683]]
    assert dense(block) == expected
    assert block.labels.tolist() == [1, -1, 1]


IMDB = {
    "aclImdb/test/labeledBow.feat": b"5 1:1\n6 0:3 2:4\n",
    "aclImdb/train/unsupBow.feat": b"0 0:1\n",
    "aclImdb/train/labeledBow.feat": b"10 0:1 1:1 2:1 3:1\n1 3:2\n",
    "aclImdb/imdb.vocab": b"the\nand\na\nof\n",
}


@pytest.mark.parametrize("unpacked", [False, True])
def test_imdb_counts_columns_from_zero_and_is_positive_above_five(tmp_path, counts, unpacked, monkeypatch):
    counts("imdb", 4, 2, 4)
    if unpacked:
        for name, data in IMDB.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_bytes(data)
    else:
        without = tuple(one._replace(bytes=None, sha256=None) for one in datasets.info("imdb").originals)
        monkeypatch.setitem(DATA_SETS, "imdb", replace(DATA_SETS["imdb"], originals=without))
        tar(tmp_path / "aclImdb_v1.tar.gz", IMDB)
    block = loaded("imdb", tmp_path)
    assert block.labels.tolist() == [1, -1, -1, 1]
    assert dense(block) == [[0.5] * 4, [0, 0, 0, 1], [0, 1, 0, 0], [0.6, 0, 0.8, 0]]


def test_an_archive_with_another_checksum_than_the_published_one_is_refused(tmp_path):
    tar(tmp_path / "aclImdb_v1.tar.gz", IMDB)
    with pytest.raises(datasets.DownloadError, match=r"aclImdb_v1.tar.gz: has .* bytes, where 84,125,825 is right"):
        datasets.load("imdb", tmp_path, download=False)


def reviews(**lines: str) -> dict[str, bytes]:
    members = {}
    for domain in ("kitchen", "books", "electronics", "dvd"):  # archives have their own order
        for label in ("negative", "positive", "unlabeled"):
            text = lines.get(f"{domain}_{label}", "")
            members[f"./sorted_data/processed_acl/{domain}/{label}.review"] = text.encode("latin-1")
    return members


def test_reviews_are_numbered_in_order_of_first_appearance_positives_first(tmp_path, counts):
    counts("reviews", 4, 2, 6)
    lines = reviews(
        books_positive="good:3 très_good:4 #label#:positive\n",
        kitchen_positive="sharp:1 good:1 :::1 2:2:1 #label#:positive\n",
        books_negative="\nbad:1 good:1 good:1 #label#:negative\n",
        dvd_negative="#label#:negative\n",
        dvd_unlabeled="never:1 #label#:negative\n",
    )
    tar(tmp_path / "processed_acl.tar.gz", lines)
    block = loaded("reviews", tmp_path)
    assert block.labels.tolist() == [1, 1, -1, -1]
    assert dense(block) == [
        [0.6, 0.8, 0, 0, 0, 0],
        [0.5, 0, 0.5, 0.5, 0.5, 0],
        [round(2 / 5**0.5, 6), 0, 0, 0, 0, round(1 / 5**0.5, 6)],
        [0] * 6,
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("good:1 #label#:neutral", r"positive.review:1: a review ends with #label#:positive or .* '#label#:neutral'"),
        ("good #label#:positive", r"positive.review:1: a feature is word:count, got 'good'"),
        ("a:1 b:1 c:1 #label#:positive", r"positive.review:1: more than 2 different words"),
    ],
)
def test_reviews_that_break_a_rule_are_refused(tmp_path, counts, line, message):
    counts("reviews", 1, 1, 2)
    tar(tmp_path / "processed_acl.tar.gz", reviews(books_positive=line))
    with pytest.raises(DataError, match=message):
        datasets.load("reviews", tmp_path, download=False)
    assert list((tmp_path / "prepared").iterdir()) == []


def test_a_damaged_or_foreign_archive_is_refused_by_name(tmp_path, counts):
    counts("reviews", 2, 2, 2000)
    path = tmp_path / "processed_acl.tar.gz"
    words = " ".join(f"w{number}:{number % 7 + 1}" for number in np.random.default_rng(0).permutation(1500))
    tar(path, reviews(books_positive=f"{words} #label#:positive\n"))
    whole = path.read_bytes()
    for damaged in (whole[: len(whole) // 2], whole[:200] + b"\x00" * 50 + whole[250:], b"no archive", b""):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match=r"processed_acl.tar.gz.*(Fetch it again)"):
            datasets.load("reviews", tmp_path, download=False)
    tar(path, {"other": b"1"})
    with pytest.raises(DataError, match=r"has no file processed_acl/books/positive.review"):
        datasets.load("reviews", tmp_path, download=False)
    (tmp_path / "farm+ads.zip").write_bytes(b"PK no zip")
    with pytest.raises(DataError, match=r"farm\+ads.zip: is damaged"):
        datasets.load("farm-ads", tmp_path, download=False)
    assert list((tmp_path / "prepared").iterdir()) == []


def test_a_name_in_an_archive_is_never_a_place_on_the_disk(tmp_path, counts):
    counts("reviews", 1, 1, 1)
    lines = reviews(books_positive="a:1 #label#:positive\n")
    tar(tmp_path / "processed_acl.tar.gz", {"../../outside": b"x", "/tmp/rarestream-outside": b"x", **lines})
    loaded("reviews", tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"processed_acl.tar.gz", "prepared"}
    assert not Path("/tmp/rarestream-outside").exists()


def test_rows_for_the_reproduction_are_used_and_scaled(tmp_path, counts):
    counts("farm-ads", 2, 1, 3)
    (tmp_path / "farm-ads.svm.bz2").write_bytes(bz2.compress(b"+1 1:3 3:4\n-1 2:2\n"))
    assert dense(loaded("farm-ads", tmp_path)) == [[0.6, 0, 0.8], [0, 1, 0]]


def test_an_original_with_other_rows_is_refused(tmp_path):
    (tmp_path / "real-sim.bz2").write_bytes(bz2.compress(b"+1 1:1\n-1 2:1\n"))
    with pytest.raises(
        DataError, match=r"real-sim.bz2: 2 rows, 1 of them positive; real-sim has 72,309, 22,238 of them"
    ):
        datasets.load("real-sim", tmp_path, download=False)
    assert list((tmp_path / "prepared").iterdir()) == []


def test_own_rows_under_its_name_are_used_with_a_warning(tmp_path):
    (tmp_path / "rcv1b_sub.svm").write_text("+1 1:1\n-1 2:1\n")
    with pytest.warns(UserWarning, match=r"rcv1b_sub.svm: 2 rows.*They are used as they are"):
        block = loaded("rcv1b", tmp_path)
    assert len(block) == 2


def test_another_number_of_features_is_a_warning(tmp_path, counts):
    counts("real-sim", 2, 1, 9)
    (tmp_path / "real-sim.bz2").write_bytes(bz2.compress(b"+1 2:1\n-1 5:1\n"))
    with pytest.warns(UserWarning, match=r"2 columns occur, the last is 5; the paper gives real-sim 9 features"):
        loaded("real-sim", tmp_path)


@pytest.mark.parametrize("features", [2, 4, 5])  # those that occur, from the first to the last, or up to it
def test_features_are_counted_in_the_ways_of_the_paper(tmp_path, counts, features, recwarn):
    counts("real-sim", 2, 1, features)
    (tmp_path / "real-sim.bz2").write_bytes(bz2.compress(b"+1 2:1\n-1 5:1\n"))
    loaded("real-sim", tmp_path)
    assert not recwarn.list


def test_a_set_is_prepared_once_and_again_when_its_files_change(tmp_path, counts, monkeypatch):
    counts("real-sim", 2, 1, 2)
    original = tmp_path / "real-sim.bz2"
    original.write_bytes(bz2.compress(b"+1 1:1\n-1 2:1\n"))
    path = datasets.load("real-sim", tmp_path)
    receipt = json.loads((tmp_path / "prepared" / "real-sim.json").read_text())
    assert (receipt["rows"], receipt["positives"], receipt["columns"]) == (2, 1, 2)
    assert receipt["files"][0]["file"] == "real-sim.bz2" and len(receipt["files"][0]["sha256"]) == 64
    before = path.stat().st_mtime_ns
    assert datasets.load("real-sim", tmp_path) == path
    assert path.stat().st_mtime_ns == before
    original.write_bytes(bz2.compress(b"+1 1:1 2:1\n-1 2:1\n"))
    assert loaded("real-sim", tmp_path).nonzeros == 3
    original.unlink()  # what is prepared is enough
    assert loaded("real-sim", tmp_path).nonzeros == 3
    path.write_bytes(b"cut")
    with pytest.raises(DataError, match="is not in"):
        datasets.load("real-sim", tmp_path, download=False)


def test_missing_files_are_named_with_their_addresses(tmp_path):
    with pytest.raises(DataError) as error:
        datasets.load("rcv1b", tmp_path, download=False)
    message = str(error.value)
    assert message.startswith(f"rcv1b: is not in {tmp_path}. To have it downloaded, pass download=True; or put its")
    for name in ("rcv1_train.binary.bz2", "rcv1_test.binary.bz2"):
        url = f"https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/{name}"
        assert f"\n  {url} as {tmp_path / name}" in message


@pytest.fixture
def served(server, counts, monkeypatch):
    """real-sim, small, at an address on this machine."""
    server.content = bz2.compress(b"+1 1:1\n-1 2:1\n")
    counts("real-sim", 2, 1, 2)
    known = replace(DATA_SETS["real-sim"], originals=(server.original("real-sim.bz2"),))
    monkeypatch.setitem(DATA_SETS, "real-sim", known)
    return server


def test_what_is_missing_is_downloaded_and_prepared_once(served, tmp_path):
    told: list[object] = []
    path = datasets.load("real-sim", tmp_path, report=told.append)
    assert concatenate(read(path)).labels.tolist() == [1, -1]
    assert told[0].file == "real-sim.bz2" and told[-1] == 2  # type: ignore[attr-defined]
    assert datasets.load("real-sim", tmp_path) == path
    assert len(served.asked) == 1
    assert datasets.is_present("real-sim", tmp_path)


def test_the_folder_of_the_user(served, tmp_path, monkeypatch):
    monkeypatch.setenv("RARESTREAM_DATA", str(tmp_path / "own"))
    assert datasets.user_folder() == tmp_path / "own"
    assert datasets.load("real-sim").parent == tmp_path / "own" / "prepared"
    monkeypatch.delenv("RARESTREAM_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert datasets.user_folder() == tmp_path / "cache" / "rarestream"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # which the standard says to ignore
    monkeypatch.setenv("HOME", str(tmp_path))
    assert datasets.user_folder() == tmp_path / ".cache" / "rarestream"


def test_the_command_downloads_and_prints_the_path(served, tmp_path):
    done = run("datasets", "real-sim", "--data-dir", tmp_path)
    path = tmp_path / "prepared" / "real-sim.svm.gz"
    assert (done.exit_code, done.stdout) == (0, f"{path}\n")
    assert done.stderr == (f"downloading real-sim.bz2 ({len(served.content)} bytes) ...\npreparing real-sim ...\n")
    path.unlink()
    (tmp_path / "real-sim.bz2").unlink()
    (tmp_path / "real-sim.bz2.part").write_bytes(served.content[:30])
    told = {"url": served.original("real-sim.bz2").url, "etag": served.etag, "total": len(served.content)}
    (tmp_path / "real-sim.bz2.part.json").write_text(json.dumps(told))
    done = run("datasets", "real-sim", "--data-dir", tmp_path)
    assert done.stderr.startswith(f"continuing real-sim.bz2 after 30 bytes of {len(served.content)} bytes ...\n")
    record = json.loads(run("datasets", "real-sim", "--data-dir", tmp_path, "--json").stdout)
    assert record["path"] == str(path) and record["present"] and record["originals"][0]["name"] == "real-sim.bz2"
    listed = run("datasets", "--data-dir", tmp_path).stdout
    assert f"in {tmp_path}" in listed.replace("\n  ", " ") and listed.count("to be downloaded") == len(PAPER) - 1
    assert f"$(rarestream datasets real-sim --data-dir {tmp_path})" in listed


def test_the_command_says_what_is_missing_and_what_went_wrong(served, tmp_path):
    done = run("datasets", "avazu", "--data-dir", tmp_path, "--offline")
    assert done.exit_code == 3
    assert "drop --offline; or put its files there:\n  https://www.csie.ntu.edu.tw/" in done.stderr
    served.statuses = [(404, {})]
    done = run("datasets", "real-sim", "--data-dir", tmp_path)
    assert done.exit_code == 1
    assert "the server answers 404" in done.stderr and f"put it into the folder {tmp_path} as" in done.stderr
    (tmp_path / "reviews.svm").write_text("+1 1:1\n-1 2:1\n")
    done = run("datasets", "reviews", "--data-dir", tmp_path)
    assert done.exit_code == 0
    assert "warning: " in done.stderr and "2 rows, 1 of them positive; reviews has 8,000" in done.stderr


def test_ctrl_c_ends_the_command_and_the_next_one_continues(served, tmp_path):
    served.stall = 30
    code = (
        "import sys; from dataclasses import replace; from rarestream.cli.app import run\n"
        "from rarestream.datasets.catalogue import DATA_SETS, Original\n"
        "original = Original('real-sim.bz2', sys.argv[1])\n"
        "DATA_SETS['real-sim'] = replace(DATA_SETS['real-sim'], originals=(original,))\n"
        "run(['datasets', 'real-sim', '--data-dir', sys.argv[2]])"
    )
    part = tmp_path / "real-sim.bz2.part"
    command = [sys.executable, "-c", code, served.original("real-sim.bz2").url, tmp_path]
    with children.Child(command) as child:
        child.until(lambda: len(served.asked) == 1 and part.exists())
        child.line("stderr")  # it has begun
        child.send_signal(signal.SIGINT)
        _, told = child.communicate()
    assert child.returncode == 130
    assert f"interrupted; what has been downloaded is kept in {tmp_path}. Rerun the same command" in told
    served.stall = None
    assert run("datasets", "real-sim", "--data-dir", tmp_path).exit_code == 0


def test_the_reproduction_finds_what_was_prepared_and_the_originals(served, tmp_path):
    expected = [[1, 0], [0, 1]]
    (tmp_path / "real-sim.bz2").write_bytes(served.content)
    (source,) = sources(tmp_path, ["real-sim"]).values()
    assert source.found.form == originals.ORIGINALS
    assert protocol.load(tmp_path, "real-sim").X.toarray().tolist() == expected
    datasets.load("real-sim", tmp_path)
    (tmp_path / "real-sim.bz2").unlink()
    (source,) = sources(tmp_path, ["real-sim"]).values()
    assert source.found.form == originals.PREPARED
    assert protocol.load(tmp_path, "real-sim").X.toarray().tolist() == expected
    (tmp_path / "real-sim.svm").write_text("+1 1:1\n-1 2:1\n")  # as before there were others
    (source,) = sources(tmp_path, ["real-sim"]).values()
    assert source.found.form == originals.ROWS


def test_a_folder_that_cannot_be_written_is_an_error(served, tmp_path):
    (tmp_path / "real-sim.svm").write_text("+1 1:1\n-1 2:1\n")
    (tmp_path / "prepared").write_text("a file where the folder would be")
    with pytest.raises(OutputError, match=r"prepared: cannot be made \(File exists\)"):
        datasets.load("real-sim", tmp_path)


def test_other_originals_are_never_downloaded():
    assert all(not one.url for others in OTHER_ORIGINALS.values() for one in others)


@settings(max_examples=30, deadline=None)
@given(
    rows=st.lists(
        st.tuples(
            st.booleans(),
            st.dictionaries(
                st.integers(0, 70_000),
                st.floats(-(2.0**99), 2.0**99, width=32).filter(lambda value: abs(value) > 2.0**-99),
            ),
        ),
        max_size=20,
    )
)
def test_any_rows_are_the_same_written_and_read(tmp_path_factory, rows):
    starts = np.cumsum([0, *(len(row) for _, row in rows)])
    columns = [column for _, row in rows for column in row]
    values = [value for _, row in rows for value in row.values()]
    block = Block.of((starts, np.array(columns, np.int32), np.array(values, np.float32)), [label for label, _ in rows])
    path = tmp_path_factory.mktemp("rows") / "rows.svm.gz"
    write_svmlight([block], path)
    if not rows:
        return
    found = concatenate(read(path, positive=1))
    for name in ("indptr", "indices", "values", "labels"):
        assert getattr(found, name).tolist() == getattr(block, name).tolist()
    norms = [float(np.sqrt(np.square(row.data).sum())) for row in unit(block).to_csr()]
    assert np.allclose([norm for norm in norms if norm], 1, atol=1e-6)
