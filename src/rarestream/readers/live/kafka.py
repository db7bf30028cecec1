"""Topics of Kafka: a message is a row, the next offset of each partition is the position.

Partitions are assigned with explicit offsets. There is no group that balances them, and no offset that Kafka keeps is
ever used: it could not be saved in one step with the model.
"""

from __future__ import annotations

import contextlib
import logging
import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from rarestream.errors import DataError, MissingExtraError, plain
from rarestream.readers.live.addresses import FROM, GIVE_UP, OURS, PATIENCE, Address, accepting_loss, parse_address
from rarestream.readers.live.lines import LINGER, MOST_TEXT, Lines, LineSource, NoLines, Position
from rarestream.readers.live.messages import Once, text_of
from rarestream.readers.live.retries import Retries, wait
from rarestream.readers.sources import StoppedError

try:
    from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
except ImportError:
    raise MissingExtraError('Kafka needs the package confluent-kafka: pip install "rarestream[kafka]"') from None

T = TypeVar("T")

CONFIG, GROUP = "config", "group.id"
DEFAULTS: dict[str, Any] = {
    GROUP: "rarestream",  # librdkafka wants a name; nothing joins the group
    "client.id": "rarestream",
    "queued.max.messages.kbytes": 32 << 10,
    "fetch.max.bytes": 16 << 20,
    "fetch.queue.backoff.ms": 20,  # by default a full queue is filled again a second later; it is empty long before
    "reconnect.backoff.max.ms": 1000,  # `Retries` makes the pauses
}
FIXED: dict[str, Any] = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": False,
    "auto.offset.reset": "error",
}
# They load or run something. An address may come out of a model file that someone else has made.
ONLY_IN_A_FILE = ("plugin.library.paths", "ssl.engine.location", "ssl.providers", "sasl.kerberos.kinit.cmd")

FIRST_COUNT, LARGEST_COUNT = 500, 10_000  # messages that are taken at once
# Seconds that the broker has for an answer, one after the other. It answers a connection in order, and what has no
# messages yet only after fetch.wait.max.ms.
ATTEMPTS = (1.0, 2.0, 4.0)
LOOK = 10.0  # seconds between two looks at the partitions of the topic
CONFIRM = 3  # times that a topic is not there before that is believed: a broker that starts does not know its topics

UNKNOWN = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION)
OUT_OF_RANGE = (KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._AUTO_OFFSET_RESET)
DENIALS = (
    KafkaError._AUTHENTICATION,
    KafkaError.SASL_AUTHENTICATION_FAILED,
    KafkaError.UNSUPPORTED_SASL_MECHANISM,
    KafkaError.ILLEGAL_SASL_STATE,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError._SSL,
)
HARMLESS = (KafkaError._PARTITION_EOF, KafkaError._TRANSPORT)  # one broker of several; all of them is _ALL_BROKERS_DOWN

_CONNECTION = re.compile(r"^\S+/\S+: ")
_log = logging.getLogger("rarestream.kafka")  # what librdkafka has to say, for who configures it
_log.addHandler(logging.NullHandler())


