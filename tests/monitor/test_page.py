"""The live page in a real browser: what it shows, how it looks in light and dark and on a phone, and what it survives."""

from __future__ import annotations

import asyncio
import json
import os
import struct
import threading

import numpy as np
import pytest

from rarestream import Model
from rarestream.monitor import Monitor
from rarestream.monitor.dashboard import PageServer
from tests.monitor.browser import PROGRAM, Browser

pytestmark = pytest.mark.skipif(PROGRAM is None and "CI" not in os.environ, reason="there is no Chromium here")

NASTY = "<script>window.broken = 1</script>"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    found = Browser(tmp_path_factory.mktemp("browser"))
    yield found
    found.close()


@pytest.fixture
def tab(browser):
    browser.open("about:blank")
    browser.requests.clear()
    browser.problems.clear()
    browser.look()
    return browser


@pytest.fixture
def server():
    made = PageServer("127.0.0.1:0")
    yield made
    made.close()


@pytest.fixture(scope="module")
def stream():
    """A model of named features, a monitor of it, and a message of a service with everything in it."""
    rng = np.random.default_rng(5)
    model, monitor = Model("ftrl-auc"), None
    for n in range(12_000):
        label = 1 if rng.random() < 0.1 else -1
        row = {"site": NASTY if rng.random() < 0.2 + 0.4 * (label > 0) else "a.com", "hour": str(rng.integers(24))}
        score = model.score_one(row) if n else 0.0
        probability = model.probability_one(row) if n > 500 else np.nan
        model.learn_one(row, label)
        monitor = monitor or Monitor(2000)
        monitor.count_one(label, score, float(probability))
    return model, monitor


def message_of(stream, **parts):
    model, monitor = stream
    monitor.weights.finish(model)
    return {**monitor.message(model), "title": "clicks.rare", **parts}


SERVICE = {
    "version": 3,
    "sequence": 1_234_567,
    "learning": False,
    "reason": "the disk is full; predictions go on.",
    "labels": {"waiting": 48_210, "joined": 9, "unlabelled": 8, "late": 7, "unknown": 6, "duplicate": 5},
    "queue": {"rows": 120, "bytes": 80_000, "limit": 10_000},
    "disk": {"log_bytes": 3_200_000_000, "snapshot_sequence": 1_200_000, "snapshot_age": 240.0, "full": True},
    "shadow": {
        "learner": "dual-auc",
        "rows": 40_120,
        "positives": 310,
        "needed_positives": 1000,
        "auc": {"value": 0.7731, "low": 0.75, "high": 0.79},
        "difference": {"value": 0.0041, "low": -0.0012, "high": 0.0094},
        "margin": 0.002,
        "passes": False,
        "promote": "manual",
    },
    "latency": {
        "predict": {"p50": 1.2e-4, "p90": 2e-4, "p99": 7.4e-4, "p999": 3.1e-3, "count": 812_000},
        "learn": None,
    },
    "drift": {
        "alarm": True,
        "count": 1,
        "alarms": [
            {
                "rows": 9000,
                "begin": 8000,
                "before": {"value": 0.8, "low": 0.7, "high": 0.9},
                "after": {"value": 0.6, "low": 0.5, "high": 0.7},
            }
        ],
        "statistic": 3.2,
        "limit": 11.5,
        "reference": 0.77,
    },
}


def size(png):
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    return struct.unpack(">II", png[16:24])


