"""Topics of Kafka, read from the mock broker of librdkafka, which speaks the protocol on a port of this machine."""

from __future__ import annotations

import importlib
import json
import os
import signal
import threading
import uuid

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rarestream import DataError
from rarestream.readers.live import retries
from rarestream.readers.live.addresses import open_broker
from rarestream.readers.live.messages import text_of
from tests.readers.live.brokers import free_port, take, take_joined, until_note

confluent_kafka = pytest.importorskip("confluent_kafka")
live = importlib.import_module("rarestream.readers.live.kafka")

pytest_plugins = ["tests.readers.live.broker_fixtures"]

QUICK = settings(max_examples=15)
KEPT = 5 << 20  # bytes of a partition that the mock broker keeps


def new_topic(kafka, partitions: int = 1) -> str:
    topic = f"clicks-{uuid.uuid4().hex[:8]}"
    kafka.tell("create", topic, partitions)
    return topic


def row(number: int) -> bytes:
    return b'{"n": %d}' % number


def numbers(rows) -> list[int]:
    return [json.loads(one)["n"] for one in rows]


@pytest.fixture
def quick_looks(monkeypatch):
    monkeypatch.setattr(live, "LOOK", 0.1)
    monkeypatch.setattr(live, "ATTEMPTS", (0.3, 0.3))
    monkeypatch.setitem(live.DEFAULTS, "fetch.wait.max.ms", 10)
    monkeypatch.setattr(retries, "FIRST_PAUSE", 0.05)
    monkeypatch.setattr(retries, "LONGEST_PAUSE", 0.2)


# -- rows and positions


def test_a_message_is_a_row(kafka, opened):
    topic = new_topic(kafka)
    kafka.write(topic, [(0, row(number)) for number in range(100)])
    source = opened(kafka.address(topic))
    rows, parts = take(source, 100)
    assert rows == [row(number) for number in range(100)]
    assert parts[0].position(0) == {"partitions": {"0": 0}}
    assert parts[0].place(3) == f"{topic}[0]@2"
    assert not parts[0].begins
    assert source.default_format == "jsonl"


def test_messages_that_are_not_lines_become_lines(kafka, opened):
    topic = new_topic(kafka)
    kafka.write(topic, [(0, value) for value in (b'{"a":\n1}\n', None, b"", b"x\r\n", b"\xff\n\n", b"a\r\nb")])
    source = opened(kafka.address(topic))
    rows, lines = take_joined(source, 6)
    assert rows == [b'{"a": 1}', b"", b"", b"x", b"\xff ", b"a b"]
    assert source.notes == [f"{source.name}: messages without a value are ignored."]
    assert [lines.position(number)["partitions"]["0"] for number in range(7)] == list(range(7))


@given(st.lists(st.none() | st.binary(max_size=8) | st.sampled_from([b"a\n", b"\n", b"a\r\nb", b"\r"]), min_size=1))
def test_each_message_is_one_line(values):
    text = text_of(values)
    assert text.endswith(b"\n")
    assert text.count(b"\n") == len(values)
    for line, value in zip(text.split(b"\n"), values, strict=False):
        assert b"\n" in (value or b"") or line == (value or b"")


@QUICK
@given(
    partitions=st.integers(1, 5),
    rows=st.lists(st.integers(0, 4), min_size=1, max_size=120),
    count=st.integers(1, 50),
    data=st.data(),
)
def test_restarted_after_any_row_exactly_the_others_come(kafka, partitions, rows, count, data):
    topic = new_topic(kafka, partitions)
    kafka.write(topic, [(partition % partitions, row(number)) for number, partition in enumerate(rows)])
    first = open_broker(kafka.address(topic))
    first._count = count
    first.start({})
    found, parts = take(first, len(rows))
    first.close()
    assert sorted(numbers(found)) == list(range(len(rows)))
    ahead = 0
    for lines in parts[:3]:
        here = lines.text.count(b"\n")
        cut = data.draw(st.integers(0, here))
        second = open_broker(kafka.address(topic))
        second.start(json.loads(json.dumps(lines.position(cut))))
        left = len(rows) - ahead - cut
        others = take(second, left)[0] if left else []
        assert second.take(0.0) is None
        second.close()
        assert sorted(numbers(others)) == sorted(numbers(found[ahead + cut :]))
        ahead += here


