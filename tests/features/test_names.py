"""The table of names: first names of slots, collisions counted exactly, bounded memory."""

from __future__ import annotations

import threading
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarestream import _native
from rarestream._native import NameTable, NewNames

WORDS = [f"w{i}".encode() for i in range(3000)]


def new_names(words, space: bytes = b"site") -> NewNames:
    names = NewNames()
    for word in words:
        names.add(space, word)
    return names


def slots_below(bits: int) -> np.ndarray:
    return np.arange(1 << bits, dtype=np.int32)


def contents(table: NameTable):
    return [array.tolist() for array in table.to_arrays(slots_below(table.bits), True)]


def textbook(words, bits: int):
    """First name of each slot, and the number of other names in its slot."""
    first: dict[int, str] = {}
    hashes: dict[int, set[int]] = {}
    for word in words:
        full = _native.feature_hash(b"site", word)
        slot = full % (1 << bits)
        first.setdefault(slot, f"site^{word.decode()}")
        hashes.setdefault(slot, set()).add(full)
    return first, sum(len(found) - 1 for found in hashes.values())


@pytest.mark.parametrize(
    ("text", "seed", "expected"),
    [  # of the reference implementation
        (b"", 0, 0),
        (b"", 1, 0x514E28B7),
        (b"a", 0, 0x3C2569B2),
        (b"hello", 0, 0x248BFA47),
        (b"hello, world", 0, 0x149BBB7F),
        (b"The quick brown fox jumps over the lazy dog", 0x9747B28C, 0x2FA826CD),
    ],
)
def test_the_hash_is_murmur3(text, seed, expected):
    assert _native.murmur3(text, seed) == expected


def test_the_hash_of_a_feature_is_that_of_its_name_seeded_with_that_of_its_namespace():
    assert _native.feature_hash(b"site", b"a.com") == _native.murmur3(b"a.com", _native.murmur3(b"site", 0))
    assert new_names([b"a.com"]).to_list() == [(_native.feature_hash(b"site", b"a.com"), "site^a.com")]


@given(st.lists(st.sampled_from(WORDS), max_size=200), st.integers(1, 12), st.integers(0, 200))
def test_the_first_name_of_a_slot_stays_and_others_are_counted(words, bits, cut):
    table = NameTable(bits)
    table.add(new_names(words[:cut]))
    table.add(new_names(words[cut:]))
    first, collisions = textbook(words, bits)
    assert {slot: name for slot, name in enumerate(table.names(slots_below(bits))) if name} == first
    assert all(table.name(slot) == name for slot, name in first.items())
    assert table.collisions == collisions
    assert len(table) == len(first) + collisions
    assert not table.full
    assert table.lost == 0


@given(
    st.lists(st.sampled_from(WORDS), max_size=100), st.lists(st.sampled_from(WORDS), max_size=100), st.integers(1, 8)
)
def test_merging_is_adding_the_names_of_the_other_after_ones_own(mine, theirs, bits):
    table, other, whole = NameTable(bits), NameTable(bits), NameTable(bits)
    table.add(new_names(mine))
    at = 0
    for some in (theirs[:30], theirs[30:]):
        other.add(new_names(some))
        at = table.merge(other, at)
        assert at == len(other)
    whole.add(new_names(mine + theirs))
    assert contents(table)[0] == contents(whole)[0]
    assert table.names(slots_below(bits)) == whole.names(slots_below(bits))
    assert table.collisions == whole.collisions
    assert table.merge(table, 0) == len(table)


def test_tables_of_different_bits_are_not_merged():
    with pytest.raises(ValueError, match="different numbers of bits"):
        NameTable(5).merge(NameTable(6), 0)


@given(st.lists(st.sampled_from(WORDS), max_size=100), st.integers(1, 12))
def test_arrays_give_the_same_table_again(words, bits):
    table, again = NameTable(bits), NameTable(bits)
    table.add(new_names(words))
    again.load(*table.to_arrays(slots_below(bits), True))
    assert contents(again) == contents(table)
    assert (len(again), again.bytes, again.collisions) == (len(table), table.bytes, table.collisions)
    again.add(new_names(words))
    assert contents(again) == contents(table)


def test_a_copy_has_the_same_names_and_is_another_table():
    table = NameTable(8)
    table.add(new_names(WORDS[:50]))
    copy = table.copy()
    assert contents(copy) == contents(table)
    table.add(new_names(WORDS[50:90]))
    assert len(copy) < len(table)