def test_the_page_shows_the_numbers_and_asks_nobody_else(tab, server, stream, tmp_path):
    message = message_of(stream)
    server.start(message)
    tab.open(server.url)
    tab.until("document.querySelector('#auc svg') !== null")
    text = tab.text()
    auc, window = message["auc"], message["window_auc"]
    for shown in (
        f"{auc['value']:.4f}",
        f"{auc['low']:.4f} to {auc['high']:.4f}",
        f"{window['value']:.4f}",
        "12,000",
        "AUC, last 2,000 rows",
        "Calibration",
        "clicks.rare",
        "ftrl-auc",
        f"site = {NASTY}",
        "live",
    ):
        assert shown in text, shown
    for chart in ("auc", "scores", "calibration", "nonzeros"):
        assert tab.run(f"document.querySelector('#{chart} svg').getAttribute('aria-label')").endswith(".")
    assert tab.run("window.broken === undefined")
    assert tab.run("document.querySelectorAll('#top tbody tr').length") == len(message["top"])
    assert tab.run(
        "[...document.querySelectorAll('section')].every(s => document.getElementById(s.getAttribute('aria-labelledby')))"
    )
    for name in ("labels", "shadow", "storage", "latency"):
        assert tab.run(f"document.getElementById('{name}-card').hidden") == (name != "latency"), name
    assert set(tab.requests) <= {server.url, f"{server.url}events"}
    assert tab.problems == []
    assert size(tab.screenshot(tmp_path / "light.png"))[0] == 1280


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 800, 375])
def test_everything_of_a_service_in_every_size_and_colour(tab, server, stream, tmp_path, width, dark):
    server.start(message_of(stream, **SERVICE))
    tab.look(width=width, dark=dark)
    tab.open(server.url)
    tab.until("document.querySelector('#shadow-plot svg') !== null")
    text = tab.text()
    for shown in (
        "Drift: the AUC fell from 0.8000 to 0.6000 about row 8,000; the alarm came at row 9,000.",
        "Not learning: the disk is full; predictions go on.",
        "48,210",
        "740 µs",
        "310 of 1,000",
        "3.20 of 11.50",
        "3.2 GB",
        "1,234,567",
        "drift alarm",
    ):
        assert shown in text, shown
    assert tab.run("document.documentElement.scrollWidth <= innerWidth"), "it scrolls sideways"
    assert tab.run("document.querySelectorAll('.alarm-line').length") == 2
    assert tab.problems == []
    picture = tab.screenshot(tmp_path / "page.png")
    assert size(picture)[0] == width and len(picture) > 20_000
    # Text has the contrast that WCAG asks for, 4.5 : 1, on its background.
    assert tab.run(CONTRAST) == []


CONTRAST = """(() => {
  const channel = v => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => .2126 * channel(r) + .7152 * channel(g) + .0722 * channel(b);
  const parse = text => { const [r, g, b, a] = text.match(/[\\d.]+/g).map(Number); return [r, g, b, a ?? 1]; };
  const behind = e => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c[3] === 1) return c; } return [255, 255, 255]; };
  const bad = [];
  for (const e of document.querySelectorAll('h1, h2, dt, dd, td, th, text, li, button, .banner, .about, #status, footer, .more, .empty')) {
    if (!e.textContent.trim() || !e.getClientRects().length) continue;
    const style = getComputedStyle(e), svg = e.namespaceURI.endsWith('svg');
    const one = light(parse(svg ? style.fill : style.color)), two = light(behind(svg ? e.closest('div') : e));
    const ratio = (Math.max(one, two) + .05) / (Math.min(one, two) + .05);
    if (ratio < 4.5) bad.push([e.textContent.slice(0, 40), ratio]);
  }
  return bad;
})()"""


def test_before_the_first_row_it_says_what_it_waits_for(tab, server, tmp_path):
    server.start(Monitor().message(Model("ftrl-auc")))
    tab.open(server.url)
    tab.until("message")
    text = tab.text()
    assert text.count("Waiting for rows of both classes.") == 3
    assert "No weights yet." in text and "Waiting for the first weights." in text
    assert tab.run(CONTRAST) == []
    assert tab.problems == []
    tab.run("document.getElementById('recent-rows').click()")
    assert "Waiting for the first 10,000 rows." in tab.text()


def test_numbers_of_an_axis_differ(tab, server):
    server.start(Monitor().message(Model("ftrl-auc")))
    tab.open(server.url)
    tab.until("message")
    assert tab.run("[12345, 2.5e6, 9999, 0.125].map(value => short(value))") == ["12.3 k", "2.5 M", "9,999", "0.125"]
    for low, high in ((0, 12_400), (12_300, 12_400), (300_000, 300_080), (1_000_000, 1_000_400), (0, 3), (0, 5e9)):
        texts = tab.run(f"(found => found.at.map(value => short(value, found.step)))(ticks({low}, {high}, 5))")
        assert len(texts) > 2 and len(set(texts)) == len(texts), texts


