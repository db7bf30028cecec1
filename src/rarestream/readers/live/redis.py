"""Streams of Redis: an entry is a row, the id of the last one is the position.

No consumer groups: they would keep a position in Redis, which cannot be saved in one step with the model. The position
is the model's own.

Entries may be deleted before they are read: XADD with MAXLEN, XTRIM, XDEL, DEL. Redis tells how many entries were ever
added to a stream (`entries-added`, since 7.0). The position has that number too: of these, how many it has passed. So

    lost = entries-added - passed - entries that are there after the position

and less than nothing lost is another stream of the same name, or a server that has forgotten what was read. Each reply
is that of a transaction, the numbers and the next entries at one moment. While there are none, an XREAD waits for one;
what that one returns is not used.
"""

from __future__ import annotations

import os
import re
import time
from typing import Any
from urllib.parse import urlsplit

from rarestream import _native
from rarestream.errors import DataError, MissingExtraError, plain
from rarestream.readers.live.addresses import FROM, GIVE_UP, OURS, PATIENCE, Address, accepting_loss, parse_address
from rarestream.readers.live.lines import LINGER, MOST_TEXT, Lines, LineSource, NoLines, Position
from rarestream.readers.live.messages import Once, text_of
from rarestream.readers.live.retries import SLICE, Retries, wait

try:
    import redis
    from redis import exceptions
    from redis.backoff import NoBackoff
    from redis.retry import Retry
except ImportError:
    raise MissingExtraError('Streams of Redis need the package redis: pip install "rarestream[redis]"') from None

FIELD, SOCKET = "field", "socket"
TLS_OPTIONS = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile", "ssl_cert_reqs")
PASSWORD_VARIABLE = "REDISCLI_AUTH"  # of the environment, as for redis-cli

START = (0, 0)
FIRST_COUNT, LARGEST_COUNT = 100, 10_000  # entries that are asked for at once
BLOCK = 5.0  # seconds that the server waits for an entry
ANSWER = 10.0  # seconds that an answer may take beyond that
READ_SIZE = 1 << 18  # bytes

DENIALS = (exceptions.AuthenticationError, exceptions.AuthorizationError, exceptions.NoPermissionError)
LATER = (exceptions.ConnectionError, exceptions.ClusterDownError)  # a server that starts, or has lost its master

Id = tuple[int, int]

_ID = re.compile(r"(\d{1,20})-(\d{1,20})")


