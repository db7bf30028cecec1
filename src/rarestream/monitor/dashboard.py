"""The live page of a training run: a server in a thread of its own, shown what the training thread hands it."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
import threading
import time
from typing import TYPE_CHECKING, Any

from rarestream.errors import DataError, MissingExtraError, advice
from rarestream.metrics import Calibration
from rarestream.monitor.monitor import Monitor

try:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.responses import PlainTextResponse

    from rarestream.monitor.web import LivePage
except ImportError:
    raise MissingExtraError('The live page needs the packages of [serve]: pip install "rarestream[serve]"') from None

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from rarestream.evaluate import Step, TrainingRun
    from rarestream.model import Model

ADDRESS = "127.0.0.1:8090"
EVERY = 1.0  # seconds between two messages
PARTS = 64  # of the weights that are read at once, 65,536 each: nobody waits for an answer meanwhile
STOPPING = 3.0  # seconds that the server may take to end


class PageServer:
    """Serves the live page of messages that are handed to it.

    Parameters
    ----------
    address : str
        HOST:PORT; port 0 takes a free one.

    Attributes
    ----------
    url : str
        Where the page is.
    is_local : bool
        Whether only this machine can reach it.

    Raises
    ------
    DataError
        If the address is invalid or cannot be used.
    """

    def __init__(self, address: str = ADDRESS) -> None:
        host, port = parse_address(address)
        self._socket = _listening(host, port)
        bound = self._socket.getsockname()
        self.is_local = ipaddress.ip_address(bound[0].partition("%")[0]).is_loopback
        shown = f"[{bound[0]}]" if ":" in bound[0] else bound[0]
        self.url = f"http://{shown}:{bound[1]}/"
        self._message: dict[str, Any] = {}
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name="rarestream-live-page", daemon=True)

    def start(self, message: dict[str, Any]) -> None:
        """Start to serve, with this message."""
        self.show(message)
        self._thread.start()
        self._ready.wait()

    def show(self, message: dict[str, Any]) -> None:
        """Replace the message. It must not be changed afterwards."""
        self._message = message

    def close(self) -> None:
        """End the server."""
        loop = self._loop
        if loop is not None and self._thread.is_alive():
            with contextlib.suppress(RuntimeError):  # it has ended meanwhile
                loop.call_soon_threadsafe(self._stop)
            self._thread.join(STOPPING)
        self._socket.close()

    def _run(self) -> None:
        self._live = LivePage(lambda: self._message, every=EVERY)
        app: ASGIApp = Starlette(routes=self._live.routes())
        if self.is_local:
            app = _LocalNames(app)
        config = uvicorn.Config(
            app,
            loop="asyncio",
            lifespan="off",
            access_log=False,
            log_config=None,
            log_level="critical",
            server_header=False,
            limit_concurrency=256,
            timeout_graceful_shutdown=1,
        )
        self._server = _Server(config)
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._ready.set()
        await self._server.serve([self._socket])

    def _stop(self) -> None:
        self._live.close()
        self._server.should_exit = True


class _Server(uvicorn.Server):
    """A server that leaves signals to the program."""

    @contextlib.contextmanager
    def capture_signals(self) -> Any:
        yield


class _LocalNames:
    """Refuses requests under other names than localhost: a page of someone else could have its name lead here."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        host = dict(scope.get("headers", ())).get(b"host", b"").decode("latin-1")
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
        if name.lower() in ("localhost", "127.0.0.1", "[::1]") or name.startswith("127."):
            await self._app(scope, receive, send)
            return
        answer = PlainTextResponse("This page is only served under the name localhost.\n", 421)
        await answer(scope, receive, send)


class Dashboard:
    """Watches a training run, and shows it on a live page.

    Call `step` after each step of the run, in the thread that learns. Rows of further passes are not counted in AUC,
    scores and calibration: the model has seen them.

    Parameters
    ----------
    run : TrainingRun
        The run, of a Model.
    server : PageServer
        Where to show it.
    title : str
        What is trained, for people.
    """

    def __init__(self, run: TrainingRun, server: PageServer, title: str) -> None:
        model: Model = run.model  # type: ignore[assignment]
        self._run, self._model, self._server, self._title = run, model, server, title
        self._monitor = Monitor.of(model, parts=PARTS)
        self._progress = model.progress
        self._calibration = _copy(model.calibration)
        self._shown = 0.0
        server.start(self._message("running"))

    def step(self, step: Step) -> None:
        """Count the rows of a step; make a message if one is due."""
        block, model = step.block, self._model
        if len(block) and self._run.place.number == 1:
            assert block.labels is not None
            known = self._calibration  # from before these rows
            usable = known is not None and known.enough
            probabilities = known.probability(step.scores, model.negatives_kept) if known and usable else None
            self._monitor.count(block.labels, step.scores, probabilities, block.importances)
            self._calibration = _copy(model.calibration)
        now = time.monotonic()
        if now - self._shown >= EVERY or not len(block):
            self._server.show(self._message("running" if len(block) else "waiting"))
            self._shown = time.monotonic()

    def end(self, state: str = "ended") -> None:
        """Show the last numbers: "ended", "interrupted" or "failed"."""
        self._monitor.weights.finish(self._model)
        self._server.show(self._message(state))

    def _message(self, state: str) -> dict[str, Any]:
        run = self._run
        if self._model.progress is not self._progress:  # a race of settings has ended
            self._progress = self._model.progress
            self._monitor.adopt(self._progress)
        message = self._monitor.message(self._model)
        message["title"] = self._title
        message["training"] = {
            "state": state,
            "fraction": run.fraction,
            "pass": run.place.number,
            "passes": run.place.passes,
            "refused": run.refused,
        }
        order = self._model.order
        message["notes"] = [order.message] if order.suspicious else []
        return message


def _copy(calibration: Calibration | None) -> Calibration | None:
    return None if calibration is None else calibration.copy()


def parse_address(address: str) -> tuple[str, int]:
    """Return host and port of HOST:PORT; DataError if it is none."""
    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise DataError(
            f"live page: the address must be HOST:PORT, such as {ADDRESS} or 0.0.0.0:9000, got {address!r}."
        )
    return host, int(port)


def _listening(host: str, port: int) -> socket.socket:
    try:
        family, _, _, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except OSError as error:
        raise DataError(f"live page: {host} is no address of this machine: {error.strerror}.") from None
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(where)
        made.listen(128)
    except OSError as error:
        made.close()
        free = advice(
            'Pass another port, or "127.0.0.1:0" for a free one.', "Pass --dashboard=127.0.0.1:0 to take a free port."
        )
        raise DataError(f"live page: cannot listen on {host}:{port}: {error.strerror}. {free}") from None
    return made
