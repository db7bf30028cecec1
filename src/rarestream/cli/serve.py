"""rarestream serve: a service that scores rows and keeps learning."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rarestream.cli import durations, options, sizes
from rarestream.cli.parser import Argument, Option, UsageError

if TYPE_CHECKING:
    from rarestream.serve.http import Settings
    from rarestream.serve.replica import Replica
    from rarestream.serve.service import Service

TOKEN = "RARESTREAM_TOKEN"
LEAST_TOKEN = 16  # characters

ModelFile = Annotated[
    Path | None,
    Argument("MODEL", help="The model to begin with, as written by train. Not needed if STATE has one."),
]
Folder = Annotated[
    Path, Option("--dir", "-d", metavar="STATE", help="Directory of log and snapshots; made if it is not there.")
]
Host = Annotated[str, Option("--host", metavar="HOST", help="Address to listen on.")]
Port = Annotated[int, Option("--port", "-p", metavar="PORT", help="Port; 0 for any free one.", min=0, max=65535)]
Socket = Annotated[Path | None, Option("--socket", metavar="PATH", help="Listen on this Unix socket instead.")]
TokenFile = Annotated[
    Path | None,
    Option(
        "--token-file", metavar="FILE", help="Requests must carry the token in this file.", default=f"${TOKEN} if set"
    ),
]
Certificate = Annotated[Path | None, Option("--certificate", metavar="FILE", help="PEM certificate: serve with TLS.")]
Key = Annotated[Path | None, Option("--key", metavar="FILE", help="Its key.", default="in the same file")]
LinesPort = Annotated[
    int | None,
    Option("--lines", metavar="PORT", help="Also answer lines (VW text) on this TCP port.", min=0, max=65535),
]
Stdin = Annotated[bool, Option("--stdin", help="Answer the lines of standard input instead of HTTP.")]
ReadOnly = Annotated[bool, Option("--read-only", help="Only score, following the snapshots of another service.")]
Workers = Annotated[
    int, Option("--workers", metavar="N", help="Processes that share the port, with --read-only.", min=1, max=256)
]
LabelWait = Annotated[
    str | None, Option("--label-wait", metavar="TIME", help="How long stored rows wait for labels.", default="1h")
]
Unlabelled = Annotated[
    str | None,
    Option(
        "--unlabelled",
        metavar="WHAT",
        help="What becomes of them then: drop, or negative.",
        choices=lambda: ("drop", "negative"),
        default="drop",
    ),
]
Window = Annotated[
    int | None, Option("--window", metavar="N", help="Rows of the windowed AUC.", min=100, default="10000")
]
OnDrift = Annotated[
    str,
    Option(
        "--on-drift",
        metavar="WHAT",
        help="What an alarm does: tell; half-life, the model forgets faster; or shadow, a copy that does.",
        choices=lambda: ("tell", "half-life", "shadow"),
    ),
]
DriftHalfLife = Annotated[
    float, Option("--drift-half-life", metavar="ROWS", help="That half-life, in rows.", min=1, max=1e15)
]
SnapshotEvery = Annotated[str, Option("--snapshot-every", metavar="TIME", help="Time between two snapshots.")]
KeepLog = Annotated[
    str, Option("--keep-log", metavar="SIZE", help="Size of the log to keep though it is not needed; or all.")
]
MaxBody = Annotated[str, Option("--max-body", metavar="SIZE", help="Maximum size of a request.")]
MaxRows = Annotated[int, Option("--max-rows", metavar="N", help="Maximum rows of a request.", min=1)]
MaxNonzeros = Annotated[int, Option("--max-nonzeros", metavar="N", help="Maximum features of a row.", min=1)]
MaxName = Annotated[int, Option("--max-name", metavar="BYTES", help="Maximum length of a feature name.", min=1)]
MaxIndex = Annotated[int, Option("--max-index", metavar="N", help="Column numbers must be below this.", min=1)]
Queue = Annotated[int, Option("--queue", metavar="ROWS", help="Rows that may wait to be learned.", min=1)]
AccessLog = Annotated[bool, Option("--access-log", help="Log each request.")]


def serve(
    model: ModelFile = None,
    *,
    dir: Folder,
    host: Host = "127.0.0.1",
    port: Port = 8080,
    socket: Socket = None,
    token_file: TokenFile = None,
    certificate: Certificate = None,
    key: Key = None,
    lines: LinesPort = None,
    stdin: Stdin = False,
    read_only: ReadOnly = False,
    workers: Workers = 1,
    label_wait: LabelWait = None,
    unlabelled: Unlabelled = None,
    window: Window = None,
    on_drift: OnDrift = "tell",
    drift_half_life: DriftHalfLife = 20_000,
    snapshot_every: SnapshotEvery = "10m",
    keep_log: KeepLog = "1G",
    max_body: MaxBody = "16M",
    max_rows: MaxRows = 10_000,
    max_nonzeros: MaxNonzeros = 10_000,
    max_name: MaxName = 1_000,
    max_index: MaxIndex = 1 << 24,
    queue: Queue = 100_000,
    access_log: AccessLog = False,
) -> None:
    """Serve a model over HTTP: score rows, learn from labels, also late ones, and show how it does.

    What was learned is in STATE before it is acknowledged, and a restart continues with exactly that. The live page is
    at /, the interface is described at /docs.
    """
    if read_only and model is not None:
        raise UsageError("a read-only service takes its model from STATE.", "MODEL")
    if workers > 1 and (not read_only or stdin):
        raise UsageError("needs --read-only: only one process learns.", "--workers")
    if workers > 1 and lines is not None:
        raise UsageError("not with --workers: each line port belongs to one process.", "--lines")
    if stdin and lines is not None:
        raise UsageError("not with --stdin, which answers the lines of standard input only.", "--lines")
    if key is not None and certificate is None:
        raise UsageError("needs --certificate.", "--key")
    wait = None if label_wait is None else durations.seconds(label_wait, "--label-wait")
    every = durations.seconds(snapshot_every, "--snapshot-every")
    kept = float("inf") if keep_log == "all" else sizes.size_in_bytes(keep_log, "--keep-log")
    body = sizes.size_in_bytes(max_body, "--max-body")
    token = _token(token_file)
    _log_to_stderr()
    require_serve()
    from rarestream.serve.process import run_for_long
    from rarestream.serve.rows import Limits

    run_for_long()
    limits = Limits(rows=max_rows, nonzeros=max_nonzeros, name_bytes=max_name, body=body, features=max_index)
    service: Service | Replica
    if read_only:
        from rarestream.serve.replica import Replica

        service = Replica(dir, limits)
    else:
        from rarestream.cli import failures, many_classes
        from rarestream.errors import plain
        from rarestream.model import Model
        from rarestream.serve.options import Options
        from rarestream.serve.service import Service

        if model is not None:
            options.check_paths([str(model)])
            if many_classes.is_file_of(model):
                failures.exit_with(
                    f"{plain(model)}: is a model of many classes, which are not served: a service scores with a model "
                    "of two.",
                    failures.FAILED,
                )
        chosen = Options(
            label_wait=wait,
            unlabelled=unlabelled,
            window=window,
            limits=limits,
            queue_rows=queue,
            snapshot_seconds=every,
            keep_log=kept,
            on_drift=on_drift,
            drift_half_life=drift_half_life,
        )
        service = Service(
            dir, None if model is None else Model.load(model), chosen, origin=None if model is None else str(model)
        )
    if lines is not None:
        service.lines = (host, lines, token)
    if stdin:
        run_stdin(service)
        return
    from rarestream.serve.http import Settings

    settings = Settings(
        host=host,
        port=port,
        uds=None if socket is None else str(socket),
        certificate=None if certificate is None else str(certificate),
        key=None if key is None else str(key),
        token=token,
        access_log=access_log,
    )
    if workers > 1:
        from rarestream.serve.workers import run_workers

        run_workers(dir, limits, settings, workers)
    else:
        run_http(service, settings)


def require_serve() -> None:
    """Raise a MissingExtraError unless what a service needs is installed."""
    from rarestream.errors import MissingExtraError

    for name in ("msgspec", "starlette", "uvicorn", "prometheus_client"):
        if not _installed(name):
            raise MissingExtraError(f"rarestream serve needs {name}: pip install 'rarestream[serve]'.")


def _installed(name: str) -> bool:
    from importlib.util import find_spec

    try:
        return find_spec(name) is not None
    except ValueError:  # it is in the way of imports, as None in sys.modules
        return False


def run_http(service: Any, settings: Settings) -> None:
    """Serve HTTP until a signal."""
    from rarestream.serve.http import run

    run(service, settings)


def run_stdin(service: Any) -> None:
    """Answer the lines of standard input until they end."""
    import asyncio

    from rarestream.serve.lines import serve_stdin

    async def run() -> None:
        await service.start()
        try:
            await serve_stdin(service)
        finally:
            await service.stop()

    asyncio.run(run())


def _token(file: Path | None) -> bytes | None:
    """Return the token of a file or of the environment; None if there is none."""
    if file is None:
        text, where = os.environ.get(TOKEN, ""), f"${TOKEN}"
        if not text:
            return None
    else:
        options.check_paths([str(file)])
        text, where = file.read_text("utf-8", "replace"), "--token-file"
    token = text.strip()
    if len(token) < LEAST_TOKEN or not token.isascii() or any(c.isspace() for c in token):
        raise UsageError(
            f"a token has at least {LEAST_TOKEN} ASCII characters and no blanks; python -c 'import secrets; "
            "print(secrets.token_urlsafe())' makes one.",
            where,
        )
    return token.encode()


def _log_to_stderr() -> None:
    import logging

    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    logging.captureWarnings(True)
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)  # it would say twice that it starts and stops
