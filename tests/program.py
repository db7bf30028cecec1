"""The command line in this process: what it prints, and its exit code."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from typing import NamedTuple

from rarestream.cli.app import run as run_words


class Result(NamedTuple):
    exit_code: int
    stdout: str
    stderr: str


def run(*words: object, stdin: str | None = None) -> Result:
    """Runs `rarestream WORDS`. An error that the program does not turn into a message is raised."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", errors="replace", write_through=True) for _ in range(2))
    code: object = 0
    with ExitStack() as stack:
        stack.enter_context(redirect_stdout(out))
        stack.enter_context(redirect_stderr(err))
        stack.enter_context(_stdin(stdin or ""))
        try:
            run_words([str(word) for word in words])
        except SystemExit as ended:
            code = ended.code
    texts = [file.buffer.getvalue().decode() for file in (out, err)]  # type: ignore[attr-defined]
    assert isinstance(code, int)
    return Result(code, *texts)


@contextmanager
def _stdin(text: str) -> Iterator[None]:
    before, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(text.encode()), "utf-8")
    try:
        yield
    finally:
        sys.stdin = before