@pytest.mark.parametrize("limit", [0, 1000, 5000, 20000])
def test_beyond_the_limit_only_known_names_are_kept_and_the_others_are_counted(limit):
    table = NameTable(20, limit)
    table.add(new_names(WORDS))
    table.add(new_names(WORDS))
    first, _ = textbook(WORDS, 20)
    assert table.bytes <= max(limit, 2 * 64 * 4)
    assert table.full
    kept = [name for name in table.names(np.array(sorted(first), np.int32)) if name]
    assert kept == [first[slot] for slot in sorted(first) if table.name(slot)]
    assert table.lost == len(first) - len(kept) > 0
    other = NameTable(20)
    other.merge(table, 0)
    assert other.lost == table.lost  # it does not know their names either


def test_where_names_are_cut_does_not_change_what_finds_room():
    whole, parts = NameTable(20, 10_000), NameTable(20, 10_000)
    whole.add(new_names(WORDS))
    for start in range(0, len(WORDS), 7):
        parts.add(new_names(WORDS[start : start + 7]))
    assert contents(whole) == contents(parts)
    assert whole.lost == parts.lost


def test_names_that_crowd_few_slots_leave_room_for_names():
    table = NameTable(4, 20_000)
    table.add(new_names(WORDS))
    assert None not in table.names(slots_below(4))
    assert 0 < table.collisions < len(WORDS) - 16


def test_long_names_are_cut_and_bytes_that_are_no_text_replaced():
    table = NameTable(10)
    names = NewNames()
    slots = [
        names.add(*feature) % 1024 for feature in [(b"s", b"x" * 300), (b"s", b"\xff\xfe"), (b"s", "é".encode() * 200)]
    ]
    table.add(names)
    assert table.name(slots[0]) == "s^" + "x" * 255
    assert table.name(slots[1]) == "s^\ufffd\ufffd"
    assert table.name(slots[2]) == "s^" + "é" * 127


def test_unknown_and_impossible_slots_have_no_name():
    table = NameTable(4)
    assert table.names(np.array([0, -1, 15, 16, 2**31 - 1], np.int32)) == [None] * 5


def arrays(**changes):
    table = NameTable(6)
    table.add(new_names(WORDS[:100]))
    slots, hashes, ends, text = table.to_arrays(slots_below(6), True)
    return {"slots": slots, "hashes": hashes, "ends": ends, "text": text, **changes}


