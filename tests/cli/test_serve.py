"""rarestream serve: what is wrong is said in one message, before anything is changed."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import pytest

from tests.children import run as run_program
from tests.cli.conftest import run
from tests.cli.test_terminal import plain, seen
from tests.serve.programs import RARESTREAM, named_model, serving

TOKEN = "a-secret-of-some-length"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return named_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def scoring(tmp_path_factory):
    return named_model(tmp_path_factory.mktemp("scoring"), "--scoring-only")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--port", 70000], "must be between 0 and 65535"),
        (["--label-wait", "soon"], "must be a length of time"),
        (["--unlabelled", "positive"], "must be one of drop, negative"),
        (["--keep-log", "much"], "must be a size"),
        (["--max-body", "0"], "must be a size"),
        (["--on-drift", "panic"], "must be one of tell, half-life, shadow"),
        (["--key", "k.pem"], "needs --certificate"),
        (["--workers", 2], "needs --read-only"),
        (["--read-only"], "takes its model from STATE"),
        (["--stdin", "--lines", 0], "not with --stdin"),
        (["--window", 5], "--window"),
    ],
)
def test_a_wrong_option_is_refused_with_code_2_and_nothing_is_made(model, tmp_path, words, message):
    done = run("serve", model, "--dir", tmp_path / "state", *words)
    assert done.exit_code == 2 and message in done.stderr
    assert not (tmp_path / "state").exists()


def failing(*words, code=1):
    done = run_program([*RARESTREAM, "serve", *words])
    assert done.returncode == code, done
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1 or code == 2, done.stderr
    return done.stderr


def test_files_that_cannot_be_used(model, tmp_path):
    state = ["--dir", tmp_path / "state", "--port", 0]
    assert "no such file" in failing(tmp_path / "none.rare", *state)
    (tmp_path / "text").write_text("no model, no token, no certificate")
    assert "not a rarestream model" in failing(tmp_path / "text", *state)
    assert "no such file" in failing(model, *state, "--token-file", tmp_path / "none")
    assert "at least 16" in failing(model, *state, "--token-file", tmp_path / "text", code=2)
    assert "is not a file" in failing(model, *state, "--certificate", tmp_path / "none")
    assert "cannot be used" in failing(model, *state, "--certificate", tmp_path / "text")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe" * 20)
    assert "--token-file" in failing(model, *state, "--token-file", tmp_path / "bytes", code=2)
    assert not (tmp_path / "state").exists()


def test_a_directory_that_cannot_be_one(model, tmp_path):
    (tmp_path / "file").write_text("")
    assert "cannot be used" in failing(model, "--dir", tmp_path / "file", "--port", 0)
    assert "has no state yet" in failing("--dir", tmp_path / "new", "--port", 0)
    assert "has no snapshot to follow" in failing("--dir", tmp_path / "new", "--read-only", "--port", 0)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_that_may_not_be_written(model, tmp_path):
    tmp_path.chmod(0o500)
    assert "Permission denied" in failing(model, "--dir", tmp_path / "state", "--port", 0)


def test_a_port_that_is_taken(model, tmp_path):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert "cannot listen there" in failing(model, "--dir", tmp_path / "s", "--port", port)
        assert "for lines" in failing(model, "--dir", tmp_path / "s", "--port", 0, "--lines", port)


def test_a_directory_that_another_service_uses_or_that_began_with_another_model(model, scoring, tmp_path):
    with serving(model, "--dir", tmp_path / "state"):
        assert "state" in failing("--dir", tmp_path / "state", "--port", 0)
    assert "began with another model" in failing(scoring, "--dir", tmp_path / "state", "--port", 0)


def test_a_state_of_a_newer_version_is_left_alone(model, tmp_path):
    from rarestream.serve.snapshots import Snapshots

    state = tmp_path / "state"
    with serving(model, "--dir", state):
        pass
    snapshots = Snapshots(state / "snapshots")
    files = dict(snapshots.load(0).files)
    facts = json.loads(files["state.json"])
    files["state.json"] = json.dumps(facts | {"format": 99}).encode()
    (state / "snapshots" / f"{0:020}" / "manifest.json").unlink()
    snapshots.write(0, files)
    assert "format 99" in failing("--dir", state, "--port", 0)


def test_a_model_for_scoring_only_scores_and_says_why_it_does_not_learn(scoring, tmp_path):
    row = {"site": "s1.com", "price": 1.0, "new": False}
    with serving(scoring, "--dir", tmp_path / "state") as program:
        assert program.ask("POST", "/predict", {"row": row}).status == 200
        refused = program.ask("POST", "/learn", {"row": row, "label": 1})
        assert (refused.status, refused.error["code"]) == (403, "read_only")
        assert program.ask("GET", "/model").json["learning"] is False
    with serving("--dir", tmp_path / "state") as program:  # and again
        assert program.ask("POST", "/predict", {"row": row}).status == 200


def test_a_model_of_many_classes_is_refused(tmp_path):
    data = tmp_path / "rows.csv"
    data.write_text("kind,a,b\n" + "".join(f"{'xyz'[n % 3]},{n % 3},{n % 5}\n" for n in range(60)))
    words = ["train", data, "--label", "kind", "--classes", "all", "-o", tmp_path / "m.rare"]
    run_program([*RARESTREAM, *words], check=True)
    assert "classes" in failing(tmp_path / "m.rare", "--dir", tmp_path / "state", "--port", 0)
    assert not (tmp_path / "state").exists()


def test_a_token_of_the_environment_is_asked_for(model, tmp_path):
    environment = {**os.environ, "RARESTREAM_TOKEN": TOKEN}
    with serving(model, "--dir", tmp_path / "state", env=environment) as program:
        assert program.ask("GET", "/model").status == 401
        assert program.ask("GET", "/model", headers={"Authorization": f"Bearer {TOKEN}"}).status == 200
        assert program.ask("GET", "/healthz").status == 200


def test_the_help_fits_in_80_columns():
    code, text = seen(80, "serve", "-h")
    assert code == 0
    assert max(len(line) for line in plain(text).splitlines()) <= 80


def test_the_path_of_a_missing_extra_is_one_line(model, tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['uvicorn'] = None\n")
    (tmp_path / "hide").mkdir()
    environment = {**os.environ, "PYTHONPATH": str(Path(tmp_path))}
    done = run_program([*RARESTREAM, "serve", model, "--dir", tmp_path / "s", "--port", 0], env=environment)
    assert done.returncode == 1 and "rarestream[serve]" in done.stderr
    assert "Traceback" not in done.stderr and len(done.stderr.splitlines()) == 1
