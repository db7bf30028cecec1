"""How the service is reached: address, TLS, token, and how long and how much it waits for clients."""

from __future__ import annotations

from dataclasses import dataclass

from rarestream.errors import RarestreamError


class ServerError(RarestreamError, OSError):
    """The server cannot start: its address, certificate or socket cannot be used."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How the service is reached, and what it allows clients.

    Parameters
    ----------
    host : str
        Address to listen on.
    port : int
        0: any free one.
    uds : str or None
        Path of a Unix socket to listen on instead of host and port.
    certificate, key : str or None
        Files in PEM form, for TLS. A certificate may have its key in the same file.
    key_password : bytes or None
        Of an encrypted key.
    token : bytes or None
        That requests must carry as `Authorization: Bearer TOKEN`; None: anyone may ask.
    header_timeout : float
        Seconds for the request line and headers, and until the first request of a connection.
    body_timeout : float
        Seconds for the whole body of a request.
    keep_alive : int
        Seconds that a connection may be idle between requests.
    connections : int
        Open at the same time; more are answered with 503.
    header_bytes : int
        Of the request line and headers together.
    shutdown_timeout : int
        Seconds that requests have to finish when the server stops.
    access_log : bool
        Whether each request is logged.
    live_pages : int
        Streams of /events open at the same time.
    """

    host: str = "127.0.0.1"
    port: int = 8080
    uds: str | None = None
    certificate: str | None = None
    key: str | None = None
    key_password: bytes | None = None
    token: bytes | None = None
    header_timeout: float = 10.0
    body_timeout: float = 30.0
    keep_alive: int = 75
    connections: int = 1000
    header_bytes: int = 64 << 10
    shutdown_timeout: int = 30
    access_log: bool = False
    live_pages: int = 32
