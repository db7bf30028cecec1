"""The routes of the live page: the page, its numbers once, and as server-sent events."""

from __future__ import annotations

import asyncio
import json
import re

import pytest
from starlette.applications import Starlette

from rarestream import Model
from rarestream.monitor import Monitor, web
from rarestream.monitor.web import LivePage, page


class Client:
    """What a server does with an application, in the same loop."""

    def __init__(self, app) -> None:
        self._app = app
        self.sent: asyncio.Queue = asyncio.Queue()
        self.gone = asyncio.Event()
        self.stuck = False

    def get(self, path: str) -> asyncio.Task:
        scope = {
            "type": "http",
            "method": "GET",
            "path": path,
            "headers": [],
            "query_string": b"",
            "http_version": "1.1",
        }
        return asyncio.create_task(self._app(scope, self._receive, self._send))

    async def _receive(self):
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message) -> None:
        if self.stuck:
            await asyncio.Event().wait()
        await self.sent.put(message)


def answer_of(app, path):
    async def ask():
        client = Client(app)
        await client.get(path)
        start, body = await client.sent.get(), await client.sent.get()
        return start["status"], dict(start["headers"]), body["body"]

    return asyncio.run(ask())


def test_the_page_runs_only_what_it_has_itself():
    text, headers = page()
    status, sent, body = answer_of(Starlette(routes=LivePage(dict).routes()), "/")
    assert (status, body) == (200, text)
    assert sent[b"content-type"] == b"text/html; charset=utf-8"
    assert sent[b"content-security-policy"].decode() == headers["Content-Security-Policy"]
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and policy.count("sha256-") == 2
    assert not re.search(rb"(?:src|href)=\"(?!data:,)", text)
    assert b"http" not in text.replace(b"http://www.w3.org/2000/svg", b"").replace(b"httpx", b"")
    for unsafe in (b"innerHTML", b"outerHTML", b"insertAdjacent", b"document.write", b"eval(", b" onclick", b" style="):
        assert unsafe not in text


def test_the_numbers_once():
    message = Monitor().message(Model("ftrl-auc"))
    status, headers, body = answer_of(Starlette(routes=LivePage(lambda: message).routes()), "/statistics")
    assert status == 200 and headers[b"cache-control"] == b"no-store"
    assert json.loads(body) == json.loads(json.dumps(message))


def test_events_come_as_numbers_change_and_a_comment_if_they_do_not():
    async def watch():
        numbers = [{"rows": 1}]
        live = LivePage(lambda: numbers[0], every=0.001)
        client = Client(Starlette(routes=live.routes()))
        task = client.get("/events")
        start = await client.sent.get()
        assert dict(start["headers"])[b"content-type"].startswith(b"text/event-stream")
        assert (await client.sent.get())["body"] == b'data: {"rows":1}\n\n'
        assert (await client.sent.get())["body"] == b": nothing new\n\n"
        assert live.clients == 1
        numbers[0] = {"rows": 2}
        while (await client.sent.get())["body"] != b'data: {"rows":2}\n\n':
            pass
        client.gone.set()
        await task
        assert live.clients == 0

    asyncio.run(watch())


def test_one_message_serves_all_clients():
    async def watch():
        made = []
        live = LivePage(lambda: made.append(1) or {"rows": len(made)}, every=1000)
        app = Starlette(routes=live.routes())
        clients = [Client(app) for _ in range(5)]
        tasks = [client.get("/events") for client in clients]
        for client in clients:
            await client.sent.get()
            assert (await client.sent.get())["body"] == b'data: {"rows":1}\n\n'
        assert len(made) == 1
        live.close()
        await asyncio.gather(*tasks)

    asyncio.run(watch())


def test_clients_are_bounded_and_closing_ends_them():
    async def watch():
        live = LivePage(lambda: {"rows": 1}, clients=2)
        app = Starlette(routes=live.routes())
        clients = [Client(app) for _ in range(3)]
        tasks = [client.get("/events") for client in clients[:2]]
        for client in clients[:2]:
            await client.sent.get()
            await client.sent.get()
        await clients[2].get("/events")
        start, body = await clients[2].sent.get(), await clients[2].sent.get()
        assert start["status"] == 503 and dict(start["headers"])[b"retry-after"] == b"5"
        assert json.loads(body["body"])["error"]["message"] == "2 clients watch already. Try again later."
        live.close()
        await asyncio.gather(*tasks)
        assert (await clients[0].sent.get())["more_body"] is False
        assert live.clients == 0
        await clients[2].get("/events")
        assert (await clients[2].sent.get())["status"] == 503

    asyncio.run(watch())


def test_a_client_that_accepts_nothing_loses_its_place(monkeypatch):
    monkeypatch.setattr(web, "PATIENCE", 0.01)

    async def watch():
        live = LivePage(lambda: {"rows": 1}, every=0.001)
        client = Client(Starlette(routes=live.routes()))
        task = client.get("/events")
        await client.sent.get()
        client.stuck = True
        await task
        assert live.clients == 0

    asyncio.run(watch())


def test_what_the_numbers_raise_is_left_to_the_application():
    def fail():
        raise ZeroDivisionError

    for path in ("/statistics", "/events"):
        with pytest.raises(ZeroDivisionError):
            answer_of(Starlette(routes=LivePage(fail).routes()), path)
