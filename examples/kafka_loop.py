"""Score the events of one Kafka topic and learn from the labels of another, each exactly once.

    python kafka_loop.py --brokers localhost:9092 --service http://localhost:8080 \\
        --events clicks --labels clicked --scores scored --dead-letters dead

A message of the events is a row, {"site": "a.com", "price": 3.5}. It is scored and stored under an id made of its
topic, partition and offset, and {"id": "clicks-0-17", "score": 0.25} is written to the scores. A message of the labels
is {"id": "clicks-0-17", "label": 1}, whenever it is known.

Kafka delivers a message at least once: after a crash, those since the last commit come again. Here that changes
nothing that is learned. An event that comes again has the same id, and the service stores an id once; its score is
written again. A label that comes again finds its row learned already. Offsets are committed only after the service has
acknowledged everything and Kafka has the scores.

What cannot be used (no JSON, a row that the service refuses, a label for an unknown id or after its time) is written to
the dead letters with the reason, and never stops the loop.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from confluent_kafka import Consumer, KafkaException, Message, Producer

from rarestream.client import Client, ServiceError

MOST = 500  # messages at a time
SECONDS = 0.2  # that the first of them waits for others


class Loop:
    """From two topics to the service, and from it to two others."""

    def __init__(self, client: Client, brokers: str, group: str, topics: argparse.Namespace) -> None:
        self.client, self.topics = client, topics
        self.stopped = False
        self.consumer = Consumer(
            {
                "bootstrap.servers": brokers,
                "group.id": group,
                "enable.auto.commit": False,  # only what the service has on disk
                "auto.offset.reset": "earliest",
            }
        )
        self.producer = Producer({"bootstrap.servers": brokers, "enable.idempotence": True})
        self.unwritten: list[str] = []  # why messages were not written

    def run(self, idle: float | None = None) -> None:
        """Go on until `stop`, or until nothing has come for `idle` seconds."""
        self.consumer.subscribe([self.topics.events, self.topics.labels])
        quiet = 0.0
        try:
            while not self.stopped and (idle is None or quiet < idle):
                messages = self.consumer.consume(MOST, SECONDS)
                if messages:
                    self.take(messages)
                waits = not messages and self.consumer.assignment()  # not while the group gathers
                quiet = quiet + SECONDS if waits else 0.0
        finally:
            self.consumer.close()

    def stop(self, *signal: object) -> None:
        self.stopped = True

    def take(self, messages: Sequence[Message]) -> None:
        """Score and learn what has come, then commit it."""
        for message in messages:
            if message.error() is not None:
                raise KafkaException(message.error())
        self.score([message for message in messages if message.topic() == self.topics.events])
        labels = [message for message in messages if message.topic() == self.topics.labels]
        for _, part in groupby(sorted(labels, key=place), key=lambda message: message.partition()):
            self.learn(list(part))
        self.producer.flush()
        if self.unwritten:
            raise SystemExit(f"Kafka did not take what was written: {self.unwritten[0]}.")
        self.consumer.commit(asynchronous=False)

    def score(self, messages: Sequence[Message]) -> None:
        rows = list(self.parsed(messages))
        while rows:
            ids = [id_of(message) for message, _ in rows]
            try:
                found = self.client.predict([row for _, row in rows], ids=ids)
            except ServiceError as error:
                if error.row is None:
                    raise
                self.bury(rows.pop(error.row)[0], error.message)  # nothing was stored: the others go again
                continue
            for id, score in zip(ids, found.scores, strict=True):
                self.write(self.topics.scores, {"id": id, "score": score})
            return

    def learn(self, messages: Sequence[Message]) -> None:
        """Learn labels of one partition."""
        labels: dict[str, tuple[Message, int]] = {}
        for message, found in self.parsed(messages):
            if not isinstance(found.get("id"), str) or found.get("label") not in (-1, 0, 1):
                self.bury(message, 'not {"id": "...", "label": 1}')
            elif found["id"] in labels:
                self.bury(message, "this row has a label already")
            else:
                labels[found["id"]] = message, found["label"]
        if not labels:
            return
        first, last = messages[0], messages[-1]
        found = self.client.label(
            {id: label for id, (_, label) in labels.items()}, key=f"{id_of(first)}-{last.offset()}"
        )
        # A duplicate is a label that was delivered twice, or one that came back after a crash.
        for reason, ids in (("no row has this id", found.unknown), ("this label came too late", found.late)):
            for id in ids:
                self.bury(labels[id][0], reason)

    def parsed(self, messages: Iterable[Message]) -> Iterable[tuple[Message, dict[str, Any]]]:
        for message in messages:
            try:
                found = json.loads(message.value() or b"")
            except ValueError:
                found = None
            if isinstance(found, dict):
                yield message, found
            else:
                self.bury(message, "not a JSON object")

    def bury(self, message: Message, reason: str) -> None:
        text = (message.value() or b"").decode("utf-8", "replace")
        self.write(self.topics.dead_letters, {"message": id_of(message), "reason": reason, "value": text})

    def write(self, topic: str, value: dict[str, Any]) -> None:
        def told(error: Any, message: Any) -> None:
            if error is not None:
                self.unwritten.append(str(error))

        while True:
            try:
                self.producer.produce(topic, json.dumps(value), on_delivery=told)
                break
            except BufferError:  # its queue is full: wait for Kafka
                self.producer.poll(1.0)
        self.producer.poll(0)


def id_of(message: Message) -> str:
    return f"{message.topic()}-{message.partition()}-{message.offset()}"


def place(message: Message) -> tuple[int, int]:
    return message.partition(), message.offset()


def main() -> None:
    parser = argparse.ArgumentParser(description="Score events of Kafka and learn from their labels.")
    parser.add_argument("--brokers", required=True)
    parser.add_argument("--service", required=True, help="Its token is that of $RARESTREAM_TOKEN.")
    parser.add_argument("--group", default="rarestream")
    for topic in ("events", "labels", "scores", "dead-letters"):
        parser.add_argument(f"--{topic}", required=True, metavar="TOPIC")
    parser.add_argument("--idle", type=float, metavar="SECONDS", help="End when nothing has come for so long.")
    arguments = parser.parse_args()
    with Client(arguments.service, token=os.environ.get("RARESTREAM_TOKEN"), retries=20) as client:
        loop = Loop(client, arguments.brokers, arguments.group, arguments)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, loop.stop)
        loop.run(arguments.idle)


if __name__ == "__main__":
    main()