HOSTILE = {
    "slot of another hash": lambda a: a["slots"].__setitem__(3, 60),
    "descending slots": lambda a: a.update(slots=a["slots"][::-1].copy(), hashes=a["hashes"][::-1].copy()),
    "negative slot": lambda a: a["slots"].__setitem__(0, -1),
    "hash twice": lambda a: a["hashes"].__setitem__(2, a["hashes"][1]),
    "descending ends": lambda a: a["ends"].__setitem__(0, 10**6),
    "negative end": lambda a: a["ends"].__setitem__(0, -5),
    "end beyond the text": lambda a: a["ends"].__setitem__(-1, 2**62),
    "text without entry": lambda a: a.update(text=np.append(a["text"], a["text"])),
    "text missing": lambda a: a.update(text=a["text"][:-1].copy()),
    "fewer hashes": lambda a: a.update(hashes=a["hashes"][:-1].copy()),
    "fewer ends": lambda a: a.update(ends=a["ends"][:-1].copy()),
    "no names": lambda a: a.update(ends=np.zeros_like(a["ends"]), text=np.zeros(0, np.uint8)),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_arrays_that_no_table_gives_are_refused(what):
    given = arrays()
    NameTable(6).load(**given)
    HOSTILE[what](given)
    with pytest.raises(ValueError, match=r"^names: "):
        NameTable(6).load(**given)


def test_more_names_than_the_limit_are_refused():
    table = NameTable(20)
    table.add(new_names(WORDS[:100]))
    with pytest.raises(ValueError, match="they need more than the memory"):
        NameTable(20, 1000).load(*table.to_arrays(slots_below(20), True))


@pytest.mark.parametrize("bits", [0, -1, 31])
def test_bits_out_of_range_are_refused(bits):
    with pytest.raises(ValueError, match="bits must be between 1 and 30"):
        NameTable(bits)


def test_threads_may_add_merge_and_look_up_together():
    table, other = NameTable(10), NameTable(10)
    other.add(new_names(WORDS[:500]))
    parts = [new_names(WORDS[start : start + 100]) for start in range(0, 3000, 100)]
    slots = slots_below(10)

    def work(first: int) -> None:
        for part in parts[first::3]:
            table.add(part)
            table.names(slots)
            other.merge(table, 0)
            table.merge(other, 0)

    threads = [threading.Thread(target=work, args=(first,)) for first in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    first, collisions = textbook(WORDS, 10)
    assert {slot for slot, name in enumerate(table.names(slots)) if name} == set(first)
    assert table.collisions == collisions


# -- changes, as a cache keeps them


@given(
    words=st.lists(st.sampled_from(WORDS), max_size=200),
    cuts=st.lists(st.integers(0, 200), max_size=4),
    bits=st.integers(3, 14),
    limit=st.sampled_from([1 << 20, 3000, 1200]),
)
def test_a_replay_of_the_changes_gives_the_same_table(words, cuts, bits, limit):
    truth, recorded, replayed = NameTable(bits, limit), NameTable(bits, limit, recording=True), NameTable(bits, limit)
    starts = [0, *sorted(cuts), len(words)]
    for start, stop in pairwise(starts):
        names = new_names(words[start:stop])
        truth.add(names)
        recorded.add(names)
        replayed.replay(*recorded.take_changes())
        if stop % 2:  # whether somebody asks between or not
            assert len(replayed) == len(truth)
    for table in (recorded, replayed):
        assert contents(table) == contents(truth)
        counts = [table.collisions, table.full, table.lost, table.lost_slots().tolist(), table.bytes, len(table)]
        assert counts == [
            truth.collisions,
            truth.full,
            truth.lost,
            truth.lost_slots().tolist(),
            truth.bytes,
            len(truth),
        ]


@given(before=st.lists(st.sampled_from(WORDS), max_size=60), words=st.lists(st.sampled_from(WORDS), max_size=60))
def test_a_replay_adds_to_the_names_that_are_there(before, words):
    truth, recorded, replayed = NameTable(5), NameTable(5, recording=True), NameTable(5)
    recorded.add(new_names(words))
    for table in (truth, replayed):
        table.add(new_names(before))
    truth.add(new_names(words))
    replayed.replay(*recorded.take_changes())
    assert contents(replayed) == contents(truth)
    assert replayed.collisions == truth.collisions


@pytest.mark.parametrize("ask", ["copy", "merge", "add", "names"])
def test_changes_that_wait_are_made_before_anything_else(ask):
    recorded, table, other = NameTable(10, recording=True), NameTable(10), NameTable(10)
    recorded.add(new_names(WORDS[:5]))
    table.replay(*recorded.take_changes())
    if ask == "add":
        table.add(new_names(WORDS[5:9]))
        assert len(table) == 9
    elif ask == "merge":
        assert other.merge(table, 0) == 5 and len(other) == 5
    else:
        table = table.copy() if ask == "copy" else table
        assert table.name(_native.feature_hash(b"site", WORDS[0]) % 1024) == "site^w0"


def test_changes_that_wait_take_no_more_memory_than_names():
    recorded, table = NameTable(12, recording=True), NameTable(12, 20_000)
    recorded.add(new_names(WORDS[:1000]))
    changes = recorded.take_changes()
    for _ in range(50):
        table.replay(*changes)
    assert table.full and table.bytes <= 20_000


def test_only_a_table_that_records_knows_its_changes():
    with pytest.raises(ValueError, match="does not record its changes"):
        NameTable(5).take_changes()


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (([1], [3], b"abcd", []), "lengths are not those of the text"),
        (([1], [3, 1], b"abcd", []), "lengths are not those of the text"),
        (([1], [600], bytes(600), []), "a name is too long"),
        (([], [], b"", [1 << 10]), "no such slot"),
        (([], [], b"", [-1]), "no such slot"),
    ],
)
def test_changes_that_no_table_gives_are_refused(changes, says):
    hashes, lengths, text, lost = changes
    table = NameTable(10)
    arrays = (np.array(hashes, np.int32), np.array(lengths, np.uint16), np.frombuffer(text, np.uint8))
    with pytest.raises(ValueError, match=says):
        table.replay(*arrays, np.array(lost, np.int32))
    assert len(table) == 0 and not table.full
