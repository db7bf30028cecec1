"""Clients and the real service."""

from __future__ import annotations

import asyncio

import pytest

from rarestream import Model
from rarestream.client import AsyncClient, Client, ServiceError
from tests.client.services import Served, label, row, small_model

pytest.importorskip("msgspec")
pytest.importorskip("starlette")
pytest.importorskip("uvicorn")


@pytest.fixture
def served(tmp_path):
    found = Served(tmp_path)
    yield found
    found.kill()


def test_scores_are_those_of_the_model_bit_for_bit_before_and_after_learning(served, tmp_path):
    model = small_model()
    with served.client() as client:
        for _ in range(2):
            rows = [row(number * 31) for number in range(300)]
            expected = [model.score_one(one) for one in rows]
            assert [client.predict_one(one).score for one in rows] == expected
            found = client.predict(rows)
            assert found.scores == expected
            assert found.probabilities is not None
            learned = client.learn(rows, [label(number) for number in range(300)])
            assert learned.learned == 300
            before = [model.learn_one(one, label(number)) for number, one in enumerate(rows)]
            assert learned.scores == before
        assert client.model().rows == model.rows == 1100
        assert client.snapshot() == learned.sequence
        client.download_model(tmp_path / "copy.rare")
        copy = Model.load(tmp_path / "copy.rare")
        assert [copy.score_one(one) for one in rows] == [model.score_one(one) for one in rows]


def test_labels_are_joined_with_their_rows(served):
    model = small_model()
    with served.client() as client:
        ids = [f"r{number}" for number in range(20)]
        stored = client.predict([row(number) for number in range(20)], ids=ids)
        assert (stored.stored, stored.ids) == (20, ids)
        assert client.predict([row(0)], ids=["r0"]).stored == 0
        made = client.predict_one(row(5), remember=True)
        assert made.id is not None
        found = client.label([("r3", 1), ("r4", 0), ("r3", 0), ("nobody", 1), (made.id, 1)])
        assert (found.learned, found.duplicate, found.unknown) == (3, ["r3"], ["nobody"])
        for number, mark in ((3, 1), (4, 0), (5, 1)):
            model.learn_one(row(number), mark)
        assert client.predict_one(row(9)).score == model.score_one(row(9))
        again = client.label_one("r7", 1, key="once")
        assert client.label_one("r7", 1, key="once") == again._replace(repeated=True)
        assert client.model().rows == 504


def test_what_the_service_refuses_has_its_words_and_its_row(served):
    with served.client() as client:
        with pytest.raises(ServiceError) as caught:
            client.predict([row(0), [(1, 2.0)]])
        assert (caught.value.status, caught.value.code, caught.value.row) == (422, "bad_rows", 1)
        assert client.learn_one(row(0), 1, key="k").learned == 1
        with pytest.raises(ServiceError) as caught:
            client.learn_one(row(1), 1, key="k")
        assert (caught.value.status, caught.value.code) == (422, "key_reused")
        assert client.model().rows == 501


def test_a_thousand_calls_at_once(served):
    model = small_model()
    served.client().close()

    async def ask(combine: int) -> list[float]:
        async with AsyncClient(served.address, combine=combine) as client:
            found = await asyncio.gather(*(client.predict_one(row(number)) for number in range(1000)))
            return [one.score for one in found]

    expected = [model.score_one(row(number)) for number in range(1000)]
    for combine in (0, 200):
        assert asyncio.run(ask(combine)) == expected


def test_a_shadow_model(served, tmp_path):
    with served.client() as client:
        assert client.shadow() is None
        started = client.start_shadow(served.file, positives=5, margin=0.1)
        assert (started.needed_positives, started.margin, started.promote) == (5, 0.1, "manual")
        client.learn([row(number) for number in range(100)], [label(number) for number in range(100)])
        served.child.until(lambda: client.shadow().rows == 100)
        client.stop_shadow()
        assert client.shadow() is None
        with pytest.raises(ServiceError):
            client.promote()


def test_a_batch_survives_kills_of_the_service_and_learns_each_row_once(served):
    model = small_model()
    with served.client(timeout=5.0) as client:
        failed = []
        with client.batch(size=50, queue=200, on_failed=failed.append) as batch:
            for number in range(6000):
                batch.learn_one(row(number), label(number))
                model.learn_one(row(number), label(number))
                if number % 2000 == 1000:
                    served.kill()
                    served.start()
        assert (failed, batch.learned) == ([], 6000)
        found = client.model()
        assert (found.rows, found.positives) == (model.rows, model.positives)
        # The same rows in the same order: the same bits.
        rows = [row(number) for number in range(200)]
        assert client.predict(rows).scores == [model.score_one(one) for one in rows]


def test_an_async_batch_survives_a_kill_too(served):
    async def learn() -> int:
        async with AsyncClient(served.address, timeout=5.0) as client:
            assert await client.ready(wait=60.0)
            async with client.batch(size=50, queue=200) as batch:
                for number in range(3000):
                    await batch.learn_one(row(number), label(number))
                    if number == 1500:
                        served.kill()
                        served.start()
            return (await client.model()).rows

    assert asyncio.run(learn()) == 3500


def test_labels_of_a_batch_survive_a_kill(served):
    with served.client(timeout=5.0) as client:
        ids = [f"r{number}" for number in range(2000)]
        client.predict([row(number) for number in range(2000)], ids=ids)
        with client.batch(size=50, queue=100) as batch:
            for number, id in enumerate(ids):
                batch.label_one(id, label(number))
                if number == 1000:
                    served.kill()
                    served.start()
        assert batch.learned == 2000
        assert client.model().rows == 2500


def test_a_token_and_a_unix_socket(tmp_path):
    (tmp_path / "token").write_text("0123456789abcdef")
    path = tmp_path / "rare.sock"
    served = Served(tmp_path, "--token-file", tmp_path / "token", "--socket", path)
    with Client(f"http+unix://{path}", token="0123456789abcdef") as client:
        assert client.ready(wait=60.0)
        assert client.predict_one(row(1)).score == small_model().score_one(row(1))
    with Client(f"http+unix://{path}", token="wrong") as client, pytest.raises(ServiceError) as caught:
        client.predict_one(row(1))
    assert (caught.value.status, caught.value.code) == (401, "unauthorized")
    served.kill()
