"""Clients that are slow, wrong, greedy or gone, and how the server starts and stops."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from rarestream.serve.http import ServerError, Settings, run
from rarestream.serve.messages import Learned
from rarestream.serve.options import Options
from rarestream.serve.rows import Limits
from rarestream.serve.service import Service
from tests.children import Child
from tests.serve.http.serving import LIMIT, Served, answers, serving, trained_model, until_closed

ROW = b'{"row":{"site":"s3"}}'
CLOSE = b"Connection: close\r\n"


def post(path: bytes, body: bytes, *headers: bytes, length: int | None = None) -> bytes:
    return b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s" % (
        path,
        b"".join(headers),
        len(body) if length is None else length,
        body,
    )


# -- bytes that come in an unusual way


def test_requests_in_one_packet_are_answered_in_order(served: Served) -> None:
    many = post(b"/predict", ROW) + post(b"/nothing", ROW) + b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
    found = answers(served.raw(many + post(b"/predict", ROW, CLOSE)))
    assert [answer.status for answer in found] == [200, 404, 200, 200]
    assert found[0].json == found[3].json


def test_a_request_may_come_byte_by_byte(served: Served) -> None:
    request = post(b"/predict", ROW, CLOSE)
    assert answers(served.raw(*(request[i : i + 1] for i in range(len(request)))))[0].status == 200


def test_a_body_may_come_in_chunks(served: Served) -> None:
    head = b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n"
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(ROW[i : i + 5]), ROW[i : i + 5]) for i in range(0, len(ROW), 5))
    found = answers(served.raw(head + CLOSE + b"\r\n" + chunks + b"0\r\n\r\n"))
    assert found[0].status == 200


def test_continue_is_said_before_a_body_that_waits_for_it(served: Served) -> None:
    with served.connect() as connection:
        head, _, body = post(b"/predict", ROW, CLOSE, b"Expect: 100-continue\r\n").partition(b"\r\n\r\n")
        connection.sendall(head + b"\r\n\r\n")
        assert connection.recv(1000).startswith(b"HTTP/1.1 100 ")
        connection.sendall(body)
        assert answers(until_closed(connection))[0].status == 200


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100),
        b"GET / HTTP/9.9\r\n\r\n",
        b"nonsense\r\n\r\n",
        b"GET /model HTTP/1.1\r\nHost x\r\n\r\n",
        b"GET /mod\xc3\xa4l HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST /predict HTTP/1.1\r\nContent-Length: -3\r\n\r\n",
        b"POST /predict HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n",
        b"POST /predict HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n",
        b"POST /predict HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /predict HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
)
def test_what_is_not_http_is_refused(served: Served, request_bytes: bytes) -> None:
    found = answers(served.raw(request_bytes))
    assert found[0].status == 400
    assert found[0].error["code"] == "bad_http"
    assert found[0].headers["connection"] == "close"
    assert served.ask("GET", "/healthz").status == 200


def test_headers_without_end_are_refused(served: Served) -> None:
    with served.connect() as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\n")
        said = b""
        with contextlib.suppress(OSError):
            for i in range(100_000):
                connection.sendall(b"X-%d: %s\r\n" % (i, b"y" * 100))
        with contextlib.suppress(OSError):
            said = until_closed(connection)
        assert not said or answers(said)[0].status == 431
    assert served.ask("GET", "/healthz").status == 200


def test_a_few_thousand_headers_do_no_harm(served: Served) -> None:
    headers = b"".join(b"X-%d: y\r\n" % i for i in range(2000))
    assert answers(served.raw(b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + headers + CLOSE + b"\r\n"))[0].status == 200


def test_an_upgrade_is_not_taken(served: Served) -> None:
    request = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\n\r\n"
    assert answers(served.raw(request))[0].status == 200


# -- sizes


def test_a_body_that_announces_too_much_is_refused_at_once() -> None:
    with serving(options=Options(limits=Limits(body=1000))) as served:
        for path in (b"/predict", b"/learn", b"/label", b"/shadow"):
            kind = b"application/octet-stream" if path == b"/shadow" else b"application/json"
            head = b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nContent-Length: 1001\r\n\r\n" % (path, kind)
            with served.connect() as connection:
                connection.sendall(head)  # and nothing of the body
                said = connection.recv(65536)
                assert answers(said)[0].status == 413, path
                assert answers(said)[0].error["code"] == "too_large"
                assert answers(said)[0].headers["connection"] == "close"
                connection.shutdown(socket.SHUT_WR)
                assert until_closed(connection) == b""


def test_a_body_that_grows_too_large_is_refused_and_the_answer_seen() -> None:
    with serving(options=Options(limits=Limits(body=100_000))) as served:
        head = (
            b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        chunk = b"%x\r\n%s\r\n" % (50_000, b" " * 50_000)
        found = answers(served.raw(head, *[chunk] * 20, b"0\r\n\r\n"))
        assert [answer.status for answer in found] == [413]
        # A client that sends all of a large body first still sees the answer.
        answer = served.ask("POST", "/predict", b" " * 5_000_000)
        assert answer.status == 413
        assert answer.error["code"] == "too_large"


def test_a_body_of_the_largest_size_is_taken() -> None:
    with serving(options=Options(limits=Limits(body=200_000))) as served:
        body = ROW + b" " * (200_000 - len(ROW))
        assert served.ask("POST", "/predict", body).status == 200
        assert served.ask("POST", "/predict", body + b" ").status == 413


def test_connections_above_the_limit_are_told_so() -> None:
    with serving(connections=2) as served:
        with served.connect() as first, served.connect() as second:
            for connection in (first, second):
                connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
                assert answers(connection.recv(65536))[0].status == 200
            found = answers(served.raw())
            assert (found[0].status, found[0].error["code"]) == (503, "busy")
            assert found[0].headers["retry-after"]
        for _ in range(1000):  # the others are soon gone
            if answers(served.raw(b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + CLOSE + b"\r\n"))[0].status == 200:
                break
        else:
            pytest.fail("connections that are closed still count")


# -- time


def test_slow_headers_and_bodies_are_cut_off() -> None:
    with serving(header_timeout=0.3, body_timeout=0.3) as served:
        assert served.raw() == b""  # nothing said, nothing answered
        assert served.raw(b"\r\n") == b""
        found = answers(served.raw(b"GET /healthz HT"))
        assert (found[0].status, found[0].error["code"]) == (408, "timeout")
        found = answers(served.raw(post(b"/predict", ROW, length=len(ROW) + 1)))
        assert (found[0].status, found[0].error["code"]) == (408, "timeout")
        # Second requests of a connection have the same time.
        good = post(b"/predict", ROW)
        assert [answer.status for answer in answers(served.raw(good, b"GET /healthz HT"))] == [200, 408]
        assert [answer.status for answer in answers(served.raw(good, post(b"/learn", b"{", length=9)))] == [200, 408]
        # A request that was answered without its body must still send it in time.
        assert answers(served.raw(post(b"/nothing", b"", length=1000)))[0].status == 404
        assert served.service.sequence == 0


def test_a_body_that_drips_does_not_win_time() -> None:
    with serving(body_timeout=0.5) as served, served.connect() as connection:
        connection.sendall(post(b"/predict", b"", length=100_000))
        connection.settimeout(0.05)
        said = b""
        try:
            for _ in range(10_000):
                connection.sendall(b" ")
                try:
                    said = connection.recv(65536)
                    break
                except TimeoutError:
                    pass
        except OSError:
            pass
        assert answers(said)[0].status == 408


def test_an_idle_connection_is_closed() -> None:
    with serving(keep_alive=1) as served, served.connect() as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert answers(until_closed(connection))[0].status == 200


def test_what_was_asked_is_done_though_the_client_has_gone() -> None:
    gone = threading.Event()
    done = threading.Event()

    class Patient(Service):
        async def learn(self, *given: object, **more: object) -> Learned:
            await asyncio.get_running_loop().run_in_executor(None, gone.wait)
            try:
                return await super().learn(*given, **more)  # type: ignore[arg-type]
            finally:
                done.set()

    with serving(Patient) as served:
        with served.connect() as connection:
            connection.sendall(post(b"/learn", b'{"row":{"site":"s3"},"label":1}'))
        gone.set()
        assert done.wait(LIMIT)
        assert served.ask("GET", "/model").json["sequence"] == 1


def test_a_client_that_goes_in_the_middle_of_its_body_does_no_harm(served: Served) -> None:
    for sent in (b"POST /pre", post(b"/learn", b'{"row":', length=100)):
        with served.connect() as connection:
            connection.sendall(sent)
    assert served.ask("GET", "/healthz").status == 200


def test_many_clients_at_once(served: Served) -> None:
    wrong: list[object] = []

    def ask() -> None:
        found = answers(served.raw(*[post(b"/predict", ROW)] * 50, post(b"/predict", ROW, CLOSE)))
        if [answer.status for answer in found] != [200] * 51:
            wrong.append(found)

    threads = [threading.Thread(target=ask) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# -- start and stop

PROGRAM = """
import sys
from rarestream.serve.http import Settings, run
from rarestream.serve.service import Service
from tests.serve.http.serving import trained_model
import asyncio

