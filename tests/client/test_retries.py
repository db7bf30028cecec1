"""A request that is sent again does what it would have done once; one that cannot help is not sent again."""

from __future__ import annotations

import asyncio
import pickle
import time

import pytest

from rarestream import DataError, RarestreamError
from rarestream.client import ServiceError, ServiceUnavailableError
from tests.client.misbehaving import Misbehaving

ROWS = [{"a": 1.5}, {"b": 2}, {"a": 0.25, "c": 3}]
BUSY = (429, "Retry-After: 0\r\n", '{"error":{"code":"busy","message":"The queue is full."}}')
LATER = (429, "Retry-After: 7\r\n", '{"error":{"code":"busy","message":"The queue is full."}}')
NEVER = (503, "Retry-After: 86400\r\n", '{"error":{"code":"not_ready","message":"Replaying."}}')
GATEWAY = (502, "Connection: close\r\n", "<html>bad gateway</html>")
TROUBLE = [
    "drop",
    "lose",
    "cut",
    BUSY,
    GATEWAY,
    (503, "", "not ready"),
    (504, "", ""),
    (408, "", "late"),
    "until the end",
]


@pytest.mark.parametrize("trouble", TROUBLE, ids=lambda step: step if isinstance(step, str) else str(step[0]))
def test_rows_are_learned_once_whatever_happens_on_the_way(connect, trouble):
    with Misbehaving([trouble, trouble]) as server:
        found = connect(server.address).learn(ROWS, [1, 0, -1])
        assert found.learned == 3
        assert found.refused == []
        assert server.learned == [(ROWS[0], 1), (ROWS[1], 0), (ROWS[2], -1)]
        assert len({headers["idempotency-key"] for _, _, headers, _ in server.requests}) == 1


@pytest.mark.parametrize("trouble", ["drop", "lose", "cut", "hang"])
def test_labels_are_learned_once_whatever_happens_on_the_way(connect, trouble):
    with Misbehaving(["ok", trouble, trouble]) as server:
        client = connect(server.address, timeout=0.3 if trouble == "hang" else 10.0)
        client.predict(ROWS, ids=["x", "y", "z"])
        found = client.label({"x": 1, "z": 0})
        assert (found.learned, found.duplicate, found.unknown) == (2, [], [])
        assert found.repeated == (trouble != "drop")
        assert server.learned == [(ROWS[0], 1), (ROWS[2], 0)]


def test_no_answer_in_time_is_asked_again_and_learned_once(connect):
    with Misbehaving(["hang", "hang"]) as server:
        assert connect(server.address, timeout=0.3).learn_one(ROWS[0], 1).repeated
        assert server.learned == [(ROWS[0], 1)]
        assert len(server.requests) == 3


@pytest.mark.parametrize("trouble", ["drop", "lose", "cut", BUSY, GATEWAY, "until the end"], ids=str)
def test_predictions_are_asked_again_and_stored_once(connect, trouble):
    with Misbehaving([trouble]) as server:
        found = connect(server.address).predict_one({"a": 2.5}, id="x")
        assert (found.score, found.id) == (2.5, "x")
        assert server.stored == {"x": {"a": 2.5}}


def test_every_call_has_a_key_of_its_own_or_the_one_given(connect):
    with Misbehaving() as server:
        client = connect(server.address)
        client.learn_one(ROWS[0], 1)
        client.learn_one(ROWS[0], 1)
        assert not client.learn_one(ROWS[1], 1, key="clicks-0-17").repeated
        assert client.learn_one(ROWS[1], 1, key="clicks-0-17").repeated
        keys = [headers["idempotency-key"] for _, _, headers, _ in server.requests]
        assert len(set(keys)) == 3
        assert keys[2:] == ["clicks-0-17"] * 2
        assert len(server.learned) == 3
        with pytest.raises(ServiceError, match="another body") as caught:
            client.learn_one(ROWS[0], 1, key="clicks-0-17")
        assert (caught.value.status, caught.value.code) == (422, "key_reused")


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 413, 422, 500, 507])
def test_what_another_attempt_cannot_change_is_not_sent_again(connect, status):
    words = '{"error":{"code":"some_code","message":"Row 2 is wrong.","row":2}}'
    with Misbehaving([(status, "", words)]) as server:
        with pytest.raises(ServiceError, match="^Row 2 is wrong.$") as caught:
            connect(server.address).learn(ROWS, [1, 0, 0])
        error = caught.value
        assert not isinstance(error, ServiceUnavailableError)
        assert isinstance(error, RarestreamError)
        assert (error.status, error.code, error.row, error.message) == (status, "some_code", 2, "Row 2 is wrong.")
        assert len(server.requests) == 1
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), again.row, str(again)) == (ServiceError, 2, str(error))


