"""Runs the application: listens, says so, and stops without cutting off a request."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import ssl
import stat
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import uvicorn

from rarestream.serve.http.application import Application
from rarestream.serve.http.counts import SharedCounts
from rarestream.serve.http.protocol import protocol_for
from rarestream.serve.http.service import Service
from rarestream.serve.http.settings import ServerError, Settings


def run(
    service: Service,
    settings: Settings,
    *,
    say: Callable[[str], None] | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT; returns when every request is answered and the service has stopped.

    Parameters
    ----------
    service : Service
        It is started once the address is ours, and stopped at the end.
    settings : Settings
        Address, TLS, token, limits.
    say : callable or None
        Takes the line that says where the service listens, once it is ready; None: printed to stdout.

    Raises
    ------
    ServerError
        If the address, the socket or the certificate cannot be used.
    RarestreamError
        What `service.start` raises.
    """
    Runner(service, settings, say=say).run()


class Runner:
    """A server for one service.

    Parameters
    ----------
    service, settings, page, say
        As of `run`.
    listener : socket or None
        What to listen on, bound by whoever made it; None: opened as the settings say.
    shared_counts : SharedCounts or None
        Through which processes that share a port tell each other their counts, for /metrics.
    """

    def __init__(
        self,
        service: Service,
        settings: Settings,
        *,
        say: Callable[[str], None] | None = None,
        listener: socket.socket | None = None,
        shared_counts: SharedCounts | None = None,
    ) -> None:
        self.service, self.settings = service, settings
        self.say = say if say is not None else lambda line: print(line, flush=True)
        self.app = Application(service, settings)
        self.app.shared_counts = shared_counts
        self.address = ""
        self._listener = listener
        self._server: _Server | None = None

    def run(self) -> None:
        """Serve until a signal, or `stop`."""
        context = tls_context(self.settings)
        config = self._config()
        config.load()
        config.ssl = context
        with contextlib.ExitStack() as stack:
            listener = self._listener
            if listener is None:
                listener = stack.enter_context(listening(self.settings))[0]
            self.address = address_of(self.settings, listener, context is not None)
            factory = config.get_loop_factory() if hasattr(config, "get_loop_factory") else None
            if factory is None:
                asyncio.run(self._serve(config, listener))
            else:
                with asyncio.Runner(loop_factory=factory) as runner:
                    runner.run(self._serve(config, listener))

    @property
    def started(self) -> bool:
        """Whether requests are answered."""
        return self._server is not None and self._server.started

    def stop(self) -> None:
        """End `run` soon. May be called from any thread."""
        if self._server is not None:
            self._server.should_exit = True
            self.app.stopping = True

    def _config(self) -> uvicorn.Config:
        settings = self.settings
        # Requests that are not HTTP are answered and counted; a line for each would let anyone fill the disk.
        logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
        if settings.access_log:
            access = logging.getLogger("uvicorn.access")
            access.setLevel(logging.INFO)
            if not access.hasHandlers():
                access.addHandler(logging.StreamHandler())
        return uvicorn.Config(
            self.app,
            loop="uvloop" if _has("uvloop") else "asyncio",
            http=protocol_for(settings, self.app.counts.refuse),
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=settings.access_log,
            workers=1,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=settings.keep_alive,
            timeout_graceful_shutdown=settings.shutdown_timeout,
        )

    async def _serve(self, config: uvicorn.Config, listener: socket.socket) -> None:
        server = self._server = _Server(config, self.app)
        starting = asyncio.ensure_future(self.service.start())
        beside = [
            asyncio.ensure_future(self.app.publish_counts()),
            asyncio.ensure_future(self._announce(server, starting)),
        ]
        try:
            if self._listener is not None:
                # Other processes answer on the port: what comes to this one waits a moment, and is not refused.
                await starting
            serving = asyncio.ensure_future(server.serve(sockets=[listener]))
            await asyncio.wait([serving, starting], return_when=asyncio.FIRST_COMPLETED)
            if starting.done() and starting.exception() is not None:
                server.should_exit = True
            await serving
        finally:
            self.app.stop()
            for task in [*beside, *([] if starting.done() else [starting])]:
                task.cancel()
            try:
                with contextlib.suppress(asyncio.CancelledError):
                    await starting
            finally:  # it may have started in part
                await self.service.stop()

    async def _announce(self, server: _Server, starting: asyncio.Future[None]) -> None:
        """Say where the service listens, once it answers."""
        await asyncio.wait([starting])
        while not server.started:
            await asyncio.sleep(0.005)
        if starting.exception() is None and not server.should_exit:
            self.say(f"rarestream serves on {self.address}")


