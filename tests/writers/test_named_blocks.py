"""`convert` to `.blocks`: rows, labels, names and the plan of a table come out as they went in."""

from __future__ import annotations

import pytest

from rarestream import Model, convert, read
from rarestream.evaluate import train

pytest.importorskip("pyarrow")

CSV = "id,site,price,weight,what\n" + "".join(
    f"t{i},s {i % 5}.com,{i % 7}.5,{1 + i % 2},{'spam' if i % 9 == 0 else 'ham'}\n" for i in range(300)
)
OPTIONS = {"label": "what", "importance": "weight", "tag": "id"}


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(CSV)
    return path


def trained(path, **options):
    model = Model("dual-auc")
    train(model, read(path, **options))
    return model


def test_a_model_of_the_file_is_that_of_its_source(table, tmp_path):
    done = convert(table, tmp_path / "rows.blocks", **OPTIONS)
    assert done.rows == 300 and done.positives == 34
    first, second = trained(table, **OPTIONS), trained(tmp_path / "rows.blocks")
    assert (first.coef == second.coef).all()
    slots = first.coef.nonzero()[0].astype("int32")
    assert first.features.shown(slots) == second.features.shown(slots)
    assert first.features.plan == second.features.plan
    assert second.source["settings"]["classes"] == ["ham", "spam"]
    row = {"site": "s 0.com", "price": 3.5}
    assert first.score_one(row) == second.score_one(row)


def test_other_formats_of_the_file_are_those_of_its_source(table, tmp_path):
    convert(table, tmp_path / "rows.blocks", **OPTIONS)
    convert(tmp_path / "rows.blocks", tmp_path / "through.vw")
    convert(table, tmp_path / "direct.vw", **OPTIONS)
    assert (tmp_path / "through.vw").read_bytes() == (tmp_path / "direct.vw").read_bytes()


@pytest.mark.parametrize("first", [0, 1])
def test_columns_count_as_in_the_source(tmp_path, first):
    path = tmp_path / "rows.svm"
    path.write_text(f"1 {first}:1 7:0.5\n-1 3:2\n")
    convert(path, tmp_path / "rows.blocks")
    assert read(tmp_path / "rows.blocks").settings.get("zero_based") is None
    for to in ("vw", "svm"):
        convert(tmp_path / "rows.blocks", tmp_path / f"through.{to}")
        convert(path, tmp_path / f"direct.{to}")
        assert (tmp_path / f"through.{to}").read_bytes() == (tmp_path / f"direct.{to}").read_bytes()


def test_rows_without_a_label_stay_without_one(table, tmp_path):
    table.write_text(CSV + "t,s 1.com,1.5,1,\n")
    done = convert(table, tmp_path / "rows.blocks", **OPTIONS)
    assert done.rows == 301 and done.unlabelled == 1
    again = convert(tmp_path / "rows.blocks", tmp_path / "rows.vw")
    assert again.rows == 301 and again.unlabelled == 1
    stream = read(tmp_path / "rows.blocks")
    assert sum(map(len, stream)) == 300 and stream.unlabelled == 1


def test_the_label_that_was_named_stays_positive(table, tmp_path):
    convert(table, tmp_path / "rows.blocks", positive="ham", **OPTIONS)
    blocks = list(read(tmp_path / "rows.blocks"))
    assert sum(int((block.labels > 0).sum()) for block in blocks) == 266
