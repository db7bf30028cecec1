"""Tests of rarestream.spark. Without pyspark or Java they are skipped."""

from __future__ import annotations

import os
import shutil

import pytest


def require_spark() -> None:
    """Skip the module that calls this if pyspark or Java is missing."""
    for package in ("pyspark", "pyarrow"):
        pytest.importorskip(package)
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java", allow_module_level=True)
