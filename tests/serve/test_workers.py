"""Read-only services in several processes on one port."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from rarestream import Model
from tests.children import run
from tests.serve.programs import RARESTREAM, Program, alive, environment, named_model, serving, until

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")
ROW = {"row": {"site": "s1.com", "price": 1.5, "new": True}}


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state directory with the snapshot that every service begins with."""
    folder = tmp_path_factory.mktemp("state")
    with serving(named_model(folder), "--dir", folder / "state"):
        pass
    return folder / "state"


@pytest.fixture(scope="module")
def score(state: Path) -> float:
    model = Model.load(state.parent / "model.rare")
    return float(model.score_one(ROW["row"]))


@pytest.fixture
def counts(tmp_path: Path) -> Path:
    """Where the workers of a test tell each other their counts."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    return folder


def per_worker(counts: Path) -> list[int]:
    """Rows that each worker has scored, as it told the others."""
    return [json.loads(file.read_text())["rows"][0] for file in sorted(counts.glob("rarestream-*/*.json"))]


def retried(program: Program, body: Any = ROW) -> dict[str, Any]:
    """An answer, asked for again while connections break: what a client does. No worker answers before it can."""
    for _ in range(50):
        try:
            answer = program.ask("POST", "/predict", body)
        except (ConnectionError, http.client.HTTPException):
            continue
        assert answer.status == 200, answer
        return answer.json
    raise AssertionError("no answer")


def test_connections_are_spread_over_all_workers_and_metrics_count_those_of_all(
    state: Path, score: float, counts: Path
) -> None:
    with serving("--dir", state, "--read-only", "--workers", 3, env=environment(TMPDIR=str(counts))) as program:
        assert len(program.workers()) == 3
        for _ in range(60):
            assert program.ask("POST", "/predict", ROW).json["scores"] == [score]
        found = until(lambda: sum(per_worker(counts)) == 60 and per_worker(counts))
        assert len(found) == 3
        assert min(found) > 0  # by a hash of addresses: one worker gets none once in 10^10 runs
        said = program.ask("GET", "/metrics").body.decode()
        assert "rarestream_rows_predicted_total 60.0" in said
        assert 'rarestream_requests_total{method="POST",path="/predict",status="200"} 60.0' in said
    assert not list(counts.iterdir())  # nothing is left behind


def test_a_worker_that_is_killed_is_replaced_while_requests_go_on(state: Path, score: float, counts: Path) -> None:
    with serving("--dir", state, "--read-only", "--workers", 2, env=environment(TMPDIR=str(counts))) as program:
        for _ in range(3):
            before = program.workers()
            os.kill(before[0], signal.SIGKILL)
            for _ in range(20):
                assert retried(program)["scores"] == [score]
            after = until(lambda gone=before[0]: len(w := program.workers()) == 2 and gone not in w and w)
            assert before[1] in after
        said = program.ask("GET", "/metrics").body.decode()
        assert "rarestream_ready 1.0" in said


def test_all_workers_follow_the_snapshots_of_the_service_that_learns(tmp_path: Path) -> None:
    model = named_model(tmp_path)
    with (
        serving(model, "--dir", tmp_path / "state") as learner,
        serving("--dir", tmp_path / "state", "--read-only", "--workers", 2) as program,
    ):
        connections = [http.client.HTTPConnection("127.0.0.1", program.port, timeout=60) for _ in range(12)]

        def answers() -> list[tuple[int, float]]:
            found = []
            for connection in connections:  # each stays with its worker
                connection.request("POST", "/predict", json.dumps(ROW), {"Content-Type": "application/json"})
                answer = json.loads(connection.getresponse().read())
                found.append((answer["sequence"], answer["scores"][0]))
            return found

        assert {sequence for sequence, _ in answers()} == {0}
        for number in (1, 2):
            learner.ask("POST", "/learn", {**ROW, "label": 1})
            assert learner.ask("POST", "/snapshot").json == {"sequence": number}
            expected = (number, learner.ask("POST", "/predict", ROW).json["scores"][0])
            until(lambda expected=expected: set(answers()) == {expected})
        refused = program.ask("POST", "/learn", {**ROW, "label": 1})
        assert (refused.status, refused.error["code"]) == (403, "read_only")
        for connection in connections:
            connection.close()


def test_no_worker_outlives_a_parent_that_is_killed(state: Path) -> None:
    with serving("--dir", state, "--read-only", "--workers", 2) as program:
        workers = program.workers()
        assert len(workers) == 2
        os.kill(program.child.pid, signal.SIGKILL)
        until(lambda: not any(map(alive, workers)))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_the_parent_ends_all_with_code_0(state: Path, number: signal.Signals) -> None:
    with serving("--dir", state, "--read-only", "--workers", 2) as program:
        workers = program.workers()
        program.child.send_signal(number)
        _, messages = program.child.communicate()
        assert program.child.returncode == 0
        assert not any(map(alive, workers))
        assert "Error" not in messages and "Traceback" not in messages


def test_a_unix_socket_is_shared_too_and_removed_at_the_end(state: Path, score: float, tmp_path: Path) -> None:
    path = tmp_path / "s"
    with serving("--dir", state, "--read-only", "--workers", 2, "--socket", path) as program:
        assert program.address == f"unix:{path}"
        for _ in range(8):
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(str(path))
                body = json.dumps(ROW).encode()
                head = f"POST /predict HTTP/1.1\r\nHost: s\r\nConnection: close\r\nContent-Length: {len(body)}\r\n"
                connection.sendall(head.encode() + b"Content-Type: application/json\r\n\r\n" + body)
                said = b"".join(iter(lambda c=connection: c.recv(65536), b""))
            assert json.loads(said.partition(b"\r\n\r\n")[2])["scores"] == [score]
    assert not path.exists()


def test_the_token_is_asked_for_and_is_no_argument_of_any_process(state: Path, tmp_path: Path) -> None:
    secret = "a-secret-of-some-length"
    token = tmp_path / "token"
    token.write_text(secret + "\n")
    with serving("--dir", state, "--read-only", "--workers", 2, "--token-file", token) as program:
        assert program.ask("POST", "/predict", ROW).status == 401
        assert program.ask("POST", "/predict", ROW, {"Authorization": f"Bearer {secret}"}).status == 200
        for number in [program.child.pid, *program.workers()]:
            assert secret.encode() not in Path(f"/proc/{number}/cmdline").read_bytes()


def failing(*words: object) -> str:
    ended = run([*RARESTREAM, "serve", *words])
    assert ended.returncode == 1, ended
    assert "Traceback" not in ended.stderr
    return str(ended.stderr)


def test_a_directory_without_a_snapshot_is_one_message_and_not_many(tmp_path: Path) -> None:
    said = failing("--dir", tmp_path, "--read-only", "--workers", 3, "--port", 0)
    assert said.count("has no snapshot to follow") == 1


def test_a_port_that_another_program_has_is_refused(state: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert "cannot listen there" in failing("--dir", state, "--read-only", "--workers", 2, "--port", port)


def test_two_services_with_workers_do_not_share_a_port_by_accident(state: Path) -> None:
    with serving("--dir", state, "--read-only", "--workers", 2) as program:
        said = failing("--dir", state, "--read-only", "--workers", 2, "--port", program.port)
        assert "cannot listen there" in said


def test_workers_that_die_again_and_again_end_the_service(state: Path, tmp_path: Path) -> None:
    """A module in the way of the workers makes each of them fail before it is ready."""
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\nif 'rarestream.serve.workers' in sys.orig_argv:\n    import os\n    os._exit(7)\n"
    )
    ended = run(
        [*RARESTREAM, "serve", "--dir", state, "--read-only", "--workers", 2, "--port", 0],
        env=environment(PYTHONPATH=str(tmp_path)),
    )
    assert ended.returncode == 1
    assert "could not be started 5 times" in ended.stderr and "code 7" in ended.stderr
    assert "Traceback" not in ended.stderr
