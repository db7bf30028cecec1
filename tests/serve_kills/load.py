"""Clients that learn, predict, store and label, and keep what they were told."""

from __future__ import annotations

import http.client
import json
import random
import threading
from dataclasses import dataclass, field
from typing import Any, NamedTuple

WAIT = 30.0  # seconds; ends a wait that would never end
KEPT_IDS = 400  # of rows that a client may label
LOST = (OSError, http.client.HTTPException, ValueError)


class Scored(NamedTuple):
    """A row, and what the service said of it."""

    row: str
    score: float
    probability: float | None


class Repeated(NamedTuple):
    """A request that was answered a second time."""

    key: str
    learned: int
    sequence: int


@dataclass
class Told:
    """What the clients were told since it was last looked at. Rows are named by their numbers."""

    answers: dict[int, dict[str, Any]] = field(default_factory=dict)  # of /learn and /label, by sequence number
    learned: dict[int, list[int]] = field(default_factory=dict)  # rows of /learn, by sequence number
    labelled: dict[int, list[str]] = field(default_factory=dict)  # ids of /label, by sequence number
    repeated: list[Repeated] = field(default_factory=list)
    refused: set[int] = field(default_factory=set)  # rows that were refused: nothing of them is in the log
    stored: set[str] = field(default_factory=set)  # ids
    scored: dict[tuple[int, int], list[Scored]] = field(default_factory=dict)  # by version and rows of the model
    models: dict[tuple[int, int], dict[str, Any]] = field(default_factory=dict)  # what /model says, the same way
    wrong: list[str] = field(default_factory=list)


class Load:
    """Several clients, each in a thread. They wait while no service runs, and repeat what has a key."""

    def __init__(self, rng: random.Random, columns: bool, models: list[bytes], clients: int) -> None:
        self.told = Told()
        self.lock = threading.Lock()
        self.acknowledged = 0  # requests
        self.columns, self.models = columns, models
        self._port: int | None = None
        self._changed = threading.Condition()
        self._active = 0
        self._over = False
        self._rows = iter(range(1, 10**10))
        kinds = [Client] * clients + [Administrator]
        self._threads = [
            threading.Thread(target=kind(self, random.Random(rng.random()), number).run, daemon=True)
            for number, kind in enumerate(kinds)
        ]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._over = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def open(self, port: int) -> None:
        """A service answers at this port."""
        with self._changed:
            self._port = port
            self._changed.notify_all()

    def close(self) -> None:
        """No service answers. Returns when no client is waiting for an answer."""
        with self._changed:
            self._port = None
            self._changed.wait_for(lambda: not self._active)

    def take(self) -> Told:
        """Return what was told since the last time."""
        with self.lock:
            told, self.told = self.told, Told()
            return told

    def begin(self) -> int | None:
        """Wait for a service and return its port; None: it is over. `end` must follow."""
        with self._changed:
            self._changed.wait_for(lambda: self._over or self._port is not None)
            if self._over:
                return None
            self._active += 1
            return self._port

    def end(self) -> None:
        """A request has been answered, or never will be."""
        with self._changed:
            self._active -= 1
            self._changed.notify_all()

    def over(self) -> bool:
        """Whether clients are to end."""
        return self._over

    def row(self, rng: random.Random) -> tuple[int, str, int]:
        """Make a row: its number, its text and its label. The number is in the row, as decimals of a value."""
        with self.lock:
            number = next(self._rows)
        site, ad = rng.randrange(40), rng.randrange(12)
        label = int(rng.random() < (0.3 if site < 8 else 0.05) * (2 if ad == 3 else 1))
        value = f"1.{number:010}"
        if self.columns:
            return number, f"[[{site},1],[{50 + ad},0.5],[90,{value}]]", label
        return number, f'{{"site":"s{site}","ad":"a{ad}","n":{value}}}', label