class KafkaSource(LineSource):
    """A topic of Kafka, all its partitions.

    Parameters
    ----------
    address : str
        kafka://[USER:PASSWORD@]HOST:PORT[,HOST:PORT]/TOPIC, with the options

        - from=start or from=end: where a model without a position starts; default: start;
        - give_up=SECONDS without an answer before it is an error; default: 300;
        - config=FILE with properties of librdkafka, a line each, such as sasl.password=...;
        - any other property of librdkafka, such as security.protocol=SASL_SSL.

        If group.id is given, offsets are committed for it after each save, so that tools can show how far the model
        has come. They are never read.
    lost : bool, default False
        Whether to go on where Kafka has deleted messages before they were read.

    Raises
    ------
    DataError
        If the address lacks a part, or librdkafka does not know a property.
    """

    kind = "kafka"
    default_format = "jsonl"

    def __init__(self, address: str, lost: bool = False) -> None:
        super().__init__()
        found = parse_address(address)
        if not found.hosts or not found.path or "/" in found.path:
            raise DataError(
                f"{found.name}: the address of a topic is kafka://HOST:PORT/TOPIC, such as "
                "kafka://localhost:9092/clicks; several HOST:PORT are comma-separated."
            )
        self.name = found.name
        self.address = found.without_secrets
        self._topic = found.path
        self._from_end = found.choice(FROM, ("start", "end")) == "end"
        self._skip_lost = lost
        self._retries = Retries(self.name, found.seconds(GIVE_UP, PATIENCE), self.notes)
        self._once = Once(self.notes)
        self._properties = _properties(found)
        self._commits = GROUP in self._properties
        self._consumer: Any = None
        self._stopped = False

        self._position: dict[int, int] | None = None  # the next offset of each partition; None: not known yet
        self._begins = True  # whether nobody knows yet where the first start is
        self._assigned = False
        self._trouble: KafkaError | None = None  # that all brokers are away, or refuse us
        self._reason = ""  # the last thing that went wrong
        self._look_at = 0.0  # when to look at the partitions again
        self._count = FIRST_COUNT
        self._waiting: int | None = None
        self._counted_at = 0.0

    # -- the interface

    def start(self, position: Position) -> None:
        if position:
            self._position = _offsets(position)
            self._begins = False
            if self._position is None:
                raise DataError(f"{self.name}: {position!r} is not a position in a topic of Kafka.")
        properties = {**DEFAULTS, **self._properties, **FIXED, "error_cb": self._note_error}
        try:
            self._consumer = Consumer(properties, logger=_log)
        except KafkaException as error:
            raise DataError(f"{self.name}: {plain(_text(error.args[0]))}.") from None
        try:
            self._assign()
        except KafkaException as error:
            self._away(error.args[0])  # `take` tries again
        except StoppedError:
            pass

    def take(self, patience: float) -> Lines | None:
        until = time.monotonic() + patience
        while self._retries.due(until, self._is_stopped) and not self._stopped:
            try:
                lines = self._next(until)
            except KafkaException as error:
                self._away(error.args[0])
                continue
            except StoppedError:
                return None
            if lines is not None or time.monotonic() >= until:
                return lines
        return None

    def behind(self) -> str:
        waiting = self._waiting
        return "" if waiting is None else f"{waiting:,} {'message' if waiting == 1 else 'messages'} behind"

    def saved(self, position: Position) -> None:
        offsets = _offsets(position)
        if self._commits and offsets and self._consumer is not None:
            # For who watches the group. If it fails, the next one may not, and nothing depends on it.
            with contextlib.suppress(KafkaException, RuntimeError):
                self._consumer.commit(offsets=self._places(offsets), asynchronous=True)

    def stop(self) -> None:
        self._stopped = True

    def close(self) -> None:
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    # -- messages

    def _is_stopped(self) -> bool:
        return self._stopped

    def _next(self, until: float) -> Lines | None:
        """Do the next step: return the next lines, or None if it has led to none yet."""
        if self._begins and self._position is not None:  # to be saved: what comes from here on is not lost
            self._begins = False
            return NoLines(_position(self._position))
        if not self._assigned:
            self._assign()
        elif self._trouble is not None or time.monotonic() >= self._look_at:
            self._look()
        messages = self._consumer.consume(self._count, max(0.0, min(LINGER, until - time.monotonic())))
        rows = [message for message in messages if message.error() is None]
        if len(rows) < len(messages):
            for message in messages:
                if (error := message.error()) is not None:
                    self._note_error(error)
        if not rows:
            self._count_waiting()
            return None
        assert self._position is not None
        lines = MessageLines(self._topic, self._position, rows)
        self._position = _offsets(lines.position(len(rows)))
        if lines.has_empty:
            self._once.say(f"{self.name}: messages without a value are ignored.")
        self._count = int(max(1, min(MOST_TEXT * len(rows) / len(lines.text), LARGEST_COUNT)))
        self._count_waiting()
        return lines

    def _note_error(self, error: KafkaError) -> None:
        """Take note of an error of librdkafka: it calls this within `consume` and `poll`."""
        code = error.code()
        if code in OUT_OF_RANGE:
            self._assigned = False
        elif code in UNKNOWN:
            self._look_at = 0.0
        else:
            if code not in (KafkaError._ALL_BROKERS_DOWN, KafkaError._PARTITION_EOF):
                self._reason = _text(error)
            if code not in HARMLESS:
                self._trouble = error

    def _away(self, error: KafkaError) -> None:
        """Take note that the brokers do not answer; raise a DataError if there is no use in asking again."""
        if not self._assigned:
            self._consumer.poll(0)  # for `_note_error`; without an assignment there are no messages
        for one in (error, self._trouble):
            if one is not None and (one.code() in DENIALS or one.fatal()):
                raise DataError(
                    f"{self.name}: Kafka refuses us: {plain(_text(one))}. User, password and security.protocol are "
                    f"properties of librdkafka, in the address or in the file that its option {CONFIG} names."
                ) from None
        self._retries.failed(self._reason or _text(error))

    # -- partitions

    def _look(self) -> None:
        """Look whether the brokers answer, and whether the topic has new partitions, or is gone."""
        assert self._position is not None
        if self._trouble is not None and (self._trouble.code() in DENIALS or self._trouble.fatal()):
            raise KafkaException(self._trouble)
        partitions = self._partitions()
        self._answered()
        if new := sorted(set(partitions) - set(self._position)):
            self.notes.append(f"{self.name}: new {_listed(new)}, read from the start.")
        if set(partitions) != set(self._position):
            self._assign()

    def _answered(self) -> None:
        self._trouble, self._reason = None, ""
        self._retries.answered()
        self._look_at = time.monotonic() + LOOK

    def _assign(self) -> None:
        """Begin to read all partitions at their positions, after a check that the messages there are not gone."""
        self._assigned = False
        partitions = self._partitions()
        marks = {partition: self._marks(partition) for partition in partitions}
        self._answered()
        if self._position is None:
            end = int(self._from_end)
            self._position = {partition: marks[partition][end] for partition in partitions}
        self._position = self._checked(self._position, marks)
        self._waiting = sum(high - self._position[partition] for partition, (_, high) in marks.items())
        self._consumer.assign(self._places(self._position))
        self._assigned = True

    def _checked(self, position: dict[int, int], marks: dict[int, tuple[int, int]]) -> dict[int, int]:
        """Return where to read each partition; raise a DataError if messages are lost."""
        lost, again = {}, []
        for partition, offset in sorted(position.items()):
            low, high = marks.get(partition, (0, 0))
            if offset < low:
                lost[partition] = low - offset
            elif offset > high:
                again.append(partition)
        found = {
            partition: low if partition in lost or partition in again else position.get(partition, low)
            for partition, (low, _) in marks.items()
        }
        what = []
        if lost:
            counts = ", ".join(f"{count:,} of partition {partition}" for partition, count in lost.items())
            what.append(f"messages were deleted before they were read: {counts}")
        if again:
            what.append(f"{_listed(again)} ended before the position: the topic was deleted and made again")
        if what and not self._skip_lost:
            raise DataError(
                f"{self.name}: {'; '.join(what)}. {accepting_loss()} To keep messages until they are read, raise "
                "retention.ms and retention.bytes of the topic."
            )
        if what:
            self.notes.append(f"{self.name}: {'; '.join(what)}; going on with the next ones that are there.")
        return found

    def _partitions(self) -> list[int]:
        """Return the partitions of the topic."""
        for attempt in range(CONFIRM):
            if attempt:
                wait(time.monotonic() + ATTEMPTS[0] / 2, self._is_stopped)
            about = self._ask(lambda timeout: self._consumer.list_topics(self._topic, timeout)).topics.get(self._topic)
            error = None if about is None else about.error
            if about is not None and error is None and about.partitions:
                return sorted(about.partitions)
            if error is not None and error.code() not in UNKNOWN:
                if error.code() == KafkaError.TOPIC_EXCEPTION:
                    raise DataError(f"{self.name}: {plain(self._topic)!r} cannot be the name of a topic.")
                raise KafkaException(error)
        raise DataError(
            f"{self.name}: there is no such topic. Check its name; topics are not created by reading them."
            if self._position is None
            else f"{self.name}: the topic was deleted. There is nothing more to read."
        )

    def _marks(self, partition: int) -> tuple[int, int]:
        """Return the first offset of a partition, and the one that its next message will have."""
        place = TopicPartition(self._topic, partition)
        low, high = self._ask(lambda timeout: self._consumer.get_watermark_offsets(place, timeout))
        return int(low), int(high)

    def _ask(self, question: Callable[[float], T]) -> T:
        """Return the answer of the broker. Short waits first: a stop cannot end them."""
        for timeout in ATTEMPTS:
            if self._stopped:
                raise StoppedError
            try:
                answer = question(timeout)
                if answer is not None:
                    return answer
            except KafkaException as error:
                if error.args[0].code() != KafkaError._TIMED_OUT:
                    raise
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT, f"no answer in {sum(ATTEMPTS):g} seconds"))

    def _count_waiting(self) -> None:
        now = time.monotonic()
        if now - self._counted_at < 1 or self._position is None or not self._assigned:
            return
        self._counted_at = now
        waiting = 0
        for place in self._places(self._position):
            marks = self._consumer.get_watermark_offsets(place, cached=True)
            if marks is not None:
                waiting += max(0, marks[1] - place.offset)
        self._waiting = waiting

    def _places(self, offsets: Mapping[int, int]) -> list[Any]:
        return [TopicPartition(self._topic, partition, offset) for partition, offset in sorted(offsets.items())]


