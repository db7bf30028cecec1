"""`train --dashboard`: the run on a page, and clear errors before any training."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import signal
import socket
import sys
import urllib.error
import urllib.request

import pytest

from rarestream import Model, read
from rarestream.errors import DataError
from rarestream.evaluate import TrainingRun
from rarestream.evaluate.synthetic import Planted, write_svmlight
from rarestream.monitor.dashboard import Dashboard, PageServer, parse_address
from tests.cli.conftest import run, started


@pytest.fixture(scope="module")
def events(tmp_path_factory):
    path = tmp_path_factory.mktemp("events") / "events.svm"
    write_svmlight((part.block for part in Planted.plant(seed=3, positives=0.1).rows(20_000)), path)
    return path


def numbers(url, name="statistics", **headers):
    with urllib.request.urlopen(urllib.request.Request(url + name, headers=headers)) as answer:
        return json.load(answer)


@pytest.mark.parametrize("learner", ["ftrl-auc", "auto"])
@pytest.mark.parametrize("passes", [1, 2])
def test_the_page_shows_what_the_model_says(events, learner, passes):
    model = Model(learner)
    stream = read(events)
    training = TrainingRun(model, stream, passes=passes, marks=iter(range(1000, 10**6, 1000)))
    server = PageServer("127.0.0.1:0")
    dashboard = Dashboard(training, server, "training x.rare")
    try:
        assert numbers(server.url)["rows"] == 0
        for step in training:
            dashboard.step(step)
        dashboard.end()
        message = dashboard._message("ended")
        json.dumps(message, allow_nan=False)
        assert message["rows"] == model.rows == 20_000 * passes
        assert message["auc"]["value"] == float(model.progress.auc)
        assert message["nonzeros"] == model.nonzeros
        assert message["history"]["rows"][-1] == 20_000  # rows of further passes were seen before
        assert message["calibration"] is not None and message["scores"] is not None
        assert message["training"]["state"] == "ended" and message["training"]["pass"] == passes
    finally:
        server.close()


def test_only_this_machine_s_own_names_are_answered(tmp_path):
    server = PageServer("127.0.0.1:0")
    server.start({"rows": 1})
    port = server.url.rsplit(":", 1)[1].rstrip("/")
    try:
        assert server.is_local
        assert numbers(server.url, Host=f"localhost:{port}") == {"rows": 1}
        with pytest.raises(urllib.error.HTTPError) as refused:
            numbers(server.url, Host="evil.example")
        assert refused.value.code == 421
    finally:
        server.close()
    with pytest.raises(urllib.error.URLError):
        numbers(server.url)


@pytest.mark.parametrize("address", ["8090", "host:", ":80", "127.0.0.1:99999", "127.0.0.1:8o", ""])
def test_addresses_that_are_none(address):
    with pytest.raises(DataError, match="must be HOST:PORT"):
        parse_address(address)


def test_addresses():
    assert parse_address("127.0.0.1:80") == ("127.0.0.1", 80)
    assert parse_address("[::1]:0") == ("::1", 0)


def test_a_used_port_is_an_error_before_any_training(events, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as used:
        port = used.getsockname()[1]
        result = run("train", events, "-o", tmp_path / "m.rare", f"--dashboard=127.0.0.1:{port}")
    assert result.exit_code == 2
    assert f"cannot listen on 127.0.0.1:{port}: Address already in use. Pass --dashboard=127.0.0.1:0" in result.stderr
    assert not (tmp_path / "m.rare").exists()


def test_a_missing_extra_is_an_error_before_any_training(events, tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("rarestream.monitor.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    result = run("train", events, "-o", tmp_path / "m.rare", "--dashboard")
    assert result.exit_code != 0
    assert 'pip install "rarestream[serve]"' in result.stderr
    assert not (tmp_path / "m.rare").exists()


def test_an_address_after_a_blank_is_not_taken_for_data(events, tmp_path):
    result = run("train", events, "-o", tmp_path / "m.rare", "--dashboard", "127.0.0.1:9000")
    assert result.exit_code == 2
    assert "For the page, pass --dashboard=127.0.0.1:9000." in result.stderr


def test_many_classes_have_no_page(events, tmp_path):
    result = run("train", events, "-o", tmp_path / "m.rare", "--classes", "all", "--dashboard=127.0.0.1:0")
    assert result.exit_code == 2 and "'--dashboard': cannot be combined with many classes." in result.stderr


def test_the_address_is_printed_and_the_model_is_the_same_as_without_a_page(events, tmp_path):
    words = ["train", events, "--learner", "ftrl-auc", "-o"]
    assert run(*words, tmp_path / "without.rare").exit_code == 0
    result = run(*words, tmp_path / "with.rare", "--dashboard=127.0.0.1:0")
    assert result.exit_code == 0
    assert re.search(r"Live page: http://127\.0\.0\.1:[0-9]+/\n", result.stderr)
    assert "until Ctrl-C" not in result.stderr  # nobody sits there
    assert (tmp_path / "with.rare").read_bytes() == (tmp_path / "without.rare").read_bytes()
    result = run(*words, tmp_path / "json.rare", "--dashboard=127.0.0.1:0", "--json", "--quiet")
    first = json.loads(result.stdout.splitlines()[0])
    assert first["event"] == "dashboard" and first["url"].startswith("http://127.0.0.1:")


def test_others_are_warned_of(events, tmp_path):
    result = run("train", events, "--learner", "ftrl-auc", "-o", tmp_path / "m.rare", "--dashboard=0.0.0.0:0")
    assert result.exit_code == 0
    assert "everyone who can reach this machine can read the live page" in " ".join(result.stderr.split())


def test_in_a_terminal_the_last_numbers_stay_until_interrupted(events, tmp_path):
    terminal, other_end = pty.openpty()
    words = ["train", events, "--learner", "ftrl-auc", "-o", tmp_path / "m.rare", "--dashboard=127.0.0.1:0"]
    environment = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1"}
    with started(*words, stdin=other_end, stdout=other_end, stderr=other_end, env=environment) as program:
        os.close(other_end)
        written = b""
        while b"until Ctrl-C" not in written:
            written += os.read(terminal, 65536)
        url = re.search(rb"Live page: (http://\S+)", written)[1].decode()
        message = numbers(url)
        assert message["rows"] == 20_000 and message["training"]["state"] == "ended"
        program.send_signal(signal.SIGINT)
        with contextlib.suppress(OSError):
            while os.read(terminal, 65536):
                pass
        assert program.wait() == 0
    os.close(terminal)


def test_a_followed_file_is_shown_while_no_rows_come(events, tmp_path):
    words = ["train", events, "--follow", "--learner", "ftrl-auc", "-o", tmp_path / "m.rare", "--dashboard=127.0.0.1:0"]
    with started(*words) as program:
        url = next(re.search(r"http://\S+", line)[0] for line in program.lines("stderr") if "Live page" in line)
        program.until(lambda: numbers(url)["rows"] == 20_000)
        program.until(lambda: numbers(url)["training"]["state"] == "waiting")
        program.send_signal(signal.SIGTERM)
        program.communicate()
        assert program.returncode == 0