class Client:
    """Sends one request after the other."""

    def __init__(self, load: Load, rng: random.Random, number: int) -> None:
        self.load, self.rng, self.number = load, rng, number
        self._ids: list[str] = []
        self._made = 0
        self._connection: http.client.HTTPConnection | None = None
        self._at: int | None = None
        self._retry: tuple[str, str, dict[str, Any], list[int], list[str]] | None = None

    def run(self) -> None:
        while (port := self.load.begin()) is not None:
            try:
                self._connect(port)
                self.request()
            except LOST:
                self._at = None
            finally:
                self.load.end()

    def _connect(self, port: int) -> None:
        if self._at != port:
            if self._connection is not None:
                self._connection.close()
            self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT)
            self._at = port

    def ask(self, method: str, path: str, body: Any = None, key: str | None = None) -> tuple[int, Any]:
        """Return status and answer; one of LOST is raised if there is none."""
        assert self._connection is not None
        headers = {} if key is None else {"Idempotency-Key": key}
        if isinstance(body, bytes):
            headers["Content-Type"] = "application/octet-stream"
        elif body is not None:
            body, headers["Content-Type"] = body.encode(), "application/json"
        self._connection.request(method, path, body, headers)
        response = self._connection.getresponse()
        text = response.read()
        found = json.loads(text) if text else None
        if response.status >= 500 and response.status != 503:
            with self.load.lock:
                self.load.told.wrong.append(f"{method} {path} was answered {response.status}: {text[:300]!r}")
        with self.load.lock:
            self.load.acknowledged += response.status < 300
        return response.status, found

    def request(self) -> None:
        if self._retry is not None:
            self._learn_or_label(*self._retry)
            return
        do = self.rng.choices([self._learn, self._predict, self._store, self._label], [3, 4, 3, 3])[0]
        do()

    # -- changes

    def _key(self) -> str | None:
        self._made += 1
        return f"{self.number}-{self._made}" if self.rng.random() < 0.5 else None

    def _learn(self) -> None:
        rng = self.rng
        made = [self.load.row(rng) for _ in range(rng.choice([1, 1, 2, 10, 60, 300]))]
        numbers, rows, labels = [row[0] for row in made], [row[1] for row in made], [row[2] for row in made]
        if rng.random() < 0.05:
            rows[-1] = rows[-1].replace("1.0", "nan")  # not JSON: the request is refused as a whole
        if len(made) == 1 and rng.random() < 0.5:
            body = f'{{"row":{rows[0]},"label":{labels[0]}}}'
        else:
            weights = f',"importances":{[rng.choice([0, 1, 2.5]) for _ in made]}' if rng.random() < 0.3 else ""
            body = f'{{"rows":[{",".join(rows)}],"labels":{labels}{weights}}}'
        self._learn_or_label("/learn", body, {"key": self._key()}, numbers, [])

    def _label(self) -> None:
        rng = self.rng
        count = rng.choice([1, 1, 3, 20])
        names = [
            self._ids[rng.randrange(len(self._ids))] if self._ids and rng.random() < 0.9 else f"none-{rng.random()}"
            for _ in range(count)
        ]
        if count == 1:
            body = f'{{"id":"{names[0]}","label":{rng.randrange(2)}}}'
        else:
            body = json.dumps({"labels": [{"id": name, "label": rng.randrange(2)} for name in names]})
        self._learn_or_label("/label", body, {"key": self._key()}, [], names)

    def _learn_or_label(self, path: str, body: str, more: dict[str, Any], numbers: list[int], names: list[str]) -> None:
        key = more["key"]
        try:
            status, answer = self.ask("POST", path, body, key)
        except LOST:
            # Whether it was learned is not known. With a key it can be sent again.
            self._retry = None if key is None else (path, body, more, numbers, names)
            raise
        if status in (429, 503):
            self._retry = None if key is None else (path, body, more, numbers, names)
            return
        self._retry = None
        with self.load.lock:
            told = self.load.told
            if status != 200:
                told.refused.update(numbers)
                return
            if answer["repeated"]:
                told.repeated.append(Repeated(key, answer["learned"], answer["sequence"]))
                return
            if answer["sequence"] in told.answers:
                told.wrong.append(f"two requests were acknowledged with sequence number {answer['sequence']}")
            told.answers[answer["sequence"]] = answer
            if path == "/learn":
                told.learned[answer["sequence"]] = numbers
            else:
                told.labelled[answer["sequence"]] = names
        if key is not None and self.rng.random() < 0.1:  # for no reason
            self._retry = (path, body, more, numbers, names)

    # -- predictions

    def _predict(self) -> None:
        rng = self.rng
        count = rng.choice([1, 1, 1, 5, 400])
        rows = [self.load.row(rng)[1] for _ in range(count)]
        body = f'{{"row":{rows[0]}}}' if count == 1 else f'{{"rows":[{",".join(rows)}]}}'
        status, answer = self.ask("POST", "/predict", body)
        if status == 200:
            self._keep_scores(rows, answer)

    def _store(self) -> None:
        rng = self.rng
        rows = [self.load.row(rng)[1] for _ in range(rng.choice([1, 1, 4, 30]))]
        names = [f"{self.number}.{self._made}.{number}" for number in range(len(rows))]
        self._made += 1
        if len(rows) == 1:
            body = f'{{"row":{rows[0]},"id":"{names[0]}"}}'
        else:
            body = json.dumps({"ids": names})[:-1] + f',"rows":[{",".join(rows)}]}}'
        status, answer = self.ask("POST", "/predict", body)
        if status != 200:
            return
        self._keep_scores(rows, answer)
        if answer["ids"] is None:  # too much was waiting
            return
        with self.load.lock:
            if answer["stored"] == len(rows):
                self.load.told.stored.update(names)
            else:
                self.load.told.wrong.append(f"{answer['stored']} of {len(rows)} new rows were stored")
        self._ids = [*self._ids, *names][-KEPT_IDS:]

    def _keep_scores(self, rows: list[str], answer: dict[str, Any]) -> None:
        if self.rng.random() < 0.5:
            return
        with self.load.lock:
            kept = self.load.told.scored.setdefault((answer["version"], answer["rows"]), [])
            for at in range(0, len(rows), 40):
                probable = None if answer["probabilities"] is None else answer["probabilities"][at]
                kept.append(Scored(rows[at], answer["scores"][at], probable))


class Administrator(Client):
    """Asks for snapshots, shadows and the model, now and then."""

    def request(self) -> None:
        rng = self.rng
        threading.Event().wait(rng.uniform(0, 0.15))
        what = rng.choice(["snapshot", "shadow", "model", "model", "promote", "drop", "metrics"])
        if what == "snapshot":
            self.ask("POST", "/snapshot")
        elif what == "shadow":
            way = rng.choice(["auto", "manual"])
            self.ask(
                "POST",
                f"/shadow?promote={way}&positives={rng.choice([5, 20])}&margin=0.4",
                rng.choice(self.load.models),
            )
        elif what == "promote":
            self.ask("POST", "/shadow/promote")
        elif what == "drop" and rng.random() < 0.3:
            self.ask("DELETE", "/shadow")
        elif what == "metrics":
            self.ask("GET", "/statistics")
        else:
            status, answer = self.ask("GET", "/model")
            if status == 200:
                with self.load.lock:
                    self.load.told.models[answer["version"], answer["rows"]] = answer