class MessageLines(Lines):
    """Messages of a topic, a line each."""

    def __init__(self, topic: str, before: dict[int, int], messages: Sequence[Any]) -> None:
        values = [message.value() for message in messages]
        self.text = text_of(values)
        self.has_empty = not all(values)
        self._topic = topic
        self._before = before
        self._partitions = [message.partition() for message in messages]
        self._offsets = [message.offset() for message in messages]

    def position(self, lines: int) -> Position:
        # Of each partition the last offset counts. Transactions and compaction leave gaps between offsets.
        last = dict(zip(self._partitions[:lines], self._offsets[:lines], strict=True))
        after = self._before | {partition: offset + 1 for partition, offset in last.items()}
        return _position(after)

    def place(self, line: int) -> str:
        return f"{plain(self._topic)}[{self._partitions[line - 1]}]@{self._offsets[line - 1]}"


def _position(offsets: Mapping[int, int]) -> Position:
    """Return the next offset of each partition as a position."""
    return {"partitions": {str(partition): offset for partition, offset in sorted(offsets.items())}}


def _offsets(position: Position) -> dict[int, int] | None:
    """Return the next offset of each partition; None if this is not a position."""
    found = position.get("partitions")
    try:
        offsets = {int(partition): int(offset) for partition, offset in found.items()} if found else {}
    except (AttributeError, TypeError, ValueError):
        return None
    return offsets if offsets and min(offsets) >= 0 and min(offsets.values()) >= 0 else None


