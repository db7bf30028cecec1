"""What clients ask, what they return, and how they connect."""

from __future__ import annotations

import asyncio
import os
import ssl
import sys
import threading

import pytest

from rarestream import DataError, OutputError
from rarestream.client import (
    AsyncClient,
    AucInterval,
    Client,
    ModelInfo,
    Prediction,
    RowPrediction,
    ServiceError,
    ServiceUnavailableError,
    ShadowInfo,
)
from tests import children
from tests.client.misbehaving import MODEL, Misbehaving

AUC = AucInterval(0.75, 0.7, 0.8)


@pytest.fixture
def server():
    with Misbehaving() as found:
        yield found


def test_rows_are_scored_stored_and_learned(connect, server):
    client = connect(server.address)
    rows = [{"a": 1.5, "s": "x"}, {"a": 2}]
    assert client.predict(rows) == Prediction([1.5, 2], None, None, None, 0, 1, 0, 9)
    assert client.predict(iter(rows), ids=["p", "q"]).ids == ["p", "q"]
    assert client.predict(rows, ids=["q", "r"]).stored == 1
    assert client.predict_one([(1, 2.5), (7, 1)]) == RowPrediction(3.5, None, None, None, 0, 1, 0, 9)
    assert client.predict_one({"a": 4}, remember=True).id == "made-3"
    assert client.predict_one({"a": 4}, id="s").id == "s"
    assert client.learn(rows, (1, 0), [2.0, 0.5]).scores == [0.0, 0.0]
    assert server.importances == [2.0, 0.5]
    client.learn_one(rows[0], True, 3)
    assert server.importances[2:] == [3.0]
    found = client.label([("p", 1), ("r", 0), ("p", 0), ("z", 1)])
    assert (found.learned, found.unknown, found.duplicate, found.sequence) == (2, ["z"], ["p"], 5)
    assert client.label_one("s", 1).learned == 1
    assert client.predict([]).scores == []
    assert client.learn([], []).learned == 0


def test_lengths_must_agree_and_nothing_is_sent(connect, server):
    client = connect(server.address)
    with pytest.raises(DataError, match="2 rows, 1 ids"):
        client.predict([{}, {}], ids=["a"])
    with pytest.raises(DataError, match="1 rows, 2 labels"):
        client.learn([{}], [1, 0])
    with pytest.raises(DataError, match="1 rows, 0 importances"):
        client.learn([{}], [1], [])
    with pytest.raises(DataError, match="pairs"):
        client.label(["abc"])
    with pytest.raises(DataError, match="label_one"):
        client.label("abc")
    for key in ("", "x" * 256, "two words", "a\r\nb"):
        with pytest.raises(DataError, match="key"):
            client.learn_one({}, 1, key=key)
    assert server.requests == []


def test_the_model_and_its_shadow(connect, server, tmp_path):
    client = connect(server.address)
    found = client.model()
    assert isinstance(found, ModelInfo)
    assert found._replace(auc=None, shadow=None)._asdict() == MODEL | {"auc": None, "shadow": None}
    assert found.auc == AUC
    assert isinstance(found.shadow, ShadowInfo)
    assert found.shadow.difference == AucInterval(None, -1.0, 1.0)
    assert client.shadow() == found.shadow
    nothing = (404, "", '{"error":{"code":"not_found","message":"There is nothing here."}}')
    server.script = [nothing]
    assert client.shadow() == found.shadow  # what the model says counts
    server.script = [nothing, nothing]
    with pytest.raises(ServiceError, match="nothing here"):
        client.shadow()
    assert client.start_shadow(b"12345").learner == "5 bytes, promote=manual"
    (tmp_path / "m.rare").write_bytes(b"x" * 3_000_000)
    started = client.start_shadow(tmp_path / "m.rare", promote="auto", positives=50, margin=0.01)
    assert started.learner == "3000000 bytes, promote=auto&positives=50&margin=0.01"
    assert server.requests[-1][2]["content-type"] == "application/octet-stream"
    with pytest.raises(DataError, match="promote"):
        client.start_shadow(b"1", promote="yes")
    with pytest.raises(FileNotFoundError):
        client.start_shadow(tmp_path / "none.rare")
    assert client.stop_shadow() is None
    assert client.promote().version == 1
    assert client.snapshot() == 17
    assert client.statistics() == {"rows": 0}
    assert client.healthy() is client.ready() is True


