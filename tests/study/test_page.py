"""The page of a study that has no paper: its own tables and title, no published number, and any text."""

from __future__ import annotations

import re

import pytest

from rarestream.reproduce import tables
from rarestream.study.page import bokeh_script, html
from rarestream.study.results import Results, extent
from tests.reproduce.made_up import row

pytest.importorskip("bokeh")


def page(rows, shown=(), title="mine.svm", rerun=("rarestream compare mine.svm",), environment=None):
    lead = extent(rows)
    return html(Results(rows), shown, title=title, lead=lead, rerun=rerun, environment=environment)


def test_a_page_of_rows_without_a_paper_has_no_word_of_it():
    rows = [
        row("mine.svm", method, trial=trial, grid="8 settings") for method in ("sgd", "ftrl_auc") for trial in (0, 1)
    ]
    text = page(rows, [tables.paired(rows, "sgd")]).replace(bokeh_script(), "")
    assert "rarestream compare mine.svm" in text and "AUC minus that of sgd" in text
    assert "published" not in re.sub(r"<style>.*?</style>|<script.*?</script>", "", text, flags=re.DOTALL)


def test_the_page_takes_any_text():
    evil = "</script><script>alert(1)</script>"
    rows = [row(evil, evil, grid="none"), row(method="solam", error=evil)]
    text = page(rows, [tables.paired(rows, evil)], title=evil, rerun=[evil], environment={evil: evil})
    assert "<script>alert" not in text


def test_a_page_of_no_rows_is_a_page():
    assert "No curves in these rows." in page([])


@pytest.mark.parametrize(
    "count, says", [(0, "are 0 trials on no data set."), (1, "is 1 trial on"), (2, "are 2 trials on")]
)
def test_the_page_says_how_many_trials_there_are(count, says):
    assert f"There {says}" in page([row("mine.svm", trial=trial) for trial in range(count)])