class Slow(Service):
    async def snapshot(self):
        print("asked", flush=True)
        await asyncio.sleep(0.5)
        return 7

    async def stop(self):
        await super().stop()
        print("stopped", flush=True)

run(Slow(sys.argv[1], trained_model()), Settings(port=0))
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_requests_finish(tmp_path: Path, number: int) -> None:
    with Child([sys.executable, "-c", PROGRAM, tmp_path]) as child:
        line = child.line()
        assert line.startswith("rarestream serves on http://127.0.0.1:")
        port = int(line.rsplit(":", 1)[1])
        with socket.create_connection(("127.0.0.1", port), timeout=LIMIT) as connection:
            connection.sendall(b"POST /snapshot HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
            assert child.line() == "asked\n"
            child.send_signal(number)
            answer = answers(until_closed(connection))[0]
        assert (answer.status, answer.json) == (200, {"sequence": 7})
        assert child.line() == "stopped\n"
        assert child.wait() == 0
        assert child.stderr is not None and child.stderr.read() == ""


def test_a_port_that_is_taken_is_said(served: Served, tmp_path: Path) -> None:
    with pytest.raises(ServerError, match="cannot listen there: Address already in use"):
        run(Service(tmp_path, trained_model()), Settings(port=served.port))
    with pytest.raises(ServerError, match="cannot listen there"):
        run(Service(tmp_path, trained_model()), Settings(host="no.such.host.invalid", port=0))
    with pytest.raises(ServerError, match="between 0"):
        run(Service(tmp_path, trained_model()), Settings(port=70000))


def test_a_service_that_cannot_start_ends_the_server(served: Served) -> None:
    from rarestream.errors import RarestreamError

    with pytest.raises(RarestreamError), serving(folder=str(served.service.folder)):
        pass
    assert served.ask("GET", "/healthz").status == 200


def test_a_unix_socket(tmp_path: Path) -> None:
    path = tmp_path / "s"
    state = tmp_path / "state"
    program = PROGRAM.replace("Settings(port=0)", "Settings(uds=sys.argv[2])")
    for killed in (True, False):
        with Child([sys.executable, "-c", program, state, path]) as child:
            assert child.line() == f"rarestream serves on unix:{path}\n", child.stderr.read()  # type: ignore[union-attr]
            assert os.stat(path).st_mode & 0o777 == 0o660
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(str(path))
                connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + CLOSE + b"\r\n")
                assert answers(until_closed(connection))[0].status == 200
            with pytest.raises(ServerError, match="another process listens there"):
                run(Service(tmp_path / "other", trained_model()), Settings(uds=str(path)))
            child.send_signal(signal.SIGKILL if killed else signal.SIGTERM)
            child.wait()
    assert not path.exists()
    path.write_text("mine")
    with pytest.raises(ServerError, match="no socket"):
        run(Service(tmp_path / "other", trained_model()), Settings(uds=str(path)))
    assert path.read_text() == "mine"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tls")
    command = "openssl req -x509 -newkey rsa:2048 -keyout key.pem -out cert.pem -days 3 -subj /CN=localhost"
    names = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    subprocess.run([*command.split(), *names, "-passout", "pass:pw"], cwd=folder, check=True, capture_output=True)
    return folder