def test_every_line_has_its_position(kafka, opened):
    topic = new_topic(kafka, 3)
    kafka.write(topic, [(number % 3, row(number)) for number in range(90)])
    _, parts = take(opened(kafka.address(topic)), 90)
    expected = {"0": 0, "1": 0, "2": 0}
    for lines in parts:
        assert lines.position(0) == {"partitions": expected}
        for number, line in enumerate(lines.text.splitlines(), 1):
            partition = str(json.loads(line)["n"] % 3)
            assert lines.place(number) == f"{topic}[{partition}]@{expected[partition]}"
            expected = {**expected, partition: expected[partition] + 1}
            assert lines.position(number) == {"partitions": expected}


def test_rows_come_as_they_are_written(kafka, opened):
    topic = new_topic(kafka)
    source = opened(kafka.address(topic))
    for number in range(3):
        assert source.take(0.0) is None
        kafka.write(topic, [(0, row(number))])
        assert take(source, 1)[0] == [row(number)]


def test_it_can_start_at_the_end(kafka, opened):
    topic = new_topic(kafka, 2)
    kafka.write(topic, [(0, row(0)), (1, row(1))])
    source = opened(kafka.address(topic, "from=end"))
    assert source.behind() == "0 messages behind"
    kafka.write(topic, [(1, row(2))])
    rows, lines = take_joined(source, 1)
    assert rows == [row(2)]
    assert lines.position(0) == {"partitions": {"0": 1, "1": 1}}
    # A position goes before the option.
    found = take(opened(kafka.address(topic, "from=end"), {"partitions": {"0": 0, "1": 1}}), 2)[0]
    assert sorted(numbers(found)) == [0, 2]


def test_it_says_how_many_messages_are_waiting(kafka, opened):
    topic = new_topic(kafka, 2)
    kafka.write(topic, [(number % 2, row(number)) for number in range(1500)])
    source = opened(kafka.address(topic))
    assert source.behind() == "1,500 messages behind"
    take(source, 1500)
    source._counted_at = 0
    source.take(0.0)
    assert source.behind() == "0 messages behind"


def test_a_new_partition_is_read_from_its_start(new_kafka, opened, quick_looks):
    kafka = new_kafka()
    topic = new_topic(kafka)
    source = opened(kafka.address(topic))
    assert source.take(0.0) is None
    kafka.tell("delete", topic)  # nothing was written to it: the same topic, as far as anyone can see
    kafka.tell("create", topic, 3)
    assert until_note(source, "new partitions") == f"{source.name}: new partitions 1, 2, read from the start."
    kafka.write(topic, [(number % 3, row(number)) for number in range(9)])
    rows, parts = take(source, 9)
    assert sorted(numbers(rows)) == list(range(9))
    assert parts[-1].position(parts[-1].text.count(b"\n")) == {"partitions": {"0": 3, "1": 3, "2": 3}}
    assert sorted(numbers(take(opened(kafka.address(topic), {"partitions": {"0": 3}}), 6)[0])) == [1, 2, 4, 5, 7, 8]


def test_offsets_with_gaps(kafka, opened):
    """As transactions and compaction leave them: the position is what follows the last message."""

    class Message:
        def __init__(self, partition, offset):
            self.value, self.partition, self.offset = lambda: b"x", lambda: partition, lambda: offset

    lines = live.MessageLines("clicks", {0: 3, 1: 0}, [Message(0, 5), Message(0, 9), Message(1, 4)])
    assert [lines.position(number)["partitions"] for number in range(4)] == [
        {"0": 3, "1": 0},
        {"0": 6, "1": 0},
        {"0": 10, "1": 0},
        {"0": 10, "1": 5},
    ]


# -- messages that are gone