def test_a_model_is_downloaded_whole_or_not_at_all(connect, server, tmp_path):
    client = connect(server.address, retries=1)
    assert client.model_file() == b"\x00model" * 100_000
    client.download_model(tmp_path / "m.rare")
    assert (tmp_path / "m.rare").read_bytes() == b"\x00model" * 100_000
    server.script = ["cut", "cut"]
    with pytest.raises(ServiceUnavailableError):
        client.download_model(tmp_path / "m.rare")
    with pytest.raises(OutputError):
        client.download_model(tmp_path)
    assert (tmp_path / "m.rare").stat().st_size == 600_000
    assert os.listdir(tmp_path) == ["m.rare"]


def test_the_token_is_sent_and_not_shown(connect, server):
    client = connect(server.address, token="s3cret")
    client.predict_one({})
    assert server.requests[0][2]["authorization"] == "Bearer s3cret"
    assert server.requests[0][2]["host"] == f"localhost:{server.port}"
    assert "s3cret" not in repr(client)


def test_a_path_before_those_of_the_service(connect, server):
    with pytest.raises(ServiceError, match="nothing here"):
        connect(f"{server.address}/models/one/").predict_one({})
    assert server.requests[0][1] == "/models/one/predict"


def test_a_closed_client_says_so(connect, server):
    client = connect(server.address)
    client.close()
    with pytest.raises(DataError, match="closed"):
        client.predict_one({})
    with pytest.raises(DataError, match="closed"):
        client.batch()


def test_clients_are_context_managers(server):
    with Client(server.address) as client:
        assert client.predict_one({"a": 1}).score == 1

    async def other() -> float:
        async with AsyncClient(server.address) as client:
            return (await client.predict_one({"a": 1})).score

    assert asyncio.run(other()) == 1


def test_unix_sockets(connect, tmp_path):
    with Misbehaving(path=str(tmp_path / "a.sock")) as server:
        assert connect(server.address).predict_one({"a": 2}).score == 2
    with pytest.raises(ServiceUnavailableError):
        connect(f"http+unix://{tmp_path}/b.sock", retries=1).predict_one({})


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A certificate for localhost that signs itself, with its key."""
    folder = tmp_path_factory.mktemp("tls")
    children.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=localhost",
            "-addext",
            "subjectAltName=DNS:localhost",
            "-keyout",
            folder / "key.pem",
            "-out",
            folder / "cert.pem",
        ],
        check=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    return folder / "cert.pem", context


def test_tls_with_a_certificate_that_is_trusted_and_without(connect, certificate, tmp_path):
    ca, context = certificate
    with Misbehaving(tls=context) as server:
        for options in ({"ca": ca}, {"verify": False}):
            client = connect(server.address, **options)
            before = server.connections
            assert [client.predict_one({"a": number}).score for number in range(4)] == [0, 1, 2, 3]
            assert server.connections == before + 1
            server.script = ["leave", "ok", "lose"]
            for _ in range(3):
                client.learn_one({}, 1)
        assert len(server.learned) == 6
        before = len(server.requests)
        client = connect(server.address)
        for call in (lambda: client.predict_one({}), client.healthy):
            with pytest.raises(ServiceUnavailableError, match="(?i)tried once.*certificate"):
                call()
        with pytest.raises(ServiceUnavailableError, match="(?i)tried once.*certificate"):
            connect(server.address.replace("localhost", "127.0.0.1"), ca=ca).predict_one({})
        assert len(server.requests) == before
    with pytest.raises(DataError, match="PEM"):
        connect("https://localhost", ca=tmp_path / "none.pem")


def test_many_threads_share_a_client(server):
    scores: dict[int, float] = {}
    with Client(server.address, connections=3) as client:

        def ask(first: int) -> None:
            for number in range(first, first + 50):
                scores[number] = client.predict_one({"a": number}).score

        threads = [threading.Thread(target=ask, args=(first,)) for first in range(0, 400, 50)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(client._idle) <= 3
    assert scores == {number: number for number in range(400)}


def test_many_calls_share_a_few_connections(server):
    async def ask() -> list[float]:
        async with AsyncClient(server.address, connections=4) as client:
            found = await asyncio.gather(*(client.predict_one({"a": number}) for number in range(300)))
            return [one.score for one in found]

    assert asyncio.run(ask()) == list(range(300))
    assert server.connections == 4


def test_calls_that_are_cancelled_leave_their_turn_to_others(server):
    async def ask() -> float:
        async with AsyncClient(server.address, connections=1) as client:
            tasks = [asyncio.create_task(client.predict_one({"a": number})) for number in range(20)]
            await asyncio.sleep(0)
            for task in tasks[:19]:
                task.cancel()
            found = await asyncio.gather(*tasks, return_exceptions=True)
            assert all(isinstance(one, asyncio.CancelledError) for one in found[:19])
            assert client._open == 0
            return found[19].score

    assert asyncio.run(ask()) == 19


def test_an_async_client_works_in_one_loop_after_another(server):
    client = AsyncClient(server.address)
    for number in range(3):
        assert asyncio.run(client.predict_one({"a": number})).score == number


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
def test_a_client_works_on_both_sides_of_a_fork(server):
    code = """
