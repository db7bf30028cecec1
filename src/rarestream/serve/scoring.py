"""Scores rows of requests with the model that answers: what a service that learns and a read-only one share."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from rarestream.errors import DataError, OutputError
from rarestream.metrics.calibration import probability_on
from rarestream.model import Model
from rarestream.monitor import Latencies
from rarestream.serve.errors import RequestError
from rarestream.serve.messages import AucOut, ModelOut, Prediction, PredictOne, ShadowOut
from rarestream.serve.rows import DecodedRows, Limits, RowDecoder, RowText
from rarestream.system import cores

if TYPE_CHECKING:
    from rarestream.serve.lines import LineServer

AT_ONCE = 1 << 14  # bytes of rows that are decoded and scored at once; more go to another thread meanwhile

Result = TypeVar("Result")


class Scoring:
    """A model that answers. All methods are called in the thread of the event loop.

    Attributes
    ----------
    answering : Model
        The model that answers.
    decoder : RowDecoder
        Of its rows.
    version, sequence : int
        Of the model, and of its state.
    limits : Limits
        Of requests.
    """

    answering: Model
    decoder: RowDecoder
    version: int
    sequence: int
    limits: Limits
    ready = False
    lines: tuple[str, int, bytes | None] | None = None  # host, port and token of the line protocol, if it is wanted
    lines_port = 0  # the port it listens on

    def __init__(self) -> None:
        self._line_server: LineServer | None = None
        self.predicted = 0  # rows
        # For large batches. Few threads: more would only make the event loop wait for the interpreter.
        self.threads = ThreadPoolExecutor(max(1, cores() - 1), "batches")
        self._prepared_for = (-1, -1, -1)
        self.predict_seconds, self.learn_seconds = Latencies(), Latencies()  # of requests; whoever answers them tells
        self._scoring = 0  # batches that another thread is scoring: nothing may be learned meanwhile
        self._scored = asyncio.Event()

    def check_ready(self) -> None:
        """Raise a RequestError unless rows can be scored."""
        if not self.ready:
            raise RequestError(503, "not_ready", "The service is starting. Try again soon.", retry_after=1)

    async def _open_lines(self) -> None:
        """Listen for lines, if that is wanted."""
        if self.lines is not None:
            from rarestream.serve.lines import LineServer

            host, port, token = self.lines
            self._line_server = LineServer(self, token)
            try:
                self.lines_port = await self._line_server.listen(host, port)
            except OSError as error:
                raise OutputError(
                    f"{host}:{port}: the service cannot listen for lines there: {os.strerror(error.errno or 0)}. "
                    "Choose another port with --lines."
                ) from None

    async def _close_lines(self) -> None:
        """Answer the lines that have come, and close their connections."""
        if self._line_server is not None:
            await self._line_server.close()

    def predict_one(self, body: PredictOne) -> Prediction:
        """Score one row, which is not stored: `predict` does that."""
        if not self.ready:
            self.check_ready()
        model = self.answering
        score = self.decoder.score_one(model, bytes(body.row))
        if score is None:  # there is something unusual about the row: go the long way, which knows what to say
            decoder = self.decoder
            score = float(_scores(model, decoder.decode(decoder.joined([body.row]), names=False))[0])
        self.predicted += 1
        calibration = model.calibration
        probability = None
        if calibration is not None:
            probability = [calibration.probability_of(score, model.negatives_kept)]
        labels = None if model.decision is None else [int(score >= model.decision.threshold)]
        return Prediction([score], probability, labels, None, 0, self.version, self.sequence, model.rows)

    def answer_one(self, body: bytes) -> bytes | None:
        """Return the answer to a body with one row and nothing else, as `predict_one` gives it.

        Parameters
        ----------
        body : bytes
            A request to predict, as JSON.

        Returns
        -------
        bytes or None
            The answer as JSON; None if there is anything unusual about the request, which then goes the long way.
        """
        if body[:7] != b'{"row":' or body[-1:] != b"}" or not self.ready:
            return None
        model, sequence = self.answering, self.sequence
        # What is between is a row only if the parser finds nothing after it.
        score = self.decoder.score_one(model, body[7:-1])
        if score is None:
            return None
        self.predicted += 1
        if self._prepared_for != (sequence, model.rows, self.version):
            self._prepare(model)
        probabilities = b"null" if self._line is None else b"[%a]" % probability_on(self._line, score)
        labels = b"null" if self._threshold is None else b"[%d]" % (score >= self._threshold)
        return b'{"scores":[%a],"probabilities":%b,"labels":%b%b' % (score, probabilities, labels, self._end)

    def _prepare(self, model: Model) -> None:
        """Note what all answers have in common until the next row is learned."""
        self._prepared_for = self.sequence, model.rows, self.version
        self._line = None if model.calibration is None else model.calibration.line(model.negatives_kept)
        self._threshold = None if model.decision is None else model.decision.threshold
        state = b',"version":%d,"sequence":%d,"rows":%d}' % (self.version, self.sequence, model.rows)
        self._end = b',"ids":null,"stored":0' + state

    async def predict(self, rows: RowText, ids: list[str] | None = None, remember: bool = False) -> Prediction:
        """Score rows, all with the same state of the model.

        Raises
        ------
        RequestError
            If a row is invalid.
        """
        self.check_ready()
        if ids is not None or remember:
            raise read_only("It does not store rows for their labels.")
        return await self.scored(rows)

    async def scored(self, rows: RowText) -> Prediction:
        """Return what the model says of rows; everything in it is of one state of the model."""
        loop = asyncio.get_running_loop()
        while True:
            decoder = self.decoder
            if len(rows.text) <= AT_ONCE:
                decoded = decoder.decode(rows, names=False)
            else:
                decoded = await loop.run_in_executor(self.threads, _decode, decoder, rows)
            if decoder is self.decoder:  # else the model was swapped meanwhile
                break
        self.predicted += len(decoded)
        state = self.answering, self.version, self.sequence, self.answering.rows
        if len(rows.text) <= AT_ONCE:
            return _predicted(decoded, *state)
        return await self.in_thread(_predicted, decoded, *state)

    async def in_thread(self, work: Callable[..., Result], *arguments: Any) -> Result:
        """Return what a function returns that reads the model, in another thread: nothing is learned meanwhile."""
        self._scoring += 1
        done = asyncio.get_running_loop().run_in_executor(self.threads, work, *arguments)
        # The thread goes on if whoever waits for it goes away: what counts is when it has ended.
        done.add_done_callback(self._when_scored)
        return await asyncio.shield(done)

    def _when_scored(self, work: asyncio.Future[Any]) -> None:
        self._scoring -= 1
        if not self._scoring:
            self._scored.set()
            self._scored = asyncio.Event()
        if not work.cancelled():
            work.exception()  # nobody may be waiting for it

    async def turn(self) -> None:
        """Let requests be answered, and wait until no thread scores with the model."""
        # Twice: what comes in during the first turn of the event loop is answered in the second.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        while self._scoring:
            await self._scored.wait()

    def latency(self) -> dict[str, Any]:
        """Return the percentiles of how long requests have taken of late."""
        return {"predict": self.predict_seconds.percentiles(), "learn": self.learn_seconds.percentiles()}

    def describe(self, learning: bool, reason: str | None, shadow: ShadowOut | None) -> ModelOut:
        """Return what there is to know about the model that answers."""
        self.check_ready()
        model = self.answering
        estimate = model.progress.auc
        value = None if estimate != estimate else float(estimate)
        return ModelOut(
            version=self.version,
            sequence=self.sequence,
            learner=model.leader.name,
            settings=_plain(model.leader.settings),
            features="not known yet" if model.features is None else model.features.describe(),
            n_features=model.n_features,
            nonzeros=model.nonzeros,
            rows=model.rows,
            positives=model.positives,
            auc=AucOut(value, estimate.low, estimate.high),
            calibrated=model.calibration is not None,
            threshold=None if model.decision is None else model.decision.threshold,
            learning=learning,
            reason=reason,
            shadow=shadow,
        )


def read_only(what: str) -> RequestError:
    """Return the answer to a request that would change a read-only service."""
    return RequestError(403, "read_only", f"This service is read-only. {what} Send the request to the one that learns.")


def _decode(decoder: RowDecoder, rows: RowText) -> DecodedRows:
    return decoder.decode(rows, names=False)


def _scores(model: Model, decoded: DecodedRows) -> NDArray[np.float64]:
    try:
        return model.score(decoded.block)
    except DataError as error:
        row = getattr(error, "row", None)
        reason = getattr(error, "reason", str(error))
        words = str(error) if row is None else f"row {row} {reason}"
        raise RequestError(422, "bad_rows", words, row=row) from error


def _predicted(decoded: DecodedRows, model: Model, version: int, sequence: int, rows: int) -> Prediction:
    scores = _scores(model, decoded)
    probabilities = labels = None
    if model.calibration is not None:
        probabilities = model.calibration.probability(scores, model.negatives_kept).tolist()
    if model.decision is not None:
        labels = (scores >= model.decision.threshold).astype(int).tolist()
    return Prediction(scores.tolist(), probabilities, labels, None, 0, version, sequence, rows)


def _plain(settings: Any) -> dict[str, float | int | str | bool | None]:
    return {
        name: value if isinstance(value, float | int | str | bool | None) else str(value)
        for name, value in settings.items()
    }
