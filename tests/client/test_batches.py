"""Batches lose nothing, learn nothing twice, keep the order, and tell what failed."""

from __future__ import annotations

import threading

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rarestream import DataError
from rarestream.client import BatchError, Client, QueueFullError
from tests.client.misbehaving import Misbehaving

FULL = (507, "", '{"error":{"code":"disk_full","message":"The disk is full."}}')
TOKEN = (401, "", '{"error":{"code":"unauthorized","message":"Wrong token."}}')


def learn(batch, rows):
    for number in range(rows):
        batch.learn_one({"a": number}, 1)


@pytest.fixture
def server():
    with Misbehaving() as found:
        yield found


def test_rows_are_sent_many_at_a_time_in_their_order(connect, server):
    with connect(server.address).batch(size=100, seconds=60.0) as batch:
        for number in range(1050):
            batch.learn_one({"a": number}, number % 2, 2.0 if number == 5 else None)
    assert server.learned == [({"a": number}, number % 2) for number in range(1050)]
    assert server.importances[:7] == [1.0, 1.0, 1.0, 1.0, 1.0, 2.0, 1.0]
    assert server.importances[100] is None
    assert len(server.requests) == 11
    assert (batch.learned, batch.failures, batch.waiting) == (1050, 0, 0)


def test_a_row_does_not_wait_for_others_for_long(connect, server):
    with connect(server.address).batch(seconds=0.01) as batch:
        batch.learn_one({"a": 1}, 1)
        while not batch.learned:
            pass
    assert len(server.requests) == 1


def test_labels_come_after_the_rows_before_them(connect, server):
    client = connect(server.address)
    client.predict([{"a": n} for n in range(10)], ids=[f"r{n}" for n in range(10)])
    with client.batch(size=1000, seconds=60.0) as batch:
        for number in range(10):
            batch.learn_one({"b": number}, 0)
        for number in range(10):
            batch.label_one(f"r{number}", 1)
        batch.learn_one({"c": 1}, 1)
    assert [row for row, _ in server.learned] == [
        *({"b": n} for n in range(10)),
        *({"a": n} for n in range(10)),
        {"c": 1},
    ]
    assert [path for _, path, _, _ in server.requests] == ["/predict", "/learn", "/label", "/learn"]


def test_flush_returns_when_all_is_learned(connect, server):
    with connect(server.address).batch(size=1000, seconds=60.0) as batch:
        for number in range(1, 20):
            batch.learn_one({"a": number}, 1)
            if number % 5 == 0:
                batch.flush()
                assert len(server.learned) == number
        batch.flush()
        batch.flush()
        assert batch.waiting == 0


TROUBLE = ["drop", "lose", "cut", FULL, (503, "", "no"), (502, "Connection: close\r\n", "no"), (429, "", "busy")]


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(["ok", *TROUBLE]), max_size=12), st.integers(1, 40), st.integers(1, 30))
def test_nothing_is_lost_and_nothing_learned_twice(connect, script, size, queue):
    with Misbehaving(script) as server:
        with connect(server.address).batch(size=size, queue=queue) as batch:
            for number in range(100):
                batch.learn_one({"a": number}, 1)
        assert server.learned == [({"a": number}, 1) for number in range(100)]
        assert batch.learned == 100


def test_a_full_queue_waits_or_raises(connect):
    with Misbehaving(["hang"]) as server:
        client = connect(server.address, timeout=0.5)
        with client.batch(size=1, queue=3, full="raise") as batch:
            with pytest.raises(QueueFullError, match="3 rows and labels wait"):
                learn(batch, 100)
            taken = batch.waiting
            assert taken in (3, 4)  # one may be on its way
        assert server.learned == [({"a": number}, 1) for number in range(taken)]
    with Misbehaving(["hang"]) as server:
        with connect(server.address, timeout=0.5).batch(size=1, queue=3) as batch:
            for number in range(20):
                batch.learn_one({"a": number}, 1)
                assert batch.waiting <= 4
        assert len(server.learned) == 20


def test_rows_that_are_refused_are_raised_at_the_end_and_the_others_learned(connect, server):
    server.bad = lambda row: "it is a 7" if row["a"] == 7 else None
    server.refused = lambda row: "it is a 9" if row["a"] == 9 else None
    batch = connect(server.address).batch(size=20)
    for number in range(40):
        batch.learn_one({"a": number}, number % 2)
    with pytest.raises(BatchError, match="2 rows or labels were not learned. The first is row 7: it is a 7") as caught:
        batch.close()
    one, two = caught.value.failed
    assert (one.number, one.row, one.label, one.code, one.error.row) == (7, {"a": 7}, 1, "bad_rows", 7)
    assert (two.number, two.row, two.code, two.reason, two.error) == (9, {"a": 9}, "refused", "it is a 9", None)
    assert [row["a"] for row, _ in server.learned] == [n for n in range(40) if n not in (7, 9)]
    assert (batch.learned, batch.failures) == (38, 2)


def test_labels_that_come_to_nothing_are_told(connect, server):
    client = connect(server.address)
    client.predict_one({"a": 1}, id="x")
    failed = []
    with client.batch(seconds=60.0, on_failed=failed.append) as batch:
        for id, label in (("x", 1), ("y", 0), ("x", 0)):
            batch.label_one(id, label)
    assert [(one.number, one.id, one.label, one.code) for one in failed] == [
        (1, "y", 0, "unknown"),
        (2, "x", 0, "duplicate"),
    ]
    assert batch.learned == 1