import os, sys
from rarestream.client import Client
client = Client(sys.argv[1])
batch = client.batch()
assert client.predict_one({"a": 1}).score == 1
child = os.fork()
for number in range(100):
    assert client.predict_one({"a": number}).score == number
if child == 0:
    try:
        batch.learn_one({}, 1)
    except Exception as error:
        assert "fork" in str(error)
        os._exit(0)
    os._exit(1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
batch.learn_one({"a": 1}, 1)
"""
    children.run([sys.executable, "-c", code, server.address], check=True)
    assert server.connections == 2
    assert server.learned == [({"a": 1}, 1)]  # at the end of the program


def test_importing_the_client_brings_in_little():
    code = (
        "import sys; from rarestream.client import Client; "
        "print(*sorted(name for name in sys.modules if name.partition('.')[0] in "
        "('rarestream', 'numpy', 'scipy', 'asyncio', 'ssl', 'http', 'email', 'uuid')))"
    )
    loaded = children.run([sys.executable, "-c", code], check=True).stdout.split()
    assert not {"numpy", "scipy", "asyncio", "ssl", "http", "email", "uuid"} & set(loaded)
    ours = {name for name in loaded if not name.startswith("rarestream.client")}
    assert ours == {"rarestream", "rarestream._version", "rarestream.errors"}


# -- rows of several calls in one request


def combined(server: Misbehaving, calls: int, **options: object) -> list[object]:
    async def ask() -> list[object]:
        async with AsyncClient(server.address, pause=0.001, **options) as client:  # type: ignore[arg-type]
            asked = (client.predict_one({"a": number}) for number in range(calls))
            return await asyncio.gather(*asked, return_exceptions=True)

    return asyncio.run(ask())


def test_calls_at_the_same_time_become_one_request(server):
    found = combined(server, 250, combine=100)
    assert [one.score for one in found] == list(range(250))
    assert len(server.requests) == 3


def test_a_row_that_is_refused_fails_alone(server):
    server.bad = lambda row: "7 is bad" if row["a"] % 10 == 7 else None
    found = combined(server, 30, combine=100)
    for number, one in enumerate(found):
        if number % 10 == 7:
            assert isinstance(one, ServiceError)
            assert one.message == "7 is bad"
        else:
            assert one.score == number


def test_a_request_that_is_too_large_is_sent_in_halves(server):
    server.most_rows = 10
    assert [one.score for one in combined(server, 50, combine=50)] == list(range(50))


def test_calls_of_a_request_that_fails_all_fail(server):
    server.script = [(401, "", '{"error":{"code":"unauthorized","message":"Wrong token."}}')]
    assert all(isinstance(one, ServiceError) for one in combined(server, 20, combine=100))


def test_rows_with_and_without_ids_are_not_mixed(server):
    async def ask() -> list[RowPrediction]:
        async with AsyncClient(server.address, combine=100) as client:
            asked = [client.predict_one({"a": n}, id=f"r{n}" if n % 2 else None) for n in range(20)]
            asked.append(client.predict_one({"a": 20}, id="r1"))
            return list(await asyncio.gather(*asked))

    found = asyncio.run(ask())
    assert [one.id for one in found[:20]] == [f"r{n}" if n % 2 else None for n in range(20)]
    assert [one.stored for one in found[:2]] == [0, None]  # one of them was stored before
    assert len(server.stored) == 10
    assert len(server.requests) == 2
