"""One cluster and one driver for all tests of Spark; without pyspark or Java all of them are skipped.

`spark` is a classic session of a standalone cluster with two workers on this machine, `connect` a session of Spark
Connect, whose server is that same driver.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.spark import cluster as spark_cluster
from tests.spark.cluster import Cluster

MISSING = spark_cluster.why_not()


class SkippedModule(pytest.Module):
    def collect(self) -> Any:
        pytest.skip(f"tests of Spark: {MISSING}", allow_module_level=True)


def pytest_pycollect_makemodule(module_path: Path, parent: Any) -> pytest.Module | None:
    """Skips a module before it is imported."""
    return None if MISSING is None else SkippedModule.from_parent(parent, path=module_path)


@pytest.fixture(scope="session")
def _cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    started = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        yield started
    finally:
        started.end()


@pytest.fixture(scope="session")
def spark(_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The session of a driver at the cluster."""
    folder = tmp_path_factory.mktemp("driver")
    with spark_cluster.session(_cluster.master, folder, spark_cluster.connect_settings()) as session:
        _cluster.wait_until_ready()
        yield session


@pytest.fixture
def cluster(_cluster: Cluster, spark: Any) -> Iterator[Cluster]:
    """The cluster, with two workers and an executor in each; a test may kill some."""
    _cluster.complete(spark.sparkContext.applicationId)
    yield _cluster
    _cluster.complete(spark.sparkContext.applicationId)


@pytest.fixture(scope="session")
def _connect(spark: Any) -> Iterator[Any]:
    reason = spark_cluster.why_not_connect()
    if reason is not None:
        pytest.skip(reason)
    from pyspark.sql.connect.session import SparkSession

    session = SparkSession.builder.remote(spark_cluster.connect_address(spark)).create()
    yield session
    session.stop()


@pytest.fixture
def connect(_connect: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A session of Spark Connect. While a test has it, pyspark.sql.functions are those of Spark Connect, too."""
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    return _connect