class RedisSource(LineSource):
    """A stream of Redis, or of a server that speaks its protocol.

    Parameters
    ----------
    address : str
        redis://[USER:PASSWORD@]HOST[:PORT]/DB/STREAM, or rediss:// for TLS, with the options

        - field=NAME: the field that holds the row in the format of the source; by default that of the position, or
          else the fields of an entry are the columns of a row;
        - from=start or from=end: where a model without a position starts; default: start;
        - give_up=SECONDS without an answer before it is an error; default: 300;
        - socket=PATH of a Unix socket, instead of a host;
        - ssl_ca_certs, ssl_certfile, ssl_keyfile, ssl_cert_reqs: as in redis-py.

        Without a password, that of the variable REDISCLI_AUTH of the environment is used.
    lost : bool, default False
        Whether to go on where entries were deleted before they were read.

    Raises
    ------
    DataError
        If the address lacks a part, or has an option that does not exist.
    """

    kind = "redis"
    default_format = "jsonl"

    def __init__(self, address: str, lost: bool = False) -> None:
        super().__init__()
        found = parse_address(address)
        tls = found.scheme == "rediss"
        found.refuse_unknown((FIELD, SOCKET, *OURS, *(TLS_OPTIONS if tls else ())))
        database, _, self.stream = found.path.partition("/")
        if not self.stream or not database.isdecimal() or bool(found.hosts) == (SOCKET in found.options):
            raise DataError(
                f"{found.name}: the address of a stream is {found.scheme}://HOST:PORT/DB/STREAM, such as "
                f"{found.scheme}://localhost:6379/0/clicks."
            )
        self.name = found.name + (f"?{SOCKET}={plain(found.options[SOCKET])}" if SOCKET in found.options else "")
        self.address = found.without_secrets
        self._field = found.options.get(FIELD)
        self._from_end = found.choice(FROM, ("start", "end")) == "end"
        self._skip_lost = lost
        self._connection = _connection(found, int(database), tls)
        self._retries = Retries(self.name, found.seconds(GIVE_UP, PATIENCE), self.notes)
        self._once = Once(self.notes)
        self._stopped = False

        self._id: Id | None = None  # of the last entry that was read; None: not known before the server has answered
        self._passed: int | None = None  # of all entries ever added, those that are read or were gone; None: not known
        self._begins = True  # whether nobody knows yet where the first start is
        self._fresh = True  # whether nothing was read yet, by this program or one before it
        self._asked: float | None = None  # when the request was sent that has no answer yet
        self._asked_count = 0  # entries that it asks for; 0: it waits until there are some
        self._count = FIRST_COUNT  # entries to ask for next
        self._waiting: int | None = None

    # -- the interface

    def start(self, position: Position) -> None:
        if position:
            self._id, self._passed = _parsed(position.get("id")), position.get("passed")
            self._field = self._field or position.get(FIELD)
            if self._id is None or not isinstance(self._passed, int | None) or not isinstance(self._field, str | None):
                raise DataError(f"{self.name}: {position!r} is not a position in a stream of Redis.")
            self._fresh, self._begins = self._id == START, False
        try:
            self._ask_entries(1)
            reply = self._answer(time.monotonic() + ANSWER)
            if reply is not None and (entries := self._check(reply)):
                self._adapt(len(entries), len(self._text(entries)))
        except (redis.RedisError, OSError) as error:
            self._away(error)  # `take` tries again

    def take(self, patience: float) -> Lines | None:
        until = time.monotonic() + patience
        while self._retries.due(until, self._is_stopped) and not self._stopped:
            try:
                lines = self._next(until)
            except (redis.RedisError, OSError) as error:
                self._away(error)
                continue
            if lines is not None or time.monotonic() >= until:
                return lines
        return None

    def behind(self) -> str:
        waiting = self._waiting
        return "" if waiting is None else f"{_counted(waiting)} behind"

    def stop(self) -> None:
        self._stopped = True

    def close(self) -> None:
        self._disconnect()

    # -- requests and answers

    def _is_stopped(self) -> bool:
        return self._stopped

    def _next(self, until: float) -> Lines | None:
        """Do the next step: return the next lines, or None if it has led to none yet."""
        if self._begins and self._id is not None:  # to be saved: what comes from here on is not lost
            self._begins = False
            return NoLines(self.position(_spelled(self._id), self._passed))
        if self._asked is None:
            self._ask_entries(self._count)
        reply = self._answer(until)
        if reply is None:
            return None
        if not self._asked_count:
            if reply:  # some entries are there: more may come in a moment
                wait(min(time.monotonic() + LINGER, until), self._is_stopped)
            self._ask_entries(self._count)
            return None
        entries = self._check(reply)
        self._retries.answered()
        if not entries:
            self._wait_for_entry()
            return None
        before, passed = self._id or START, self._passed
        self._move(entries)
        # The server prepares its next answer while these entries become lines and rows.
        if len(entries) == self._asked_count:
            self._ask_entries(self._count)
        else:
            self._wait_for_entry()
        text = self._text(entries)
        self._adapt(len(entries), len(text))
        return EntryLines(self, before, passed, entries, text)

    def position(self, last: str, passed: int | None) -> Position:
        """Return the position after an entry, up to which so many were passed."""
        position: Position = {"id": last}
        if passed is not None:
            position["passed"] = passed
        # With it, who names the stream only, or starts the model without naming it, gets the same rows.
        if self._field is not None:
            position[FIELD] = self._field
        return position

    def _ask_entries(self, count: int) -> None:
        key, last = self.stream, _spelled(self._id or START)
        self._send(
            ("MULTI",),
            ("XINFO", "STREAM", key),
            ("XREAD", "COUNT", count, "STREAMS", key, last),
            ("EXEC",),
            count=count,
        )

    def _wait_for_entry(self) -> None:
        last = _spelled(self._id or START)
        self._send(("XREAD", "COUNT", 1, "BLOCK", int(1000 * BLOCK), "STREAMS", self.stream, last), count=0)

    def _send(self, *commands: tuple[object, ...], count: int) -> None:
        self._connection.send_packed_command(self._connection.pack_commands(commands))
        self._asked, self._asked_count = time.monotonic(), count

    def _answer(self, until: float) -> Any:
        """Return the answer to what was asked; None if it has not come until then."""
        assert self._asked is not None
        latest = self._asked + ANSWER + (0 if self._asked_count else BLOCK)
        while not self._connection.can_read(max(0.0, min(SLICE, until - time.monotonic()))):
            if time.monotonic() > latest:
                raise redis.TimeoutError(f"no answer in {ANSWER:.0f} seconds")
            if self._stopped or time.monotonic() >= until:
                return None
        for _ in range(3 if self._asked_count else 0):  # MULTI is answered by OK, the two commands by QUEUED
            self._connection.read_response()
        reply = self._connection.read_response()
        self._asked = None
        return [] if reply is None else reply

    def _away(self, error: Exception) -> None:
        """Take note that the server does not answer; raise a DataError if there is no use in asking again."""
        self._disconnect()
        if isinstance(error, DENIALS):
            raise DataError(
                f"{self.name}: the server refuses this user: {plain(error)}. The user and the password are part of the "
                f"address, USER:PASSWORD@HOST; the password may be in the variable {PASSWORD_VARIABLE} instead."
            ) from None
        if "CERTIFICATE_VERIFY_FAILED" in str(error) or (
            isinstance(error, redis.ResponseError) and not isinstance(error, LATER)
        ):
            raise DataError(f"{self.name}: the stream cannot be read: {plain(error)}.") from None
        self._retries.failed(error)

    def _disconnect(self) -> None:
        self._asked = None
        self._connection.disconnect()

    # -- what the answers say

    def _check(self, reply: list[Any]) -> list[Any]:
        """Return the entries of a reply, after a check that none before them is lost."""
        about, read = reply
        for found in reply:
            if isinstance(found, Exception):
                self._no_stream(found)
                return []
        info = dict(zip(about[::2], about[1::2], strict=True))
        last, first = _parsed(info[b"last-generated-id"]) or START, info[b"first-entry"]
        added, length = info.get(b"entries-added"), info[b"length"]
        entries: list[Any] = read[0][1] if read else []
        if self._id is None:  # the first start of all: what is gone is no loss
            self._id = last if self._from_end else START
            self._passed = None if added is None else added - (0 if self._from_end else length)
            if self._from_end:
                return []
        if last < self._id:
            self._forgotten(f"it ends at {_spelled(last)}, but {_spelled(self._id)} was read")
            self._id, self._passed = last, added
            return []
        there: int | None = None  # entries after the position
        start = _parsed(first[0]) if first else None
        if len(entries) < self._asked_count:
            there = len(entries)
        elif start is not None and start > self._id:
            there = length
        if added is None:
            self._check_before_7(last, start)
        elif there is not None:
            if self._passed is None:
                self._check_before_7(last, start)
                self._passed = added - there
            lost = added - self._passed - there
            if lost < 0:
                self._forgotten(f"{_counted(-lost)} up to {_spelled(self._id)} {'is' if lost == -1 else 'are'} missing")
            if lost > 0:
                they = ("it", "was") if lost == 1 else ("they", "were")
                self._lost(
                    f"{_counted(lost)} after {_spelled(self._id)} {they[-1]} deleted before {' '.join(they)} read"
                )
            self._passed += lost
        self._waiting = None if added is None or self._passed is None else added - self._passed
        return entries

    def _check_before_7(self, last: Id, start: Id | None) -> None:
        """Check as well as it can be done without the number of entries that were added; `start` is the first one."""
        assert self._id is not None
        if self._fresh:
            return
        if start is None and last > self._id:
            self._lost(f"all entries after {_spelled(self._id)} were deleted before they were read")
            self._id = last
        elif start is not None and start > self._id:
            self._once.say(
                f"{self.name}: the last entry that was read, {_spelled(self._id)}, is gone. Redis before 7.0 cannot "
                f"say whether others between it and {_spelled(start)} were deleted too.",
                "deleted",
            )

    def _no_stream(self, error: Exception) -> None:
        """Wait for a stream that is not there yet; raise a DataError if it was there."""
        if "WRONGTYPE" in str(error) or "wrong kind of value" in str(error):
            raise DataError(
                f"{self.name}: {plain(self.stream)} is not a stream. Check its name and the number of the database."
            )
        if "no such key" not in str(error):
            raise error
        if not self._fresh and not self._skip_lost:
            raise DataError(
                f"{self.name}: the stream was deleted, after {_spelled(self._id or START)} was read. {accepting_loss()}"
            )
        self._once.say(f"{self.name}: there is no such stream; waiting for its first entry.")
        # All that comes is new, whatever its id is.
        self._id, self._passed, self._fresh, self._waiting = START, 0, True, 0

    def _forgotten(self, how: str) -> None:
        self._lost(f"the stream was made again, or the server has lost entries: {how}")

    def _lost(self, what: str) -> None:
        """Raise a DataError, or go on with the entries that are there if the user has said so."""
        if not self._skip_lost:
            raise DataError(
                f"{self.name}: {what}. {accepting_loss()} To keep entries until they are read, let the stream be "
                "longer (MAXLEN or MINID of XADD and XTRIM)."
            )
        self.notes.append(f"{self.name}: {what}; going on with the next entry that is there.")

    def _move(self, entries: list[Any]) -> None:
        """Go on behind entries."""
        self._id, self._fresh = _parsed(entries[-1][0]), False
        if self._passed is not None and self._waiting is not None:
            self._passed += len(entries)
            self._waiting -= len(entries)

    def _adapt(self, entries: int, text: int) -> None:
        """Decide how many entries to ask for, by the bytes of those that came."""
        self._count = int(max(1, min(MOST_TEXT * entries / text, LARGEST_COUNT, 4 * self._count)))

    def _text(self, entries: list[Any]) -> bytes:
        """Return the entries as lines, one each."""
        if self._field is None:
            return _native.lines_of_entries(entries)
        field = self._field.encode()
        rows = [texts[1] if texts[0] == field else _text_of_field(texts, field) for _, texts in entries]
        if not all(rows):
            self._once.say(f"{self.name}: entries without a text in the field {plain(self._field)} are ignored.")
        return text_of(rows)


