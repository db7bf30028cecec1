"""Messages: in the words of whoever reads them, and safe to print."""

from __future__ import annotations

import io

import numpy as np
import pytest

from rarestream import Block, DataError, Model, read
from rarestream.errors import advice, for_command_line, plain, plain_text, worded_for_command_line
from rarestream.evaluate import evaluate_scores
from rarestream.metrics import SortedCheck
from rarestream.race import Racing


def test_advice_is_for_python_unless_the_command_line_asks():
    assert advice("a=1", "--a 1") == "a=1"
    with worded_for_command_line():
        assert advice("a=1", "--a 1") == "--a 1"
        with worded_for_command_line(False):
            assert advice("a=1", "--a 1") == "a=1"
        assert for_command_line()
    assert not for_command_line()


def rows(text: str, **how: object) -> None:
    list(read(io.BytesIO(text.encode()), **how))  # type: ignore[arg-type]


def scores(folder) -> None:
    (folder / "s.txt").write_text("1 1\n0 1\n-1 1\n")
    evaluate_scores(str(folder / "s.txt"))


def overflow() -> Block:
    return Block.of(np.full((40, 2), 3e38, np.float32), np.where(np.arange(40) % 2, 1, -1))


def warned(labels: np.ndarray) -> None:
    message = SortedCheck().add(labels)
    raise DataError(str(message))


@pytest.mark.parametrize(
    ("act", "python", "command"),
    [
        (lambda _: rows("1 1:1\n2:1\n"), "labels='optional'", "to score them, use rarestream predict"),
        (lambda _: rows("1 1:1\n-1 0:1\n", zero_based=False), "zero_based=True", "--zero-based"),
        (lambda _: rows("1 x\n1 x\n", max_bad_rows=1), "max_bad_rows=1 allows", "--max-bad-rows 1 allows"),
        (lambda _: rows("1 1:1\n-1 1:1\n0 1:1\n"), "positive=VALUE", "--positive VALUE"),
        (lambda _: rows("5 1:1\n"), "positive=VALUE", "--positive VALUE"),
        (scores, "positive=VALUE", "--positive VALUE"),
        (lambda _: warned(np.repeat(np.array([-1, 1], np.int8), 500)), "shuffle=SEED", "--shuffle SEED"),
        (lambda _: Model("ftrl-auc", scale="none").learn(overflow()), "scale='unit' or 'max'", "--scale unit or max"),
        (lambda _: Racing(scale="none").learn(overflow()), "scale='unit' or 'max'", "--scale unit or max"),
        (lambda _: Racing(memory=1).learn(overflow()), "memory=BYTES", "--memory SIZE"),
    ],
)
def test_every_message_names_arguments_in_python_and_options_on_the_command_line(tmp_path, act, python, command):
    with pytest.raises(DataError) as caught:
        act(tmp_path)
    assert python in str(caught.value)
    assert "--" not in str(caught.value)
    with worded_for_command_line(), pytest.raises(DataError) as caught:
        act(tmp_path)
    assert command in str(caught.value)
    assert python not in str(caught.value)


def test_a_name_is_shown_without_what_moves_a_terminal():
    assert plain("evil\x1b[2J\n\t\x7f\x9b\u202e\u2066\udcff é\N{SNOWMAN}.svm") == (
        r"evil\x1b[2J\n\t\x7f\x9b\u202e\u2066\udcff é" + "\N{SNOWMAN}.svm"
    )
    assert plain_text("two\nlines\tand \x1b[0m\r") == "two\nlines\tand \\x1b[0m\\r"
