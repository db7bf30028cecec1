"""Addresses of brokers, such as kafka://host:9092/clicks?from=end, and the sources that they name."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib import import_module
from typing import NamedTuple
from urllib.parse import quote, unquote, urlencode, urlsplit

from rarestream.errors import DataError, advice, nearest, plain
from rarestream.readers.live.lines import LineSource

SCHEMES = {
    "kafka": ("kafka", "KafkaSource"),
    "redis": ("redis", "RedisSource"),
    "rediss": ("redis", "RedisSource"),
}
EXAMPLES = "kafka://HOST:PORT/TOPIC, redis://HOST:PORT/DB/STREAM, rediss://HOST:PORT/DB/STREAM"

FROM, GIVE_UP = "from", "give_up"  # options of all brokers
OURS = (FROM, GIVE_UP)
PATIENCE = 300.0  # seconds without an answer after which a source gives up, unless `give_up` says otherwise

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_SECRET = re.compile(r"password|passphrase|secret|token|pem$|oauthbearer", re.IGNORECASE)


def is_address(name: object) -> bool:
    """Return whether a name is an address with a scheme, such as kafka://host/topic, and no path."""
    return isinstance(name, str) and _SCHEME.match(name) is not None


def open_broker(address: str, lost: bool = False) -> LineSource:
    """Return the source that an address names; it is not connected yet.

    Parameters
    ----------
    address : str
        Such as kafka://host:9092/clicks.
    lost : bool, default False
        Whether to go on where rows were deleted before they were read. By default that is an error.

    Raises
    ------
    DataError
        If the address has an unknown scheme or option, or lacks a part.
    MissingExtraError
        If the package that speaks to such a broker is not installed.
    """
    found = _SCHEME.match(address)
    scheme = found[1].lower() if found else ""
    if scheme not in SCHEMES:
        raise DataError(f"{shown(address)}: no live source has such an address. There are {EXAMPLES}.")
    module, name = SCHEMES[scheme]
    source: LineSource = getattr(import_module(f"rarestream.readers.live.{module}"), name)(address, lost)
    return source


class Address(NamedTuple):
    """The parts of an address, decoded."""

    scheme: str
    user: str | None
    password: str | None
    hosts: str  # host:port, or several, comma-separated
    path: str
    options: dict[str, str]

    @property
    def name(self) -> str:
        """The address without who asks and how: what is the same as long as the rows are."""
        return plain(f"{self.scheme}://{self.hosts}/{quote(self.path, safe='/')}")

    @property
    def without_secrets(self) -> str:
        """The address with all options that hold no secret."""
        public = {option: value for option, value in self.options.items() if not _SECRET.search(option)}
        return self.name + (f"?{urlencode(public, safe='/:,', quote_via=quote)}" if public else "")

    def seconds(self, option: str, default: float) -> float:
        """Return an option that is a number of seconds."""
        text = self.options.get(option)
        try:
            value = default if text is None else float(text)
        except ValueError:
            value = -1.0
        if not 0 <= value < float("inf"):
            raise DataError(f"{self.name}: {option} must be a number of seconds, 0 or more, got {text!r}.")
        return value

    def choice(self, option: str, choices: tuple[str, ...]) -> str:
        """Return an option that is one of some words; the first is the default."""
        value = self.options.get(option, choices[0])
        if value not in choices:
            raise DataError(f"{self.name}: {option} must be {' or '.join(choices)}, got {value!r}.")
        return value

    def refuse_unknown(self, known: Iterable[str]) -> None:
        """Raise a DataError if there is an option that is not known."""
        known = tuple(known)
        for option in self.options:
            if option not in known:
                near = nearest(option, known)
                hint = f" Did you mean {near}?" if near else f" There are {', '.join(known)}."
                raise DataError(f"{self.name}: there is no option {option!r}.{hint}")


def accepting_loss() -> str:
    """Return the advice for who wants to go on without rows that are gone."""
    return f"To go on with the next row that is there, pass {advice('lost=True', '--lost')}."


def parse_address(address: str) -> Address:
    """Return the parts of an address. Messages never show its password."""
    try:
        parts = urlsplit(address)
    except ValueError:
        raise DataError(f"{shown(address)}: this address cannot be read. Examples: {EXAMPLES}.") from None
    # Not parse_qsl, which takes a plus for a space: passwords have plus signs.
    words = [word.partition("=") for word in parts.query.split("&") if word]
    pairs = [(unquote(option), unquote(value)) for option, _, value in words]
    options = dict(pairs)
    if len(options) < len(pairs):
        twice = next(option for number, (option, _) in enumerate(pairs) if option in dict(pairs[:number]))
        raise DataError(f"{shown(address)}: the option {twice!r} is given twice.")
    if parts.fragment:
        raise DataError(f"{shown(address)}: '#' starts a part that addresses do not have. In a name, write it %23.")
    who, at, hosts = parts.netloc.rpartition("@")
    user, colon, password = who.partition(":")
    return Address(
        parts.scheme.lower(),
        unquote(user) if at and user else None,
        unquote(password) if colon else None,
        hosts,
        unquote(parts.path.removeprefix("/")),
        options,
    )


def shown(address: str) -> str:
    """Return an address of any kind as messages may show it: without who asks, and without options."""
    scheme, colons, rest = address.partition("://")
    return plain(f"{scheme}{colons}{rest.partition('?')[0].rpartition('@')[2]}")
