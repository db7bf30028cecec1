"""Streams of Redis, read from a real server."""

from __future__ import annotations

import builtins
import importlib
import json
import os
import shutil
import signal
import subprocess
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rarestream import DataError, MissingExtraError, _native, read
from rarestream.readers.live import retries
from rarestream.readers.live.addresses import open_broker
from rarestream.readers.live.lines import LINGER
from tests.readers.live.brokers import free_port, take, take_joined, until_note

pytest.importorskip("redis")
live = importlib.import_module("rarestream.readers.live.redis")

pytest_plugins = ["tests.readers.live.broker_fixtures"]

QUICK = settings(max_examples=25)


@pytest.fixture
def client(redis_server):
    found = redis_server.client()
    found.flushall()
    yield found
    found.close()


def test_the_fields_of_an_entry_are_the_columns_of_a_row(redis_server, client, opened):
    client.xadd("clicks", {"clicked": 1, "site": "a.com", "price": 3.5, "title": 'say "hi"\n\\'})
    client.xadd("clicks", {"clicked": 0, "zip": "007", "account": "1234567890123456789", "hash": "12e45"})
    rows, _ = take(opened(redis_server.address("clicks")), 2)
    assert [json.loads(row) for row in rows] == [
        {"clicked": 1, "site": "a.com", "price": 3.5, "title": 'say "hi"\n\\'},
        {"clicked": 0, "zip": "007", "account": "1234567890123456789", "hash": "12e45"},
    ]


@given(st.lists(st.lists(st.tuples(st.text(), st.text() | st.floats().map(str) | st.integers().map(str)), min_size=1)))
def test_fields_are_json_that_says_what_they_said(entries):
    text = _native.lines_of_entries([[b"1-1", [part.encode() for pair in entry for part in pair]] for entry in entries])
    rows = text.split(b"\n")[:-1]
    assert len(rows) == len(entries)
    for row, entry in zip(rows, entries, strict=True):
        found = json.loads(row, object_pairs_hook=list, parse_int=str, parse_float=str)
        assert found == [tuple(pair) for pair in entry]


@pytest.mark.parametrize("text", ["0", "-0", "7", "-12", "3.50", "0.001", "1e-05", "1.5E+16", "123456789012345678"])
def test_a_text_that_spells_a_number_is_a_number(text):
    assert _native.lines_of_entries([[b"1-1", [b"x", text.encode()]]]) == f'{{"x":{text}}}\n'.encode()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-",
        "007",
        "+7",
        ".5",
        "1.",
        "1e5",
        "1e+005",
        "12e45",
        "1e+",
        "0x1f",
        "nan",
        "Infinity",
        "1 ",
        "1_0",
        "1.2.3",
        "1e-5x",
    ],
)
def test_any_other_text_is_text(text):
    assert _native.lines_of_entries([[b"1-1", [b"x", text.encode()]]]) == f'{{"x":"{text}"}}\n'.encode()


@pytest.mark.parametrize("entries", [[[b"1-1", [b"x"]]], [[b"1-1", ["x", "y"]]], [[b"1-1"]], [3], [[b"1-1", None]]])
def test_what_is_not_an_entry_is_refused(entries):
    with pytest.raises(TypeError):
        _native.lines_of_entries(entries)