def fill(kafka, topic: str, partition: int = 0) -> None:
    """Writes so much that the broker deletes what was there."""
    kafka.write(topic, [(partition, b"x" * 500_000)] * (KEPT // 500_000 + 3))


def test_messages_that_are_deleted_before_they_are_read_are_an_error(kafka, opened):
    topic = new_topic(kafka, 2)
    kafka.write(topic, [(0, row(number)) for number in range(20)])
    _, lines = take_joined(opened(kafka.address(topic)), 20)
    fill(kafka, topic)
    with pytest.raises(DataError) as error:
        opened(kafka.address(topic), lines.position(8))
    before, _, after = str(error.value).partition(" of partition 0. ")
    name, _, lost = before.partition(": messages were deleted before they were read: ")
    assert name == kafka.address(topic)
    assert int(lost) >= 12
    assert after == (
        "To go on with the next row that is there, pass lost=True. To keep messages until they are read, raise "
        "retention.ms and retention.bytes of the topic."
    )
    source = opened(kafka.address(topic), lines.position(8), lost=True)
    rows, parts = take(source, 1)
    assert rows[0] == b"x" * 500_000
    assert parts[0].position(0)["partitions"]["0"] == 8 + int(lost)
    assert f"{int(lost)} of partition 0; going on with the next ones that are there." in source.notes[0]


def test_messages_that_are_deleted_while_it_reads_are_an_error(kafka, opened):
    topic = new_topic(kafka)
    kafka.write(topic, [(0, row(number)) for number in range(20)])
    source = opened(kafka.address(topic, "queued.min.messages=1&fetch.message.max.bytes=1000"))
    source._count = 5
    take(source, 5)
    fill(kafka, topic)
    with pytest.raises(DataError, match="messages were deleted before they were read: [0-9]+ of partition 0"):
        take(source, 100)


def test_a_topic_that_is_not_there_is_an_error(kafka, opened):
    with pytest.raises(DataError, match="no-such-topic: there is no such topic. Check its name"):
        opened(kafka.address("no-such-topic"))


def test_a_topic_that_is_deleted_is_an_error(new_kafka, opened, quick_looks):
    kafka = new_kafka()
    topic = new_topic(kafka)
    kafka.write(topic, [(0, row(0))])
    source = opened(kafka.address(topic))
    _, lines = take_joined(source, 1)
    kafka.tell("delete", topic)
    with pytest.raises(DataError, match=f"{topic}: the topic was deleted"):
        take(source, 1)
    with pytest.raises(DataError, match=f"{topic}: the topic was deleted"):
        opened(kafka.address(topic), lines.position(1))


def test_a_topic_that_was_made_again_is_an_error(new_kafka, opened, quick_looks):
    kafka = new_kafka()
    topic = new_topic(kafka, 2)
    kafka.write(topic, [(number % 2, row(number)) for number in range(6)])
    source = opened(kafka.address(topic))
    take(source, 6)
    kafka.tell("delete", topic)
    kafka.tell("create", topic, 1)
    kafka.write(topic, [(0, row(7))])
    message = "partitions 0, 1 ended before the position: the topic was deleted and made again"
    with pytest.raises(DataError, match=message):
        take(source, 1)
    position = {"partitions": {"0": 3, "1": 3}}
    with pytest.raises(DataError, match=message):
        opened(kafka.address(topic), position)
    rows, lines = take_joined(opened(kafka.address(topic), position, lost=True), 1)
    assert numbers(rows) == [7]
    assert lines.position(1) == {"partitions": {"0": 1}}


# -- brokers that are away


def test_a_broker_that_hangs_is_away_until_it_answers(new_kafka, opened, quick_looks):
    kafka = new_kafka()
    topic = new_topic(kafka)
    kafka.write(topic, [(0, row(0))])
    source = opened(kafka.address(topic))
    take(source, 1)
    os.kill(kafka.child.pid, signal.SIGSTOP)
    note = until_note(source, "no answer from")
    assert note.startswith(f"no answer from {source.name} (") and "); trying again in " in note
    os.kill(kafka.child.pid, signal.SIGCONT)
    until_note(source, "answers again")
    kafka.write(topic, [(0, row(1))])
    assert numbers(take(source, 1)[0]) == [1]


def test_a_broker_that_comes_back_is_read_on(new_kafka, opened, quick_looks):
    kafka = new_kafka()
    topic = new_topic(kafka, 2)
    kafka.write(topic, [(number % 2, row(number)) for number in range(6)])
    source = opened(kafka.address(topic))
    source._count = 4
    rows, _ = take(source, 4)
    kafka.tell("down")
    while not any("no answer from" in note for note in source.notes):  # what was fetched before still comes
        lines = source.take(0.1)
        rows += [] if lines is None else lines.text.splitlines()
    kafka.tell("up")
    while not any("answers again" in note for note in source.notes):
        lines = source.take(0.1)
        rows += [] if lines is None else lines.text.splitlines()
    kafka.write(topic, [(number % 2, row(number)) for number in range(6, 10)])
    rows += take(source, 10 - len(rows))[0]
    assert sorted(numbers(rows)) == list(range(10))


def test_it_gives_up_when_the_broker_is_gone(new_kafka, opened, quick_looks):
    kafka = new_kafka()
    topic = new_topic(kafka)
    source = opened(kafka.address(topic, "give_up=1"))
    kafka.child.end()
    until_note(source, "no answer from")
    with pytest.raises(DataError, match=r"no answer for 1 seconds \(Connect to .* refused\).*give_up=SECONDS") as error:
        take(source, 1)
    assert str(error.value).startswith(f"{kafka.address(topic)}: ")


def test_it_waits_for_a_broker_that_is_not_there_at_the_start(opened, quick_looks):
    source = opened(f"kafka://127.0.0.1:{free_port()}/clicks")
    assert "refused" in until_note(source, "no answer from")
    assert source.take(0.0) is None


def test_a_broker_that_answers_with_errors_is_asked_again(new_kafka, opened, quick_looks):
    kafka = new_kafka()
    topic = new_topic(kafka)
    kafka.write(topic, [(0, row(0))])
    kafka.tell("fail", confluent_kafka.KafkaError.LEADER_NOT_AVAILABLE, topic)
    source = opened(kafka.address(topic))
    assert "eader" in until_note(source, "no answer from")
    kafka.tell("fail", 0, topic)
    assert numbers(take(source, 1)[0]) == [0]


@pytest.mark.parametrize(
    "code",
    [confluent_kafka.KafkaError.TOPIC_AUTHORIZATION_FAILED, confluent_kafka.KafkaError.SASL_AUTHENTICATION_FAILED],
)
def test_a_refusal_ends_at_once(new_kafka, opened, quick_looks, code):
    kafka = new_kafka()
    topic = new_topic(kafka)
    source = opened(kafka.address(topic))
    kafka.tell("fail", code, topic)
    with pytest.raises(DataError, match="Kafka refuses us: .*properties of librdkafka, in the address or in the file"):
        take(source, 1)
    with pytest.raises(DataError, match="Kafka refuses us"):
        opened(kafka.address(topic))


def test_a_login_that_fails_ends_at_once(kafka, opened):
    """The mock broker knows no users: it refuses all of them."""
    options = "security.protocol=SASL_PLAINTEXT&sasl.mechanisms=PLAIN"
    with pytest.raises(DataError, match="Kafka refuses us: Failed to initialize SASL authentication") as error:
        opened(kafka.address(new_topic(kafka), options).replace("//", "//ali:sesame@"))
    assert "sesame" not in str(error.value)


# -- the end


def test_stop_ends_a_take_that_waits(kafka, opened):
    source = opened(kafka.address(new_topic(kafka)))
    found = []
    taking = threading.Thread(target=lambda: found.append(source.take(600.0)))
    taking.start()
    source.stop()
    taking.join(60)
    assert found == [None]


def test_stop_ends_a_pause(opened):
    source = opened(f"kafka://127.0.0.1:{free_port()}/clicks")
    taking = threading.Thread(target=lambda: source.take(600.0))
    taking.start()
    source.stop()
    taking.join(60)
    assert not taking.is_alive()


def test_nothing_is_left_open(kafka):
    def left():
        return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))

    topic = new_topic(kafka)
    kafka.write(topic, [(0, row(0))])
    before = left()
    source = open_broker(kafka.address(topic))
    source.start({})
    take(source, 1)
    assert left() > before
    source.close()
    source.close()
    assert left() == before