def test_a_full_disk_is_waited_for_by_choice(connect):
    with Misbehaving([(507, "", '{"error":{"code":"disk_full","message":"The disk is full."}}')] * 2) as server:
        assert connect(server.address, retry_on=(429, 507)).learn_one(ROWS[0], 1).learned == 1
        assert len(server.requests) == 3


@pytest.fixture
def pauses(monkeypatch):
    """The pauses of clients, which are cut short."""
    found = []
    sleep = asyncio.sleep

    async def short(seconds, *rest):
        if seconds > 0:
            found.append(seconds)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", short)
    monkeypatch.setattr(time, "sleep", found.append)
    return found


def test_the_service_says_how_long_to_wait(connect, pauses):
    with Misbehaving([LATER, BUSY]) as server:
        client = connect(server.address, pause=0.1)
        client.predict_one(ROWS[0])
    assert 7 <= pauses[0] <= 7.1
    assert pauses[1] <= 0.2


def test_pauses_grow_and_are_random(connect, pauses):
    with Misbehaving([(503, "", "")] * 10) as server, pytest.raises(ServiceUnavailableError):
        connect(server.address, pause=1.0, retries=9).predict_one(ROWS[0])
    assert len(pauses) == 9
    for number, pause in enumerate(pauses):
        most = min(5.0, 2.0**number)
        assert most / 2 <= pause <= most
    assert len(set(pauses)) == 9


def test_a_pause_that_is_too_long_ends_the_call(connect):
    with Misbehaving([NEVER]) as server:
        with pytest.raises(ServiceUnavailableError, match="Replaying") as caught:
            connect(server.address).predict_one(ROWS[0])
        assert (caught.value.retry_after, caught.value.status, caught.value.code) == (86400, 503, "not_ready")
        assert len(server.requests) == 1


def test_after_the_last_attempt_the_error_says_what_was_tried_and_how_to_go_on(connect):
    with Misbehaving(["lose", GATEWAY, "drop"]) as server:
        with pytest.raises(ServiceUnavailableError, match="POST /learn was tried 3 times") as caught:
            connect(server.address, retries=2).learn(ROWS, [1, 0, 0], key="mine")
        error = caught.value
        assert len(error.attempts) == 3
        assert "502" in error.attempts[1]
        assert error.uncertain
        assert error.key == "mine"
        assert "key='mine'" in str(error)
        assert connect(server.address).learn(ROWS, [1, 0, 0], key=error.key).repeated
        assert len(server.learned) == 3


def test_nobody_there_is_not_uncertain(connect):
    with Misbehaving() as server:
        address = server.address
    with pytest.raises(ServiceUnavailableError, match="tried 3 times") as caught:
        connect(address, retries=2).learn_one(ROWS[0], 1)
    assert not caught.value.uncertain
    client = connect(address)
    assert not client.healthy()
    assert not client.ready()
    assert not client.ready(wait=0.05)


def test_many_attempts_are_listed_in_short(connect):
    with Misbehaving([(503, "", "no")] * 31) as server, pytest.raises(ServiceUnavailableError) as caught:
        connect(server.address, retries=30, pause=0.0).predict_one(ROWS[0])
    assert len(caught.value.attempts) == 10
    assert "31 times" in str(caught.value)