def test_a_flat_row_is_learned_as_the_same_row_of_a_csv_file(redis_server, client, opened, tmp_path):
    table = [
        {"clicked": str(i % 3 // 2), "site": f"s{i % 7}", "price": f"{i / 4:.2f}", "age": str(i % 50)}
        for i in range(200)
    ]
    for row in table:
        client.xadd("clicks", row)
    rows, _ = take(opened(redis_server.address("clicks")), 200)
    (tmp_path / "live.jsonl").write_bytes(b"".join(row + b"\n" for row in rows))
    (tmp_path / "file.csv").write_text(
        "\n".join([",".join(table[0]), *(",".join(row.values()) for row in table)]) + "\n"
    )
    live_block, block = (next(iter(read(str(tmp_path / name), label="clicked"))) for name in ("live.jsonl", "file.csv"))
    for field in ("indptr", "indices", "values", "labels"):
        assert (getattr(live_block, field) == getattr(block, field)).all()


def test_a_field_may_hold_the_whole_row(redis_server, client, opened):
    client.xadd("clicks", {"row": '{"a": 1}\n'})
    client.xadd("clicks", {"source": "web", "row": '{"a":\r\n 2}'})
    client.xadd("clicks", {"other": "x"})
    client.xadd("clicks", {"row": b"1 2:\xff"})
    source = opened(redis_server.address("clicks", "field=row"))
    assert take(source, 4)[0] == [b'{"a": 1}', b'{"a":  2}', b"", b"1 2:\xff"]
    assert source.notes == [f"{source.name}: entries without a text in the field row are ignored."]


def test_a_position_knows_the_field(redis_server, client, opened):
    client.xadd("clicks", {"row": "1 2:1", "other": "x"})
    _, lines = take_joined(opened(redis_server.address("clicks", "field=row")), 1)
    assert lines.position(0) == {"id": "0-0", "passed": 0, "field": "row"}
    assert take(opened(redis_server.address("clicks"), lines.position(0)), 1)[0] == [b"1 2:1"]
    assert take(opened(redis_server.address("clicks", "field=other"), lines.position(0)), 1)[0] == [b"x"]


@QUICK
@given(sizes=st.lists(st.integers(1, 40), min_size=1, max_size=8), count=st.integers(1, 30), data=st.data())
def test_restarted_after_any_row_exactly_the_others_come(redis_server, sizes, count, data):
    client = redis_server.client()
    client.delete("clicks")
    total = sum(sizes)
    number = 0
    for size in sizes:  # each a millisecond of its own, with several entries
        for _ in range(size):
            client.xadd("clicks", {"n": number}, id=f"{1000 + number // 7}-{number + 1}")
            number += 1
    address = redis_server.address("clicks")
    first = open_broker(address)
    first._count = count
    first.start({})
    rows, parts = take(first, total)
    first.close()
    assert [json.loads(row)["n"] for row in rows] == list(range(total))
    ahead = 0
    for lines in parts:
        here = lines.text.count(b"\n")
        cut = data.draw(st.integers(0, here))
        second = open_broker(address)
        second.start(json.loads(json.dumps(lines.position(cut))))
        left = total - ahead - cut
        found = take(second, left)[0] if left else []
        assert [json.loads(row)["n"] for row in found] == list(range(ahead + cut, total))
        assert second.take(0.0) is None
        second.close()
        ahead += here
    client.close()


def test_every_line_has_its_position_and_its_place(redis_server, client, opened):
    ids = [client.xadd("clicks", {"n": number}).decode() for number in range(50)]
    source = opened(redis_server.address("clicks"))
    _, lines = take_joined(source, 50)
    assert lines.position(0) == {"id": "0-0", "passed": 0}
    assert [lines.position(number + 1) for number in range(50)] == [
        {"id": one, "passed": number + 1} for number, one in enumerate(ids)
    ]
    assert [lines.place(number) for number in range(1, 51)] == [f"clicks@{one}" for one in ids]
    assert not lines.begins
    assert source.behind() == "0 entries behind"


def test_rows_come_as_they_are_added(redis_server, client, opened):
    source = opened(redis_server.address("clicks"))
    assert "there is no such stream; waiting" in until_note(source, "waiting")
    for number in range(5):
        client.xadd("clicks", {"n": number})
        assert take(source, 1)[0] == [b'{"n":%d}' % number]
    assert len(source.notes) == 1


def test_rows_that_come_together_are_delivered_together(redis_server, client, opened):
    source = opened(redis_server.address("clicks"))
    assert source.take(0.0) is None  # it waits for the first entry
    with client.pipeline(transaction=True) as adding:
        for number in range(200):
            adding.xadd("clicks", {"n": number})
        adding.execute()
    rows, parts = take(source, 200)
    assert len(parts) == (200 + live.FIRST_COUNT - 1) // live.FIRST_COUNT
    assert len(rows) == 200


def test_it_can_start_at_the_end(redis_server, client, opened):
    client.xadd("clicks", {"n": 0})
    source = opened(redis_server.address("clicks", "from=end"))
    assert source.take(0.0) is None
    client.xadd("clicks", {"n": 1})
    rows, lines = take_joined(source, 1)
    assert rows == [b'{"n":1}']
    assert lines.position(0)["passed"] == 1
    # A position goes before the option.
    assert take(opened(redis_server.address("clicks", "from=end"), lines.position(0)), 1)[0] == rows


def ten_entries(client):
    for number in range(10):
        client.xadd("clicks", {"n": number}, id=f"{number + 1}-0")


def numbers(rows):
    return [json.loads(row)["n"] for row in rows]


def test_what_was_deleted_before_the_first_start_is_no_loss(redis_server, client, opened):
    ten_entries(client)
    client.xdel("clicks", "6-0")
    client.xtrim("clicks", maxlen=6, approximate=False)
    source = opened(redis_server.address("clicks"))
    rows, lines = take_joined(source, 6)
    assert numbers(rows) == [3, 4, 6, 7, 8, 9]
    for cut in range(6):
        assert (
            numbers(take(opened(redis_server.address("clicks"), lines.position(cut)), 6 - cut)[0])
            == numbers(rows)[cut:]
        )
    client.xtrim("clicks", maxlen=3, approximate=False)  # 7, 8 and 9 are left
    assert numbers(take(opened(redis_server.address("clicks"), lines.position(3)), 3)[0]) == [7, 8, 9]
    with pytest.raises(DataError, match="1 entry after 5-0 was deleted before it was read"):
        opened(redis_server.address("clicks"), lines.position(2))


def test_entries_that_are_trimmed_before_they_are_read_are_an_error(redis_server, client, opened):
    ten_entries(client)
    _, lines = take_joined(opened(redis_server.address("clicks")), 10)
    client.xtrim("clicks", maxlen=7, approximate=False)
    assert len(take(opened(redis_server.address("clicks"), lines.position(3)), 7)[0]) == 7  # 3-0 was the last trimmed
    with pytest.raises(DataError) as error:
        opened(redis_server.address("clicks"), lines.position(1))
    name = redis_server.address("clicks")
    assert str(error.value) == (
        f"{name}: 2 entries after 1-0 were deleted before they were read. To go on with the next row that is there, pass "
        "lost=True. To keep entries until they are read, let the stream be longer (MAXLEN or MINID of XADD and XTRIM)."
    )
    client.xtrim("clicks", maxlen=0)
    with pytest.raises(DataError, match="9 entries after 1-0 were deleted before they were read"):
        opened(redis_server.address("clicks"), lines.position(1))


def test_entries_that_are_trimmed_while_it_reads_are_an_error(redis_server, client, opened, monkeypatch):
    monkeypatch.setattr(live, "LARGEST_COUNT", 4)
    ten_entries(client)
    source = opened(redis_server.address("clicks"))
    source._count = 4
    assert source.take(5.0).text.count(b"\n") == 4
    client.ping()  # the next four were asked for before this
    client.xtrim("clicks", maxlen=1, approximate=False)
    assert source.take(5.0).text.count(b"\n") == 4
    with pytest.raises(DataError, match="1 entry after 8-0 was deleted before it was read"):
        source.take(5.0)


def test_an_entry_that_is_deleted_in_the_middle_is_noticed(redis_server, client, opened):
    ten_entries(client)
    _, lines = take_joined(opened(redis_server.address("clicks")), 10)
    client.xdel("clicks", "1-0", "6-0")
    with pytest.raises(DataError, match="1 entry after 4-0 was deleted before it was read"):
        take(opened(redis_server.address("clicks"), lines.position(4)), 6)
    source = opened(redis_server.address("clicks"), lines.position(4), lost=True)
    assert numbers(take(source, 5)[0]) == [4, 6, 7, 8, 9]
    assert numbers(take(opened(redis_server.address("clicks"), lines.position(6)), 4)[0]) == [6, 7, 8, 9]


def test_lost_entries_can_be_accepted(redis_server, client, opened):
    ten_entries(client)
    _, lines = take_joined(opened(redis_server.address("clicks")), 10)
    client.xtrim("clicks", maxlen=3, approximate=False)
    source = opened(redis_server.address("clicks"), lines.position(2), lost=True)
    rows, lines = take_joined(source, 3)
    assert numbers(rows) == [7, 8, 9]
    assert source.notes == [
        f"{source.name}: 5 entries after 2-0 were deleted before they were read; going on with the next entry that is there."
    ]
    # Accepted once is accepted: the next start needs no option, and would notice another gap.
    assert lines.position(0) == {"id": "2-0", "passed": 7}
    assert len(take(opened(redis_server.address("clicks"), lines.position(0)), 3)[0]) == 3
    client.xtrim("clicks", maxlen=1, approximate=False)
    with pytest.raises(DataError, match="2 entries after 2-0 were deleted"):
        opened(redis_server.address("clicks"), lines.position(0))


def test_a_stream_that_was_deleted_is_an_error(redis_server, client, opened):
    ten_entries(client)
    _, lines = take_joined(opened(redis_server.address("clicks")), 10)
    address = redis_server.address("clicks")
    client.delete("clicks")
    with pytest.raises(DataError, match="the stream was deleted, after 5-0 was read. To go on with"):
        opened(address, lines.position(5))
    source = opened(address, lines.position(5), lost=True)
    client.xadd("clicks", {"n": 2}, id="1-0")
    assert take(source, 1)[0] == [b'{"n":2}']


@pytest.mark.parametrize(
    ("identifier", "how"), [("2-0", "it ends at 2-0, but 5-0 was read"), ("99-0", "5 entries up to 5-0 are missing")]
)
def test_a_stream_that_was_made_again_is_an_error(redis_server, client, opened, identifier, how):
    ten_entries(client)
    _, lines = take_joined(opened(redis_server.address("clicks")), 10)
    client.delete("clicks")
    client.xadd("clicks", {"n": 1}, id=identifier)
    with pytest.raises(
        DataError, match=f"the stream was made again, or the server has lost entries: {how}. To go on with"
    ):
        opened(redis_server.address("clicks"), lines.position(5))
    source = opened(redis_server.address("clicks"), lines.position(5), lost=True)
    client.xadd("clicks", {"n": 2}, id="100-0")
    found = [1, 2] if identifier == "99-0" else [2]  # what may have been read is not read again
    rows, lines = take_joined(source, len(found))
    assert numbers(rows) == found
    assert lines.position(len(rows)) == {"id": "100-0", "passed": 2}


def test_a_stream_that_was_made_again_with_more_entries_is_an_error(redis_server, client, opened):
    ten_entries(client)
    _, lines = take_joined(opened(redis_server.address("clicks")), 10)
    client.delete("clicks")
    for number in range(50):
        client.xadd("clicks", {"n": number})
    with pytest.raises(DataError, match="has lost entries: 5 entries up to 5-0 are missing"):
        opened(redis_server.address("clicks"), lines.position(5))
    source = opened(redis_server.address("clicks"), lines.position(5), lost=True)
    assert numbers(take(source, 50)[0]) == list(range(50))


def test_what_redis_before_7_does_not_say(redis_server):
    """Such a server does not count what was added: what can be known is known, the rest is said once."""

    def reply(first, last, *entries):
        about = [b"length", len(entries), b"last-generated-id", last, b"first-entry", first and [first, []]]
        return [about, [[b"clicks", [[one, [b"n", b"1"]] for one in entries]]] if entries else None]

    source = open_broker(redis_server.address("clicks"))
    source._id, source._fresh, source._asked_count = (5, 0), False, 100
    assert len(source._check(reply(b"3-0", b"9-0", b"9-0"))) == 1
    assert source.notes == []
    for first in (b"7-0", b"8-0"):
        assert len(source._check(reply(first, b"9-0", first, b"9-0"))) == 2
    assert source.notes == [
        f"{source.name}: the last entry that was read, 5-0, is gone. Redis before 7.0 cannot say whether others between "
        "it and 7-0 were deleted too."
    ]
    with pytest.raises(DataError, match="all entries after 5-0 were deleted before they were read"):
        source._check(reply(None, b"9-0"))
    with pytest.raises(DataError, match="it ends at 3-0, but 5-0 was read"):
        source._check(reply(b"3-0", b"3-0"))
    assert source.behind() == ""


def test_a_key_that_is_no_stream_is_an_error(redis_server, client, opened):
    client.set("clicks", "text")
    with pytest.raises(DataError, match="clicks is not a stream. Check its name and the number of the database"):
        opened(redis_server.address("clicks"))


def test_names_of_streams_may_have_any_characters(redis_server, client, opened):
    client.xadd("clicks/of?today#1", {"n": 1})
    source = opened(redis_server.address("clicks/of%3Ftoday%231"))
    assert source.name == redis_server.address("clicks/of%3Ftoday%231")
    _, lines = take_joined(source, 1)
    assert lines.place(1).startswith("clicks/of?today#1@")


def test_another_database_and_a_unix_socket(redis_server, client, opened):
    with redis_server.client(db=3) as other:
        other.xadd("clicks", {"n": 1})
    assert take(opened(f"redis://127.0.0.1:{redis_server.port}/3/clicks"), 1)[0] == [b'{"n":1}']
    source = opened(f"redis:///3/clicks?socket={redis_server.socket}&give_up=3")
    assert take(source, 1)[0] == [b'{"n":1}']
    assert source.name == f"redis:///3/clicks?socket={redis_server.socket}"


def test_large_entries_come_a_few_at_a_time(redis_server, client, opened):
    text = "x" * 300_000
    for number in range(60):
        client.xadd("clicks", {"n": number, "text": text})
    rows, parts = take(opened(redis_server.address("clicks")), 60)
    assert [json.loads(row)["n"] for row in rows] == list(range(60))
    assert max(len(lines.text) for lines in parts) <= 2 << 20


def test_stop_ends_a_take_that_waits(redis_server, client, opened):
    source = opened(redis_server.address("clicks"))
    found = []
    taking = threading.Thread(target=lambda: found.append(source.take(600.0)))
    taking.start()
    source.stop()
    taking.join(60)
    assert found == [None]
    assert source.take(600.0) is None


def test_stop_in_a_signal_handler_ends_a_take_of_its_own_thread(redis_server, client, opened):
    source = opened(redis_server.address("clicks"))
    before = signal.signal(signal.SIGALRM, lambda *_: source.stop())
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        assert source.take(600.0) is None
    finally:
        signal.signal(signal.SIGALRM, before)


def test_nothing_is_left_open(redis_server, client):
    def descriptors():
        return len(os.listdir("/proc/self/fd"))

    client.xadd("clicks", {"n": 1})
    threads, before = threading.active_count(), descriptors()
    source = open_broker(redis_server.address("clicks"))
    source.start({})
    take(source, 1)
    assert descriptors() == before + 1
    source.close()
    source.close()
    assert (threading.active_count(), descriptors()) == (threads, before)


# -- a server that is away


@pytest.fixture
def short_pauses(monkeypatch):
    monkeypatch.setattr(retries, "FIRST_PAUSE", 0.05)
    monkeypatch.setattr(retries, "LONGEST_PAUSE", 0.2)


def test_a_server_that_comes_back_is_read_on(new_redis, opened, short_pauses, tmp_path):
    saving = ("--appendonly", "yes", "--appendfsync", "always")
    server = new_redis(*saving)
    client = server.client()
    for number in range(3):
        client.xadd("clicks", {"n": number}, id=f"{number + 1}-0")
    source = opened(server.address("clicks"))
    rows, _ = take(source, 3)
    server.child.end()
    note = until_note(source, "no answer from")
    assert note.startswith(f"no answer from {source.name} (") and "); trying again in " in note
    server = new_redis(*saving, port=server.port)
    client = server.client()
    for number in range(3, 5):
        client.xadd("clicks", {"n": number}, id=f"{number + 1}-0")
    rows += take(source, 2)[0]
    assert [json.loads(row)["n"] for row in rows] == list(range(5))
    assert source.notes[-1] == f"{source.name} answers again."


def test_a_server_that_hangs_is_away(new_redis, opened, short_pauses, monkeypatch):
    monkeypatch.setattr(live, "ANSWER", 0.3)
    monkeypatch.setattr(live, "BLOCK", 0.3)
    server = new_redis()
    client = server.client()
    client.xadd("clicks", {"n": 0})
    source = opened(server.address("clicks"))
    take(source, 1)
    os.kill(server.child.pid, signal.SIGSTOP)
    assert "no answer in" in until_note(source, "no answer from")
    os.kill(server.child.pid, signal.SIGCONT)
    client.xadd("clicks", {"n": 1})
    assert take(source, 1)[0] == [b'{"n":1}']


def test_it_waits_for_a_server_that_starts_later(new_redis, opened, short_pauses):
    port = free_port()
    source = opened(f"redis://127.0.0.1:{port}/0/clicks")
    assert "refused" in until_note(source, "no answer from")
    server = new_redis(port=port)
    server.client().xadd("clicks", {"n": 0})
    assert take(source, 1)[0] == [b'{"n":0}']


def test_a_position_whose_entries_are_gone_is_an_error_also_when_the_server_comes_later(
    new_redis, opened, short_pauses
):
    port = free_port()
    source = opened(f"redis://127.0.0.1:{port}/0/clicks", {"id": "5-0"})
    until_note(source, "no answer from")
    new_redis(port=port).client()
    with pytest.raises(DataError, match="the stream was deleted, after 5-0 was read"):
        take(source, 1)


def test_it_gives_up_after_a_while(opened, short_pauses):
    source = opened(f"redis://127.0.0.1:{free_port()}/0/clicks?give_up=0.5")
    with pytest.raises(DataError) as error:
        take(source, 1)
    assert str(error.value).startswith(f"{source.name}: no answer for 0.5 seconds (")
    assert str(error.value).endswith("give_up=SECONDS in the address waits longer.")


def test_pauses_grow_up_to_a_limit(monkeypatch):
    clock = [1000.0]
    monkeypatch.setattr(retries.time, "monotonic", lambda: clock[0])
    notes: list[str] = []
    trying = retries.Retries("the broker", 120, notes)

    def ask_for_ever():
        while True:
            trying.failed("it is away.")
            clock[0] = trying._next

    with pytest.raises(DataError, match=r"the broker: no answer for 120 seconds \(it is away\)"):
        ask_for_ever()
    assert [note.rpartition(" in ")[2] for note in notes] == [
        "1 s.",
        "2 s.",
        "4 s.",
        "8 s.",
        "16 s.",
        "30 s.",
        "30 s.",
        "29 s.",
    ]
    assert notes[0] == "no answer from the broker (it is away); trying again in 1 s."


def test_stop_ends_a_pause(opened):
    source = opened(f"redis://127.0.0.1:{free_port()}/0/clicks")
    taking = threading.Thread(target=lambda: source.take(600.0))
    taking.start()
    source.stop()
    taking.join(60)
    assert not taking.is_alive()


# -- users and TLS


def test_a_password_is_never_shown(new_redis, opened, monkeypatch):
    server = new_redis("--requirepass", "open+sesame")
    server.client(password="open+sesame").xadd("clicks", {"n": 0})
    plain_address = server.address("clicks")
    address = plain_address.replace("redis://", "redis://:open+sesame@")
    source = opened(address + "?field=n")
    assert take(source, 1)[0] == [b"0"]
    assert (source.name, source.address) == (plain_address, plain_address + "?field=n")
    for wrong in (plain_address, address.replace("sesame", "barley"), address.replace("//:", "//ali:")):
        with pytest.raises(DataError, match="the server refuses this user") as error:
            opened(wrong)
        assert "open" not in str(error.value) and "REDISCLI_AUTH" in str(error.value)
    monkeypatch.setenv("REDISCLI_AUTH", "open+sesame")
    assert take(opened(plain_address), 1)[0] == [b'{"n":0}']


def test_a_user_who_may_not_read_is_refused_at_once(new_redis, opened):
    server = new_redis("--user", "ali", "on", ">cave", "-@all", "+ping", "+multi", "+exec")
    server.client()
    with pytest.raises(DataError, match="the server refuses this user: .*xinfo"):
        opened(server.address("clicks").replace("//", "//ali:cave@"))


@pytest.mark.skipif(shutil.which("openssl") is None, reason="certificates are made by openssl")
def test_tls(new_redis, opened, tmp_path):
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-keyout",
            key,
            "-out",
            cert,
            "-days",
            "2",
            *names,
        ],
        check=True,
        capture_output=True,
    )
    port = free_port()
    server = new_redis("--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-auth-clients", "no")
    server.client().xadd("clicks", {"n": 0})
    address = f"rediss://127.0.0.1:{port}/0/clicks"
    assert take(opened(f"{address}?ssl_ca_certs={cert}"), 1)[0] == [b'{"n":0}']
    with pytest.raises(DataError, match="cannot be read: .*certificate verify failed"):
        opened(address)