def _properties(address: Address) -> dict[str, Any]:
    """Return the properties of librdkafka that the address gives, and those of the file that it names."""
    given = {option: value for option, value in address.options.items() if option not in (*OURS, CONFIG)}
    for option in given:
        if option in ONLY_IN_A_FILE:
            raise DataError(
                f"{address.name}: {option} cannot be part of an address. Put it into a file: {CONFIG}=FILE."
            )
    properties = _of_file(address) | given
    for option in properties:
        if option in FIXED or option in ("bootstrap.servers", "metadata.broker.list"):
            raise DataError(f"{address.name}: {plain(option)} cannot be changed: positions are kept in the model file.")
    properties["bootstrap.servers"] = address.hosts
    if address.user is not None:
        properties["sasl.username"] = address.user
    if address.password is not None:
        properties["sasl.password"] = address.password
    return properties


def _of_file(address: Address) -> dict[str, str]:
    path = address.options.get(CONFIG)
    if path is None:
        return {}
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "it is not text"
        raise DataError(f"{address.name}: {plain(path)} cannot be read: {reason}.") from None
    properties = {}
    for number, line in enumerate(lines, 1):
        option, equals, value = (part.strip() for part in line.partition("="))
        if not option or option.startswith("#"):
            continue
        if not equals:
            raise DataError(f"{plain(path)}:{number}: not a line such as sasl.username=me.")
        properties[option] = value
    return properties


def _listed(partitions: Sequence[int]) -> str:
    return f"partition{'s' if len(partitions) > 1 else ''} {', '.join(map(str, partitions))}"


def _text(error: Any) -> str:
    """Return what an error says, without which connection has met it, and when."""
    return _CONNECTION.sub("", str(error.str())).partition(" (after ")[0].rstrip(".")
