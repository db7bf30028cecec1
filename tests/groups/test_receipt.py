"""Receipt: what it records, how it reads, and the prices on a sample."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from rarestream import DualAveraging, Model, auc, auc_interval, make_learner
from rarestream.blocks import concatenate
from rarestream.groups import Price, Receipt, RoundReceipt, RoundsFit, divide, fit_groups
from rarestream.groups.fitting import cut, prices, receipt_of
from rarestream.groups.receipt import KEY
from tests.strategies import random_block

ROWS = random_block(3000, 60, 6)
FULL = Receipt(
    groups=64,
    rows=1_234_567_890,
    positives=12_345_678,
    skipped=1_234_567,
    held_out=65_536,
    auc=0.98765,
    auc_low=0.98712,
    auc_high=0.98799,
    rounds=[
        RoundReceipt(77_160_493, 1234.56, 123_456_789, 1_234_567_890, 24, 0.98123),
        RoundReceipt(77_160_493, 0.04, 1, 0, 1, None, 0.125),
    ],
    sample=52_428,
    prices=[Price(64, 16, 0.00123, 0.00045), Price(256, 64, -0.0002, 0.0001)],
    stopped="in round 2 of 16 the AUC on the rows held out fell to 0.5000, also with shorter steps: 64 groups do not "
    "merge well here. The model is that of the round before. Use fewer groups or more rounds.",
    seconds_before=12.34,
)


def test_a_record_gives_the_receipt_back_also_through_json():
    for receipt in (FULL, Receipt(1, 10, 5)):
        assert Receipt.from_record(receipt.record()) == receipt
        assert Receipt.from_record(json.loads(json.dumps(receipt.record()))) == receipt


def test_the_text_fits_in_80_columns_and_says_everything():
    text = str(FULL)
    assert max(map(len, text.splitlines())) <= 80
    for part in (
        "1,234,567,890 rows, 12,345,678 positive, in 64 groups; 1,234,567 more left out",
        "AUC 0.9877 (0.9871 to 0.9880) on 65,536 rows held out",
        "2 (0.125)",
        "1234.6",
        "Stopped: in round 2 of 16",
        "on a sample of 52,428 rows",
        "+0.0012",
        "-0.0002",
        "12.3 s before the first round",
    ):
        assert part in text.replace("\n", " ")
    assert text.splitlines()[-1] == "With more rows than the sample has, the loss is smaller: groups differ less."


def test_the_text_of_a_short_receipt():
    assert str(Receipt(1, 10, 5, rounds=[RoundReceipt(10, 0.5, 1_500_000, 200_000, 1)])).splitlines() == [
        "10 rows, 5 positive, in 1 group",
        "  round  rows  settings  AUC  seconds  state MB  learned MB",
        "      1    10         1    -      0.5       1.5         0.2",
        "0.0 s before the first round, to read, pack and divide the rows",
    ]


def test_a_fit_keeps_its_receipt_in_the_model_file():
    model = fit_groups([ROWS], "dual-logistic", groups=3, rounds=2)
    receipt = Receipt.from_record(Model.from_bytes(model.to_bytes()).source[KEY])
    assert receipt == Receipt.from_record(model.source[KEY])
    assert (receipt.groups, receipt.rows, receipt.positives) == (3, 3000, np.count_nonzero(ROWS.labels > 0))
    assert len(receipt.rounds) == 2
    assert sum(one.rows for one in receipt.rounds) + receipt.held_out == 3000
    assert receipt.auc_low < receipt.auc < receipt.auc_high
    assert receipt.auc == pytest.approx(receipt.rounds[-1].auc)
    assert all(one.seconds > 0 and one.sent > 0 and one.settings == 1 for one in receipt.rounds)
    assert receipt.rounds[1].sent > receipt.rounds[0].sent  # the state has features now
    assert max(map(len, str(receipt).splitlines())) <= 80


def test_the_auc_and_its_interval_are_those_of_the_last_merged_model():
    held = random_block(300, 60, 6, seed=1)
    division = divide(np.full(20, 10), np.full(20, 5), 2, 1)
    fit = RoundsFit(Model("dual-auc"), division, held)
    fit._scores = np.linspace(0, 1, 300)
    found, expected = receipt_of(fit, 10, 5), auc_interval(held.labels, fit._scores)
    assert (found.auc, found.auc_low, found.auc_high) == (float(expected), expected.low, expected.high)
    assert found.held_out == 300


# -- prices


def test_prices_are_losses_against_learning_in_sequence_on_rows_that_are_not_learned():
    learner = DualAveraging(loss="logistic")
    rows, found = prices(learner, "unit", "float32", [ROWS], 2, None)
    pieces = cut([ROWS], 256)
    test, learned = concatenate(pieces[4::5]), [piece for at, piece in enumerate(pieces) if at % 5 != 4]
    assert rows == 3000 - len(test)
    assert [(one.groups, one.rounds) for one in found] == [(2, 4), (4, 4), (8, 4)]
    alone = Model(learner)
    for piece in learned:
        alone.learn(piece)
    for one in found:
        model = fit_groups(learned, learner, groups=one.groups, rounds=one.rounds)
        lost = float(auc(test.labels, alone.score(test))) - float(auc(test.labels, model.score(test)))
        assert one.loss == pytest.approx(lost, abs=1e-12)
        assert abs(one.loss) < 0.02
        assert 0 < one.error < 0.02


def test_the_price_of_one_group_is_nothing():
    _, found = prices(DualAveraging(), "max", "float64", [ROWS], 1, 2)
    assert (found[0].loss, found[0].error) == (0.0, 0.0)
    assert [(one.groups, one.rounds) for one in found] == [(1, 2), (2, 2), (4, 2)]


def test_prices_end_where_the_sample_is_too_small():
    def groups(rows, learner=None, count=2):
        return [one.groups for one in prices(learner or DualAveraging(), "unit", "float32", [rows], count, None)[1]]

    assert groups(ROWS[:1000]) == []  # nothing to measure on
    assert groups(ROWS[:1300], count=40) == [40]
    assert groups(ROWS, make_learner("opauc"), 1) == [1]  # which cannot be learned in groups
    assert groups(dataclasses.replace(ROWS, labels=np.ones(3000, np.int8))) == []
    in_order = ROWS.take(np.argsort(ROWS.labels))
    assert groups(in_order) == []