# -- addresses


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("redis://localhost/clicks", "the address of a stream is redis://HOST:PORT/DB/STREAM"),
        ("redis://localhost/0", "the address of a stream is redis://HOST:PORT/DB/STREAM"),
        ("redis:///0/clicks", "the address of a stream is"),
        ("redis://localhost/0/clicks?socket=/tmp/x", "the address of a stream is"),
        ("redis://localhost:x/0/clicks", "'localhost:x' is not HOST or HOST:PORT"),
        ("redis://localhost/0/clicks?form=end", "there is no option 'form'. Did you mean from?"),
        ("redis://localhost/0/clicks?from=now", "from must be start or end, got 'now'"),
        ("redis://localhost/0/clicks?give_up=soon", "give_up must be a number of seconds, 0 or more, got 'soon'"),
        ("redis://localhost/0/clicks?from=end&from=start", "the option 'from' is given twice"),
        ("redis://localhost/0/clicks#1", "'#' starts a part that addresses do not have. In a name, write it %23"),
        ("redis://[::1/0/clicks", "this address cannot be read"),
        ("redis://localhost/0/clicks?ssl_ca_certs=x", "there is no option 'ssl_ca_certs'"),
        (
            "nats://me:secret@localhost/clicks?password=secret",
            "nats://localhost/clicks: no live source has such an address",
        ),
    ],
)
def test_an_address_that_cannot_be_meant_is_refused(address, message):
    with pytest.raises(DataError) as error:
        open_broker(address)
    assert message in str(error.value)
    assert "secret" not in str(error.value)