def test_a_request_that_is_too_large_is_sent_in_halves(connect, server):
    server.most_rows = 7
    with connect(server.address).batch(size=100, seconds=60.0) as batch:
        for number in range(50):
            batch.learn_one({"a": number}, 1)
    assert server.learned == [({"a": number}, 1) for number in range(50)]


def test_large_rows_are_sent_in_requests_of_a_few_megabytes(connect, server):
    with connect(server.address).batch(size=1000, seconds=60.0) as batch:
        for number in range(10):
            batch.learn_one({"a": number, "text": "x" * 1_000_000}, 1)
    assert len(server.learned) == 10
    assert all(len(body) < 5_000_000 for _, _, _, body in server.requests)


def test_a_service_that_stays_away_gives_the_rows_back(connect, server):
    server.script = ["lose"] + ["drop"] * 1000
    failed = []
    with connect(server.address).batch(give_up=0.05, on_failed=failed.append) as batch:
        for number in range(5):
            batch.learn_one({"a": number}, 1)
        batch.flush()
    assert [one.row for one in failed] == [{"a": number} for number in range(5)]
    assert all(one.uncertain and one.error.key for one in failed)


def test_a_wrong_token_gives_all_rows_back(connect, server):
    server.script = [TOKEN]
    batch = connect(server.address).batch()
    learn(batch, 5)
    with pytest.raises(BatchError, match="5 rows or labels were not learned.*Wrong token") as caught:
        batch.close()
    assert [one.row for one in caught.value.failed] == [{"a": number} for number in range(5)]
    assert server.learned == []


def test_after_many_failures_nothing_more_is_taken_until_someone_looks(connect, server):
    server.refused = lambda row: "no" if row["a"] < 5000 else None
    failed = 0
    batch = connect(server.address).batch(size=100, queue=100)
    for number in range(6000):
        try:
            batch.learn_one({"a": number}, 1)
        except BatchError as error:
            failed += len(error.failed)
            batch.learn_one({"a": number}, 1)
    try:
        batch.close()
    except BatchError as error:
        failed += len(error.failed)
    assert failed == batch.failures == 5000
    assert batch.learned == len(server.learned) == 1000


def test_an_error_of_on_failed_is_raised_where_it_is_seen(connect, server):
    server.refused = lambda row: "no"

    def on_failed(one):
        raise ZeroDivisionError

    batch = connect(server.address).batch(on_failed=on_failed)
    batch.learn_one({"a": 1}, 1)
    with pytest.raises(ZeroDivisionError):
        batch.flush()
    with pytest.raises(BatchError):
        batch.close()


def test_an_error_in_the_block_is_not_hidden_and_what_was_queued_is_sent(connect, server):
    server.refused = lambda row: "no" if row["a"] == 1 else None

    def block():
        with connect(server.address).batch(seconds=60.0) as batch:
            learn(batch, 3)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as caught:
        block()
    assert "1 row or label was not learned" in caught.value.__notes__[0]
    assert len(server.learned) == 2


def test_what_cannot_be_sent_is_refused_at_once_and_a_row_is_what_it_was_when_it_was_queued(connect, server):
    row = {"a": 1}
    with connect(server.address).batch(seconds=60.0) as batch:
        with pytest.raises(DataError, match="NaN"):
            batch.learn_one({"a": float("nan")}, 1)
        with pytest.raises(DataError):
            batch.label_one("", 1)
        batch.learn_one(row, 1)
        row["a"] = 2
    assert server.learned == [({"a": 1}, 1)]
    with pytest.raises(DataError, match="closed"):
        batch.learn_one(row, 1)
    batch.close()


@pytest.mark.parametrize(
    "options", [{"size": 0}, {"queue": 0}, {"seconds": -1}, {"full": "block"}, {"give_up": -1}, {"size": 1.5}], ids=str
)
def test_invalid_options_are_refused(connect, server, options):
    with pytest.raises(DataError):
        connect(server.address).batch(**options)


def test_many_threads_share_a_batch(server):
    with Client(server.address) as client, client.batch(size=50, queue=60) as batch:

        def learn(first: int) -> None:
            for number in range(first, first + 100):
                batch.learn_one({"a": number}, 1)

        threads = [threading.Thread(target=learn, args=(first,)) for first in range(0, 500, 100)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    numbers = [row["a"] for row, _ in server.learned]
    assert sorted(numbers) == list(range(500))
    for first in range(0, 500, 100):
        assert [number for number in numbers if first <= number < first + 100] == list(range(first, first + 100))


def test_on_failed_may_queue_the_row_again(server):
    refusals = [True, True]
    server.refused = lambda row: "not now" if row["a"] == 1 and refusals and refusals.pop() else None
    with Client(server.address) as client:
        batch = client.batch(size=2, queue=2, on_failed=lambda one: batch.learn_one(one.row, one.label))
        with batch:
            for number in range(10):
                batch.learn_one({"a": number}, 1)
            batch.flush()
    assert sorted(row["a"] for row, _ in server.learned) == list(range(10))