def test_tls(certificate: Path) -> None:
    cert, key = str(certificate / "cert.pem"), str(certificate / "key.pem")
    with serving(certificate=cert, key=key, key_password=b"pw") as served:
        assert served.address.startswith("https://127.0.0.1:")
        context = ssl.create_default_context(cafile=cert)
        with served.connect() as plain, context.wrap_socket(plain, server_hostname="localhost") as connection:
            connection.sendall(post(b"/predict", ROW, CLOSE))
            answer = answers(until_closed(connection))[0]
            assert answer.status == 200 and json.loads(answer.body)["scores"]
        assert served.raw(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n") == b""


def test_certificates_that_cannot_be_used_are_said(certificate: Path, tmp_path: Path) -> None:
    cert, key = str(certificate / "cert.pem"), str(certificate / "key.pem")
    service = Service(tmp_path, trained_model())
    for settings, words in (
        (Settings(certificate=cert, key=key), "is encrypted"),
        (Settings(certificate=cert, key=key, key_password=b"wrong"), "cannot be used"),
        (Settings(certificate=cert), "cannot be used"),
        (Settings(certificate="missing.pem", key=key), "missing.pem is not a file"),
        (Settings(key=key), "without a certificate"),
    ):
        with pytest.raises(ServerError, match=words):
            run(service, settings)