@pytest.mark.parametrize(
    "position", [{"offset": 3}, {"id": "7"}, {"id": 7}, {"id": "x-y"}, {"id": "1-1", "passed": "x"}]
)
def test_a_position_of_something_else_is_refused(redis_server, position):
    source = open_broker(redis_server.address("clicks"))
    with pytest.raises(DataError, match="is not a position in a stream of Redis"):
        source.start(position)


def test_a_missing_package_is_one_line(monkeypatch):
    import sys

    real = builtins.__import__

    def missing(name, *rest):
        if name.partition(".")[0] in ("redis", "confluent_kafka"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", missing)
    for module in ("redis", "kafka"):
        monkeypatch.delitem(sys.modules, f"rarestream.readers.live.{module}", raising=False)
    with pytest.raises(MissingExtraError, match=r'^Streams of Redis need .*: pip install "rarestream\[redis\]"$'):
        open_broker("redis://localhost/0/clicks")
    with pytest.raises(MissingExtraError, match=r'^Kafka needs .*: pip install "rarestream\[kafka\]"$'):
        open_broker("kafka://localhost/clicks")


def test_rows_wait_for_others_no_longer_than_promised():
    assert LINGER <= 0.1


def test_the_first_lines_of_all_tell_where_it_starts(redis_server, opened):
    client = redis_server.client()
    client.flushall()
    client.xadd("clicks", {"a": "1"}, id="5-1")
    for options, start in (("", "0-0"), ("from=end", "5-1")):
        source = opened(redis_server.address("clicks", options), begins=True)
        lines = source.take(5.0)
        assert lines.text == b"" and lines.position(0)["id"] == start
    client.xadd("clicks", {"a": "2"}, id="6-1")
    again = opened(redis_server.address("clicks", "from=end"), lines.position(0), begins=True)
    assert take(again, 1)[0] == [b'{"a":2}']