def test_pointing_and_arrow_keys_read_a_chart(tab, server, stream):
    server.start(message_of(stream))
    tab.open(server.url)
    x, y = tab.until(
        "(r => [r.left + r.width * .7, r.top + r.height / 2])(document.querySelector('#auc svg').getBoundingClientRect())"
    )
    tab.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    tip = tab.until("document.querySelector('#auc .tip:not([hidden])').innerText")
    assert tip.startswith("after ") and "all rows so far: 0." in tip and "last 2,000 rows: 0." in tip
    tab.run("document.querySelector('#scores svg').focus()")
    for kind in ("keyDown", "keyUp"):
        tab.call("Input.dispatchKeyEvent", type=kind, key="ArrowRight", code="ArrowRight")
    tip = tab.until("document.querySelector('#scores .tip:not([hidden])').innerText")
    assert tip.startswith("scores ") and "positive: " in tip
    server.show(message_of(stream, learner="another"))
    tab.until("message.learner === 'another'")
    assert tab.run("document.querySelector('#scores .tip').innerText") == tip  # drawn again, it is still there
    assert tab.problems == []


def test_numbers_move_and_a_broken_connection_is_told_and_mended(tab, stream):
    first = PageServer("127.0.0.1:0")
    first.start(message_of(stream))
    tab.open(first.url)
    tab.until("message")
    first.show(message_of(stream, learner="another"))
    tab.until("document.getElementById('subject').textContent && message.learner === 'another'")
    first.close()
    tab.until("document.getElementById('status').className === 'lost'")
    assert "not connected since" in tab.text() and "trying again" in tab.text()
    again = PageServer(first.url.removeprefix("http://").rstrip("/"))
    again.start(message_of(stream, learner="a third"))
    try:
        tab.until("message.learner === 'a third' && document.getElementById('status').textContent === 'live'")
    finally:
        again.close()


def test_after_training_the_last_numbers_stay_without_an_alarm(tab, server, stream):
    training = {"state": "ended", "fraction": 1.0, "pass": 2, "passes": 2, "refused": 3}
    server.start(message_of(stream, training=training))
    tab.open(server.url)
    tab.until("message")
    assert "Training has ended, pass 2 of 2" in tab.text() and "3 invalid rows skipped" in tab.text()
    server.close()
    tab.until("document.getElementById('status').textContent.startsWith('the server has ended')")


def test_a_token_is_asked_for_kept_and_sent(tab, stream):
    """Against a server that answers 401 without the token, as the service does."""
    text = json.dumps(message_of(stream))

    async def answer(reader, writer):
        request = (await reader.readuntil(b"\r\n\r\n")).decode()
        if request.startswith("GET / "):
            from rarestream.monitor.web import page

            body, kind = page()[0], "text/html; charset=utf-8"
            writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: %b\r\n\r\n%b" % (kind.encode(), body))
        elif "authorization: bearer right" in request.lower():
            writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/event-stream\r\n\r\n")
            writer.write(f"retry: 2000\n\ndata: {text}\n\n".encode())
            await writer.drain()
            await reader.read()
        else:
            writer.write(b"HTTP/1.1 401 Unauthorized\r\nConnection: close\r\nWWW-Authenticate: Bearer\r\n\r\n")
        writer.close()

    ready, where = threading.Event(), []

    async def serve():
        made = await asyncio.start_server(answer, "127.0.0.1", 0)
        where.extend(
            [f"http://127.0.0.1:{made.sockets[0].getsockname()[1]}/", asyncio.get_running_loop(), asyncio.Event()]
        )
        ready.set()
        await where[2].wait()
        made.close()

    thread = threading.Thread(target=asyncio.run, args=(serve(),), daemon=True)
    thread.start()
    ready.wait()
    try:
        tab.open(where[0])
        give = (
            "document.getElementById('token-field').value = '{}'; document.getElementById('token-form').requestSubmit()"
        )
        tab.until("document.getElementById('token').hidden === false")
        tab.run(give.format("wrong"))
        tab.until("document.getElementById('token-wrong').textContent === 'That token was not accepted.'")
        tab.run(give.format("right"))
        tab.until("message && document.getElementById('token').hidden")
        assert tab.run("sessionStorage.getItem('rarestream-token')") == "right"
        assert not any("right" in url or "wrong" in url for url in tab.requests)
        tab.open(where[0])
        tab.until("message")  # after a reload it is still known
    finally:
        where[1].call_soon_threadsafe(where[2].set)
        thread.join()
