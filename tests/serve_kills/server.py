"""Runs `rarestream serve` as it is, but with small files of the log, and looks at everything more often."""

from __future__ import annotations

import functools
import sys
from typing import Any

from rarestream.cli import main
from rarestream.serve import service

if __name__ == "__main__":
    options: Any = functools.partial(service.Options, segment_bytes=200_000)
    service.Options = options  # type: ignore[misc]
    service.CONTROL = 0.1
    sys.exit(main())