def test_nothing_is_left_open_when_the_start_fails(kafka):
    before = len(os.listdir("/proc/self/task"))
    source = open_broker(kafka.address("no-such-topic"))
    with pytest.raises(DataError):
        source.start({})
    source.close()
    assert len(os.listdir("/proc/self/task")) == before


def test_offsets_are_committed_for_a_group_that_the_user_names(kafka, opened):
    topic = new_topic(kafka)
    kafka.write(topic, [(0, row(number)) for number in range(10)])
    group = f"group-{uuid.uuid4().hex[:8]}"
    for options, expected in (("", -1001), (f"group.id={group}", 7)):
        source = opened(kafka.address(topic, options))
        _, lines = take_joined(source, 10)
        source.saved(lines.position(7))
        source.close()  # which waits for it
        source.saved(lines.position(8))
        watching = confluent_kafka.Consumer(
            {"bootstrap.servers": kafka.host, "group.id": group if options else "rarestream"}
        )
        (found,) = watching.committed([confluent_kafka.TopicPartition(topic, 0)], timeout=60)
        watching.close()
        assert found.offset == expected
    # They are not where reading starts.
    assert numbers(take(opened(kafka.address(topic, f"group.id={group}")), 10)[0]) == list(range(10))


# -- addresses and properties


def test_a_password_is_never_shown():
    source = open_broker("kafka://ali:open+sesame@h1:9092,h2:9092/clicks?ssl.key.password=cave&client.id=me&from=end")
    assert source.name == "kafka://h1:9092,h2:9092/clicks"
    assert source.address == "kafka://h1:9092,h2:9092/clicks?client.id=me&from=end"
    assert source._properties["sasl.username"] == "ali"
    assert source._properties["sasl.password"] == "open+sesame"
    assert source._properties["bootstrap.servers"] == "h1:9092,h2:9092"
    with pytest.raises(DataError) as error:
        open_broker("kafka://ali:sesame@h1:9092/?sasl.password=sesame")
    assert "sesame" not in str(error.value)


