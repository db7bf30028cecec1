"""Scores as an Arrow IPC stream, for requests that were one."""

from __future__ import annotations

from rarestream.serve.http.failures import Headers
from rarestream.serve.messages import Prediction

ARROW = b"application/vnd.apache.arrow.stream"


def arrow_answer(prediction: Prediction) -> tuple[bytes, Headers]:
    """Return the scores, and probabilities and labels if the model has them, as a stream of one batch."""
    import pyarrow as pa

    columns = {"score": pa.array(prediction.scores, pa.float64())}
    if prediction.probabilities is not None:
        columns["probability"] = pa.array(prediction.probabilities, pa.float64())
    if prediction.labels is not None:
        columns["label"] = pa.array(prediction.labels, pa.int8())
    batch = pa.record_batch(columns)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    headers: Headers = [
        (b"content-type", ARROW),
        (b"rarestream-sequence", b"%d" % prediction.sequence),
        (b"rarestream-version", b"%d" % prediction.version),
    ]
    return sink.getvalue().to_pybytes(), headers