class EntryLines(Lines):
    """Entries of a stream, a line each."""

    def __init__(self, source: RedisSource, before: Id, passed: int | None, entries: list[Any], text: bytes) -> None:
        self.text = text
        self._source = source
        self._before = before
        self._passed = passed
        self._ids = [entry[0] for entry in entries]

    def position(self, lines: int) -> Position:
        last = _spelled(self._before) if lines == 0 else self._ids[lines - 1].decode()
        return self._source.position(last, None if self._passed is None else self._passed + lines)

    def place(self, line: int) -> str:
        return plain(f"{self._source.stream}@{self._ids[line - 1].decode()}")


def _text_of_field(texts: list[bytes], field: bytes) -> bytes:
    return dict(zip(texts[::2], texts[1::2], strict=True)).get(field, b"")


def _counted(entries: int) -> str:
    return f"{entries:,} {'entry' if entries == 1 else 'entries'}"


def _spelled(name: Id) -> str:
    return f"{name[0]}-{name[1]}"


def _parsed(name: object) -> Id | None:
    """Return the two numbers of an id; None if it is none."""
    found = _ID.fullmatch(name.decode() if isinstance(name, bytes) else str(name))
    return (int(found[1]), int(found[2])) if found else None


def _connection(address: Address, database: int, tls: bool) -> Any:
    """Return a connection that is not open yet. It reports what fails, and tries nothing again: `take` does."""
    options: dict[str, Any] = {option: address.options[option] for option in TLS_OPTIONS if option in address.options}
    options |= {
        "db": database,
        "username": address.user,
        "password": address.password or os.environ.get(PASSWORD_VARIABLE),
        "protocol": 2,  # entries come as lists, not as maps
        "socket_timeout": ANSWER,
        "socket_connect_timeout": ANSWER,
        "socket_read_size": READ_SIZE,
        "retry": Retry(NoBackoff(), 0),
    }
    if SOCKET in address.options:
        unix: Any = redis.UnixDomainSocketConnection
        return unix(path=address.options[SOCKET], **options)
    try:
        parts = urlsplit(f"//{address.hosts}")
        host, port = parts.hostname or "", parts.port or 6379
    except ValueError:
        raise DataError(f"{address.name}: {plain(address.hosts)!r} is not HOST or HOST:PORT.") from None
    kind = redis.SSLConnection if tls else redis.Connection
    return kind(host=host, port=port, **options)