def test_properties_may_be_in_a_file(kafka, opened, tmp_path):
    file = tmp_path / "kafka.properties"
    file.write_text("# for the cluster\n\nsasl.password = a=b \nclient.id=them\nplugin.library.paths=\n")
    source = open_broker(f"kafka://localhost/clicks?config={file}&client.id=me")
    assert source._properties["sasl.password"] == "a=b"
    assert source._properties["client.id"] == "me"
    assert source.address.endswith(f"?config={file}&client.id=me")
    file.write_text("fetch.wait.max.ms=100\nnonsense\n")
    with pytest.raises(DataError, match=r"kafka.properties:2: not a line such as sasl.username=me"):
        open_broker(f"kafka://localhost/clicks?config={file}")
    with pytest.raises(DataError, match="nowhere cannot be read: No such file"):
        open_broker("kafka://localhost/clicks?config=nowhere")
    topic = new_topic(kafka)
    kafka.write(topic, [(0, row(0))])
    file.write_text("fetch.wait.max.ms=100\n")
    assert numbers(take(opened(kafka.address(topic, f"config={file}")), 1)[0]) == [0]


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("kafka://localhost:9092", "the address of a topic is kafka://HOST:PORT/TOPIC"),
        ("kafka:///clicks", "the address of a topic is kafka://HOST:PORT/TOPIC"),
        ("kafka://localhost/clicks/more", "the address of a topic is kafka://HOST:PORT/TOPIC"),
        ("kafka://localhost/clicks?from=0", "from must be start or end, got '0'"),
        ("kafka://localhost/clicks?auto.offset.reset=latest", "auto.offset.reset cannot be changed"),
        ("kafka://localhost/clicks?bootstrap.servers=x", "bootstrap.servers cannot be changed"),
        ("kafka://localhost/clicks?sasl.kerberos.kinit.cmd=rm", "cannot be part of an address. Put it into a file"),
        ("kafka://localhost/clicks?plugin.library.paths=x", "cannot be part of an address. Put it into a file"),
    ],
)
def test_an_address_that_cannot_be_meant_is_refused(address, message):
    with pytest.raises(DataError) as error:
        open_broker(address)
    assert message in str(error.value)


@pytest.mark.parametrize("option", ["nonsense=1", "security.protocol=none", "fetch.max.bytes=lots"])
def test_a_property_that_librdkafka_does_not_know_is_refused(opened, option):
    with pytest.raises(DataError, match=f"kafka://localhost/clicks: .*{option.partition('=')[0]}"):
        opened(f"kafka://localhost/clicks?{option}")


@pytest.mark.parametrize(
    "position",
    [{"id": "1-1"}, {"partitions": {}}, {"partitions": {"a": 1}}, {"partitions": {"0": -1}}, {"partitions": [1]}],
)
def test_a_position_of_something_else_is_refused(opened, position):
    with pytest.raises(DataError, match="is not a position in a topic of Kafka"):
        opened("kafka://localhost/clicks", position)


def test_a_name_that_no_topic_can_have(kafka, opened):
    with pytest.raises(DataError, match="there is no such topic|cannot be the name of a topic"):
        opened(kafka.address("a%20b"))


def test_the_mock_broker_is_one(kafka):
    """Kafka itself is not among the packages of Debian: what these tests cannot show is said in the documentation."""
    about = confluent_kafka.Producer({"bootstrap.servers": kafka.host}).list_topics(timeout=60)
    assert "mock" in about.cluster_id


def test_the_first_lines_of_all_tell_where_it_starts(kafka, opened):
    kafka.tell("create", "begins", 2)
    kafka.write("begins", [(0, b"one"), (1, b"two"), (1, b"three")])
    for options, start in (("", {"0": 0, "1": 0}), ("from=end", {"0": 1, "1": 2})):
        source = opened(kafka.address("begins", options), begins=True)
        lines = source.take(5.0)
        assert lines.text == b"" and lines.position(0) == {"partitions": start}
    kafka.write("begins", [(0, b"four")])
    assert take(opened(kafka.address("begins", "from=end"), lines.position(0), begins=True), 1)[0] == [b"four"]
