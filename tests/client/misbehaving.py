"""A server of HTTP that does as a script says: answers well, late, half, twice, or not at all.

It handles requests as the service does, as far as that matters here: rows are learned once for each idempotency key, and
rows with ids are stored once. So a test can see whether a retry learned anything twice.
"""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import threading
from collections.abc import Callable, Sequence
from typing import Any

OK = "ok"


class RefusalError(Exception):
    def __init__(self, status: int, code: str, message: str, row: int | None = None) -> None:
        self.status = status
        self.error = {"code": code, "message": message} | ({} if row is None else {"row": row})


class Misbehaving:
    """Takes one step of the script for each request; after the last one, all goes well.

    Steps: "ok"; "drop": closes without handling the request; "lose": handles it and closes without an answer; "cut": sends half
    of the answer; "hang": handles it and says nothing; "garbage"; "chunked"; "leave": answers, then closes without saying so;
    "closing": answers with Connection: close; "early": refuses before it reads the body; a tuple (status, headers, body).
    """

    def __init__(self, script: Sequence[Any] = (), tls: ssl.SSLContext | None = None, path: str | None = None) -> None:
        self.script = list(script)
        self.requests: list[tuple[str, str, dict[str, str], bytes]] = []
        self.learned: list[tuple[Any, int]] = []
        self.importances: list[float | None] = []
        self.labels: dict[str, int] = {}
        self.stored: dict[str, Any] = {}
        self.answers: dict[str, Any] = {}
        self.connections = 0
        self.bad: Callable[[Any], str | None] = lambda row: None  # why a row is refused, with its request
        self.refused: Callable[[Any], str | None] = lambda row: None  # why a row alone is refused
        self.most_rows = 10_000
        self.lock = threading.Lock()
        self.hanging = threading.Event()
        self.open: set[socket.socket] = set()
        self.tls = tls
        if path is None:
            self.listener = socket.create_server(("127.0.0.1", 0))
            self.port = self.listener.getsockname()[1]
            self.address = f"{'http' if tls is None else 'https'}://localhost:{self.port}"
        else:
            self.listener = socket.socket(socket.AF_UNIX)
            self.listener.bind(path)
            self.listener.listen()
            self.address = f"http+unix://{path}"
        self.thread = threading.Thread(target=self.accept, daemon=True)
        self.thread.start()

    def __enter__(self) -> Misbehaving:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        self.hanging.set()
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join()
        self.cut_all()

    def cut_all(self) -> None:
        """Ends all connections."""
        with self.lock:
            found = list(self.open)
        for one in found:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def accept(self) -> None:
        while True:
            try:
                found, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(found,), daemon=True).start()

    def serve(self, found: socket.socket) -> None:
        with self.lock:
            self.connections += 1
        try:
            if self.tls is not None:
                found = self.tls.wrap_socket(found, server_side=True)
            with self.lock:
                self.open.add(found)
            with found, found.makefile("rb") as file:
                while self.request(found, file):
                    pass
        except OSError:
            pass
        finally:
            with self.lock:
                self.open.discard(found)

    def request(self, found: socket.socket, file: Any) -> bool:
        line = file.readline()
        if not line:
            return False
        method, path, _ = line.decode().split()
        headers = {}
        while (text := file.readline().decode().strip()) != "":
            name, _, value = text.partition(":")
            headers[name.lower()] = value.strip()
        with self.lock:
            step = self.script.pop(0) if self.script else OK
        if step == "early":
            found.sendall(
                answer(413, b'{"error":{"code":"too_large","message":"Too large."}}', "Connection: close\r\n")
            )
            file.read(int(headers.get("content-length", 0)))
            return False
        body = file.read(int(headers.get("content-length", 0)))
        with self.lock:
            self.requests.append((method, path, headers, body))
            if step == "drop":
                return False
            if isinstance(step, tuple):
                status, more, text = step
                found.sendall(answer(status, text.encode(), more))
                return True
            try:
                status, told = self.handle(method, path, headers, body)
            except RefusalError as refusal:
                status, told = refusal.status, {"error": refusal.error}
        text = told if isinstance(told, bytes) else json.dumps(told).encode()
        if step == "lose":
            return False
        if step == "hang":
            self.hanging.wait()
            return False
        if step == "garbage":
            found.sendall(b"220 mail.example.com ESMTP\r\n")
            return False
        if step == "cut":
            found.sendall(answer(status, text)[:-5])
            return False
        if step == "chunked":
            parts = [text[begin : begin + 7] for begin in range(0, len(text), 7)]
            chunks = b"".join(b"%x;a=b\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\nTrailer: 1\r\n\r\n"
            head = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 %d OK\r\nTransfer-Encoding: chunked\r\n\r\n" % status
            whole = head + chunks
            for begin in range(0, len(whole), 11):
                found.sendall(whole[begin : begin + 11])
            return True
        if step == "until the end":
            found.sendall(b"HTTP/1.1 %d OK\r\n\r\n%b" % (status, text))
            return False
        found.sendall(answer(status, text, "Connection: close\r\n" if step == "closing" else ""))
        return step not in ("leave", "closing")

    def handle(self, method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, Any]:
        path, _, query = path.partition("?")
        if (method, path) == ("POST", "/predict"):
            return 200, self.predict(json.loads(body))
        if (method, path) in (("POST", "/learn"), ("POST", "/label")):
            key = headers["idempotency-key"]
            if key in self.answers:
                before, found = self.answers[key]
                if before != body:
                    raise RefusalError(422, "key_reused", "This key was used with another body.")
                return 200, found | {"repeated": True}
            found = (self.learn if path == "/learn" else self.label)(json.loads(body))
            self.answers[key] = body, found
            return 200, found
        if (method, path) == ("GET", "/model/file"):
            return 200, b"\x00model" * 100_000
        if (method, path) in (("GET", "/model"), ("POST", "/shadow/promote")):
            return 200, MODEL
        if (method, path) == ("GET", "/shadow"):
            return 200, SHADOW
        if (method, path) == ("POST", "/shadow"):
            return 201, SHADOW | {"learner": f"{len(body)} bytes, {query}"}
        if (method, path) == ("DELETE", "/shadow"):
            return 204, b""
        if (method, path) == ("POST", "/snapshot"):
            return 200, {"sequence": 17}
        if (method, path) == ("GET", "/statistics"):
            return 200, {"rows": len(self.learned)}
        if path in ("/healthz", "/readyz"):
            return 200, {"status": "ok", "reason": None}
        raise RefusalError(404, "not_found", "There is nothing here.")

    def predict(self, asked: Any) -> Any:
        rows = [asked["row"]] if "row" in asked else asked["rows"]
        self.check(rows)
        ids = [asked["id"]] if asked.get("id") else asked.get("ids")
        if ids is None and asked.get("remember"):
            ids = [f"made-{len(self.stored) + number}" for number in range(len(rows))]
        new = 0
        for id, row in zip(ids or [], rows, strict=bool(ids)):
            new += id not in self.stored
            self.stored.setdefault(id, row)
        numbers = [score(row) for row in rows]
        common = {"stored": new, "version": 1, "sequence": len(self.learned), "rows": 9, "newer": "of a newer service"}
        return {"scores": numbers, "probabilities": None, "labels": None, "ids": ids} | common

    def learn(self, asked: Any) -> Any:
        rows = [asked["row"]] if "row" in asked else asked["rows"]
        labels = [asked["label"]] if "row" in asked else asked["labels"]
        importances = [asked.get("importance")] if "row" in asked else asked.get("importances") or [None] * len(rows)
        assert len(rows) == len(labels) == len(importances)
        self.check(rows)
        refused = []
        for number, row in enumerate(rows):
            if reason := self.refused(row):
                refused.append({"row": number, "reason": reason})
            else:
                self.learned.append((row, labels[number]))
                self.importances.append(importances[number])
        done = len(rows) - len(refused)
        common = {"version": 1, "sequence": len(self.learned), "repeated": False}
        return {"learned": done, "refused": refused, "scores": [0.0] * len(rows)} | common

    def label(self, asked: Any) -> Any:
        labels = asked.get("labels", [asked])
        found: dict[str, Any] = {"learned": 0, "unknown": [], "duplicate": [], "late": [], "refused": []}
        for one in labels:
            if one["id"] not in self.stored:
                found["unknown"].append(one["id"])
            elif one["id"] in self.labels:
                found["duplicate"].append(one["id"])
            else:
                self.labels[one["id"]] = one["label"]
                self.learned.append((self.stored[one["id"]], one["label"]))
                found["learned"] += 1
        return found | {"version": 1, "sequence": len(self.learned), "repeated": False}

    def check(self, rows: list[Any]) -> None:
        if len(rows) > self.most_rows:
            raise RefusalError(413, "too_large", "Too many rows.")
        for number, row in enumerate(rows):
            if reason := self.bad(row):
                raise RefusalError(422, "bad_rows", reason, number)


def score(row: Any) -> float:
    pairs = row.items() if isinstance(row, dict) else row
    return sum(value for _, value in pairs if isinstance(value, int | float))


def answer(status: int, body: bytes, headers: str = "") -> bytes:
    head = f"HTTP/1.1 {status} Said\r\nContent-Type: application/json\r\n{headers}Content-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


AUC = {"value": 0.75, "low": 0.7, "high": 0.8}
SHADOW = {
    "learner": "ftrl-auc",
    "rows": 5,
    "positives": 2,
    "failed": 0,
    "auc": AUC,
    "difference": {"value": None, "low": -1.0, "high": 1.0},
    "needed_positives": 100,
    "margin": 0.0,
    "passes": False,
    "promote": "manual",
}
MODEL = {
    "version": 1,
    "sequence": 3,
    "learner": "ftrl-auc",
    "settings": {"l1": 0.1},
    "features": "column numbers",
    "n_features": 10,
    "nonzeros": 4,
    "rows": 3,
    "positives": 1,
    "auc": AUC,
    "calibrated": False,
    "threshold": None,
    "learning": True,
    "reason": None,
    "shadow": SHADOW,
}