class _Server(uvicorn.Server):
    """uvicorn's server, for which a signal is a request to stop and not a failure."""

    def __init__(self, config: uvicorn.Config, app: Application) -> None:
        super().__init__(config)
        self.app = app

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop at SIGTERM and SIGINT, and leave them as they were afterwards; uvicorn would raise them again."""
        try:
            before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        except ValueError:  # not in the main thread: whoever started it stops it
            before = {}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to stop; a second SIGINT does not wait for requests."""
        self.app.stop()
        super().handle_exit(sig, frame)


def _has(package: str) -> bool:
    from importlib.util import find_spec

    return find_spec(package) is not None


def tls_context(settings: Settings) -> ssl.SSLContext | None:
    """Return the context of the certificate; None without one.

    Raises
    ------
    ServerError
        If the certificate or its key cannot be used.
    """
    if settings.certificate is None:
        if settings.key is not None:
            raise ServerError("TLS: a key was given without a certificate. Give both.")
        return None
    for name in filter(None, (settings.certificate, settings.key)):
        if not os.path.isfile(name):
            raise ServerError(f"TLS: {name} is not a file.")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])

    def password() -> bytes:  # without it OpenSSL would ask on the terminal
        if settings.key_password is None:
            raise ServerError(
                f"TLS: {settings.key or settings.certificate} is encrypted; give the file of its password."
            )
        return settings.key_password

    try:
        context.load_cert_chain(settings.certificate, settings.key, password)
    except (ssl.SSLError, OSError) as error:
        if isinstance(error, ServerError):
            raise
        reason = getattr(error, "reason", None) or error.strerror or str(error)
        if reason.startswith("[SSL] PEM lib"):  # OpenSSL has no better words for a file without one
            reason = "no certificate and key were found in it"
        files = settings.certificate if settings.key is None else f"{settings.certificate} and {settings.key}"
        raise ServerError(
            f"TLS: {files} cannot be used: {str(reason).replace('_', ' ').lower()}. "
            "They must be a certificate and its key in PEM form."
        ) from None
    return context


@contextlib.contextmanager
def listening(settings: Settings, processes: int = 1) -> Iterator[list[socket.socket]]:
    """The sockets, bound, one for each process: a port that is taken is found out before anything else happens.

    On Linux the sockets of several processes are separate ones on one port, over which the kernel spreads connections.
    Elsewhere, and for a Unix socket, it is the same one for all.
    """
    if settings.uds is not None:
        with _unix_socket(settings.uds) as listener:
            yield [listener] * processes
        return
    if not 0 <= settings.port <= 65535:  # getaddrinfo would take the rest of a division
        raise ServerError(f"port must be between 0 (any free one) and 65535, got {settings.port}.")
    with contextlib.ExitStack() as stack:
        try:
            found = socket.getaddrinfo(
                settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE | socket.AI_NUMERICSERV
            )
            family, kind, protocol, _, address = found[0]
            if processes == 1 or not sys.platform.startswith("linux"):
                listeners = [stack.enter_context(_bound(family, kind, protocol, address))] * processes
            else:
                # Not shared, for a moment: another service on the port would not be noticed otherwise.
                with _bound(family, kind, protocol, address) as alone:
                    address = alone.getsockname()
                listeners = [
                    stack.enter_context(_bound(family, kind, protocol, address, shared=True)) for _ in range(processes)
                ]
        except (OSError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise ServerError(
                f"{settings.host}:{settings.port}: the service cannot listen there: {reason}. "
                "Choose another address or port, or port 0 for any free one."
            ) from None
        yield listeners


def _bound(family: int, kind: int, protocol: int, address: Any, *, shared: bool = False) -> socket.socket:
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind(address)
    except BaseException:
        listener.close()
        raise
    return listener


@contextlib.contextmanager
def _unix_socket(path: str) -> Iterator[socket.socket]:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with listener:
        try:
            if os.path.lexists(path):
                _remove_unused_socket(path)
            before = os.umask(0o117)  # the group may connect, nobody else
            try:
                listener.bind(path)
            finally:
                os.umask(before)
        except OSError as error:
            if isinstance(error, ServerError):
                raise
            raise ServerError(f"{path}: the service cannot listen there: {error.strerror or error}.") from None
        try:
            yield listener
        finally:
            with contextlib.suppress(OSError):
                os.unlink(path)


def _remove_unused_socket(path: str) -> None:
    """Remove what a server that was killed has left; anything else is an error."""
    if not stat.S_ISSOCK(os.lstat(path).st_mode):
        raise ServerError(f"{path}: is there already and is no socket. Choose another path.")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
            return
    raise ServerError(f"{path}: another process listens there.")


def address_of(settings: Settings, listener: socket.socket, tls: bool) -> str:
    """Return where a socket listens, for people."""
    if settings.uds is not None:
        return f"unix:{settings.uds}"
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    return f"{'https' if tls else 'http'}://{shown}:{port}"