@pytest.mark.parametrize("call", ["promote", "stop_shadow", "start_shadow"])
def test_what_must_not_happen_twice_is_sent_again_only_if_it_did_not_arrive(connect, call):
    words = (b"model",) if call == "start_shadow" else ()
    with Misbehaving([BUSY]) as server:
        getattr(connect(server.address), call)(*words)
        assert len(server.requests) == 2
    for trouble in ("lose", GATEWAY):
        with Misbehaving([trouble]) as server:
            with pytest.raises(ServiceUnavailableError, match="may have done it") as caught:
                getattr(connect(server.address), call)(*words)
            assert caught.value.uncertain
            assert len(server.requests) == 1


@pytest.mark.parametrize(
    "step", ["garbage", (200, "", "no JSON"), (200, "", "[]"), (200, "", '{"scores": [1]}')], ids=str
)
def test_an_answer_that_makes_no_sense_is_an_error_and_not_asked_again(connect, step):
    with Misbehaving([step]) as server:
        with pytest.raises(ServiceError, match="rarestream serve") as caught:
            connect(server.address).predict_one(ROWS[0])
        assert caught.value.code == "bad_answer"
        assert len(server.requests) == 1


def test_a_redirect_is_said_and_not_followed(connect):
    moved = (307, "Location: https://elsewhere/\r\n", "")
    with Misbehaving([moved]) as server, pytest.raises(ServiceError, match="https://elsewhere/"):
        connect(server.address, token="secret").predict_one(ROWS[0])


def test_an_answer_in_chunks_is_the_same_answer(connect):
    with Misbehaving(["chunked", "chunked"]) as server:
        client = connect(server.address)
        assert client.predict(ROWS).scores == client.predict(ROWS).scores == [1.5, 2, 3.25]
        assert server.connections == 1


def test_a_refusal_before_the_body_was_read_is_understood(connect):
    with Misbehaving(["early"]) as server:
        rows = [{"a": "x" * 1000}] * 5000
        with pytest.raises(ServiceError, match="Too large"):
            connect(server.address).predict(rows)
        assert server.requests == []


def test_connections_are_kept_and_those_closed_by_the_service_are_no_attempt(connect):
    with Misbehaving() as server:
        client = connect(server.address, retries=0)
        for number in range(5):
            assert client.predict_one({"a": number}).score == number
        assert server.connections == 1
        for step in ("leave", "closing"):
            for _ in range(3):
                server.script = [step]
                client.predict_one(ROWS[0])
                client.learn_one(ROWS[0], 1)
        assert len(server.learned) == 6
        before = server.connections
        server.cut_all()
        client.promote()
        assert server.connections == before + 1


def test_a_used_connection_that_ends_under_a_request_is_no_attempt(connect):
    with Misbehaving(["ok", "drop", "ok", "lose"]) as server:
        client = connect(server.address, retries=0)
        for number in range(3):
            client.learn_one({"a": number}, 1)
        assert server.learned == [({"a": number}, 1) for number in range(3)]


@pytest.mark.parametrize(
    "options",
    [
        {"timeout": 0},
        {"retries": -1},
        {"retries": 1.5},
        {"pause": -1.0},
        {"max_wait": float("inf")},
        {"connections": 0},
        {"token": "two words"},
        {"token": ""},
        {"token": "line\r\nX: y"},
        {"verify": False},
        {"ca": "ca.pem"},
    ],
    ids=str,
)
def test_invalid_options_are_refused(connect, options):
    with pytest.raises(DataError):
        connect("http://localhost:1", **options)


@pytest.mark.parametrize(
    "address",
    [
        "localhost:8080",
        "ftp://a",
        "http://",
        "http://a:b@c",
        "http://a/?b",
        "http://a:99999",
        "http://a\r\nX: y",
        "http://ä",
    ],
)
def test_invalid_addresses_are_refused_with_an_example(connect, address):
    with pytest.raises(DataError, match="http://localhost:8080"):
        connect(address)
