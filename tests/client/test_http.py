"""Answers are understood however their bytes arrive, and what is no answer is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarestream.client.http import AnswerParser, BadAnswerError, LostConnectionError, parse_address

ANSWERS = [
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX: a: b\r\n\r\nhello",
    b"HTTP/1.1 200\r\ncontent-length:  5 \r\n\r\nhello",
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nA: b\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n3\r\nhel\r\n002;x=y\r\nlo\r\n0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nA: b\r\nC: d\r\n\r\n",
]


@given(st.sampled_from(ANSWERS), st.lists(st.integers(1, 20), min_size=1))
def test_an_answer_may_come_in_any_pieces(text, sizes):
    parser = AnswerParser()
    begin = 0
    while begin < len(text):
        size = sizes[begin % len(sizes)]
        found = parser.feed(text[begin : begin + size])
        begin += size
        assert (found is not None) == (begin >= len(text))
    assert (found.status, found.body, found.keep) == (200, b"hello", True)


@given(st.sampled_from(ANSWERS), st.data())
def test_an_answer_that_is_cut_is_a_lost_connection(text, data):
    size = data.draw(st.integers(0, len(text) - 1))
    parser = AnswerParser()
    if size:
        parser.feed(text[:size])
    with pytest.raises(LostConnectionError) as caught:
        parser.end()
    # Answers in between, such as 100, are none.
    assert caught.value.begun or size == 0 or text[:size].endswith(b"\r\n\r\n")


@given(st.binary(max_size=300))
def test_any_bytes_are_an_answer_or_an_error(text):
    parser = AnswerParser()
    try:
        parser.feed(text)
        parser.end()
    except (BadAnswerError, LostConnectionError):
        pass


@pytest.mark.parametrize(
    "text",
    [
        b"220 smtp\r\n",
        b"HTTP/2 200 OK\r\n\r\n",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 2000 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 20_000,
    ],
    ids=lambda text: repr(text[:60]),
)
def test_what_is_no_answer_is_refused(text):
    with pytest.raises(BadAnswerError):
        AnswerParser().feed(text)


def test_a_connection_is_not_kept_when_the_answer_says_so_or_has_more_than_it_says():
    for text, keep in (
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", True),
        (b"HTTP/1.1 204 No Content\r\n\r\n", True),
        (b"HTTP/1.1 200 OK\r\nConnection: Close\r\nContent-Length: 0\r\n\r\n", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", False),
        (b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n", True),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabHTTP", False),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nHTTP", False),
    ):
        found = AnswerParser().feed(text)
        assert found is not None
        assert found.keep == keep, text


def test_an_answer_without_a_length_ends_with_its_connection():
    parser = AnswerParser()
    assert parser.feed(b"HTTP/1.1 200 OK\r\n\r\nab") is None
    assert parser.feed(b"cd") is None
    assert parser.end().body == b"abcd"


def test_addresses_have_their_parts():
    assert parse_address("http://localhost")[:4] == ("localhost", 80, "", False)
    assert parse_address("https://a.example:8443/models/one/")[:4] == ("a.example", 8443, "/models/one", True)
    assert parse_address("http://[::1]:8080")[:2] == ("::1", 8080)
    assert parse_address("http+unix:///run/rarestream/a.sock").socket == "/run/rarestream/a.sock"
