"""The loop of examples/kafka_loop.py: what Kafka delivers twice is learned once."""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import children
from tests.client.services import Served, label, row, small_model

pytest.importorskip("confluent_kafka")
pytest.importorskip("msgspec")
pytest.importorskip("starlette")

pytest_plugins = ["tests.readers.live.broker_fixtures"]
FILE = Path(__file__).parents[2] / "examples" / "kafka_loop.py"
TOPICS = argparse.Namespace(events="seen", labels="clicked", scores="scored", dead_letters="dead")
COUNT = 1200


class CrashError(Exception):
    pass


class Crashing:
    """A consumer whose process ends before a commit.

    It takes all partitions from the offsets that its group has committed, without joining the group: the mock broker
    lets nobody into a group that others have left.
    """

    def __init__(self, loop: Any, commits: int) -> None:
        self.loop, self.consumer, self.commits = loop, loop.consumer, commits  # fewer than 0: until all is committed

    def __getattr__(self, name: str) -> Any:
        return getattr(self.consumer, name)

    def subscribe(self, topics: list[str]) -> None:
        from confluent_kafka import TopicPartition

        self.consumer.assign([TopicPartition(topic, partition) for topic in topics for partition in range(2)])

    def commit(self, **options: Any) -> None:
        if self.commits == 0:
            raise CrashError
        self.commits -= 1
        self.consumer.commit(**options)
        if self.commits < 0:
            committed = self.consumer.committed(self.consumer.assignment(), timeout=60.0)
            ends = [self.consumer.get_watermark_offsets(place, timeout=60.0)[1] for place in committed]
            if [max(0, place.offset) for place in committed] == ends:
                self.loop.stop()


@pytest.fixture
def module():
    spec = importlib.util.spec_from_file_location("kafka_loop", FILE)
    assert spec is not None and spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    found.MOST = 100
    return found


def read(host: str, topic: str) -> list[dict[str, Any]]:
    """All messages of a topic."""
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": host, "group.id": "reader", "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    found: list[dict[str, Any]] = []
    while True:
        message = consumer.poll(60.0)
        assert message is not None
        if message.error() is not None:  # the end
            consumer.close()
            return found
        found.append(json.loads(message.value()))


def test_events_and_labels_that_come_again_after_a_crash_are_learned_once(new_kafka, module, tmp_path):
    kafka, served, model = new_kafka(), Served(tmp_path), small_model()
    for topic, partitions in (("seen", 2), ("clicked", 2), ("scored", 1), ("dead", 1)):
        kafka.tell("create", topic, partitions)
    events = [(number % 2, json.dumps(row(number)).encode()) for number in range(COUNT)]
    kafka.write("seen", [*events, (0, b"no JSON"), (1, b"[1]"), (0, None)])

    with served.client() as client:

        def go_on(commits: int) -> None:
            loop = module.Loop(client, kafka.host, "test", TOPICS)
            loop.consumer = Crashing(loop, commits)
            loop.run()

        for commits in (3, 0, 2):
            with pytest.raises(CrashError):
                go_on(commits)
        go_on(-1)
        scored = read(kafka.host, "scored")
        assert len(scored) > COUNT  # some of them again
        ids = {f"seen-{number % 2}-{number // 2}": number for number in range(COUNT)}
        assert {one["id"]: one["score"] for one in scored} == {
            id: model.score_one(row(number)) for id, number in ids.items()
        }
        assert client.model().rows == model.rows

        labels = [json.dumps({"id": id, "label": label(number)}).encode() for id, number in ids.items()]
        bad = [b"?", b'{"id": "nobody", "label": 1}', b'{"id": "seen-0-0", "label": 7}', b'{"id": 3, "label": 1}']
        kafka.write("clicked", [(number % 2, one) for number, one in enumerate([*labels, *bad, labels[0]])])
        for commits in (2, 0, 4):
            with pytest.raises(CrashError):
                go_on(commits)
        go_on(-1)
        assert client.model().rows == model.rows + COUNT
        assert client.model().positives == model.positives + sum(label(number) for number in range(COUNT))

    buried = {(one["message"].split("-")[0], one["reason"], one["value"]) for one in read(kafka.host, "dead")}
    assert buried == {
        ("seen", "not a JSON object", "no JSON"),
        ("seen", "not a JSON object", "[1]"),
        ("seen", "not a JSON object", ""),
        ("clicked", "not a JSON object", "?"),
        ("clicked", "no row has this id", '{"id": "nobody", "label": 1}'),
        ("clicked", 'not {"id": "...", "label": 1}', '{"id": "seen-0-0", "label": 7}'),
        ("clicked", 'not {"id": "...", "label": 1}', '{"id": 3, "label": 1}'),
    }
    served.kill()
    kafka.child.end()


def test_the_example_runs_as_a_program(new_kafka, tmp_path):
    kafka, served = new_kafka(), Served(tmp_path)
    for topic in ("clicks", "clicked", "scored", "dead"):
        kafka.tell("create", topic, 1)
    kafka.write("clicks", [(0, json.dumps(row(number)).encode()) for number in range(10)])
    served.client().close()
    words = ["--brokers", kafka.host, "--service", served.address, "--idle", 5]
    words += ["--events", "clicks", "--labels", "clicked", "--scores", "scored", "--dead-letters", "dead"]
    children.run([sys.executable, FILE, *words], check=True)
    assert [one["id"] for one in read(kafka.host, "scored")] == [f"clicks-0-{number}" for number in range(10)]
    served.kill()
    kafka.child.end()
