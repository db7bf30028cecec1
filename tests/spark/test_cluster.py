"""What the other tests of Spark rely on: a real cluster, whose executors and workers can be found, killed and replaced."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

from tests.spark.cluster import Cluster, processes


def pids(batches: Iterator[Any]) -> Iterator[Any]:
    """The process above the Python daemon of an executor: the executor."""
    import pyarrow

    import rarestream

    assert rarestream.__version__  # workers have the package
    for _ in batches:
        with open(f"/proc/{os.getppid()}/stat") as status:
            above = int(status.read().rpartition(")")[2].split()[1])
        yield pyarrow.RecordBatch.from_pydict({"pid": [above]})


def used(session: Any) -> set[int]:
    rows = session.range(64, numPartitions=8).mapInArrow(pids, "pid long").collect()
    return {row["pid"] for row in rows}


def test_jobs_run_in_the_executors_of_two_workers_in_both_kinds_of_sessions(spark, connect, cluster: Cluster):
    executors = cluster.executors(spark.sparkContext.applicationId)
    assert {executor.worker for executor in executors} == set(cluster.workers)
    assert used(connect) <= {executor.pid for executor in executors}


def test_a_killed_executor_and_a_killed_worker_leave_nothing_behind_and_jobs_go_on(spark, cluster: Cluster):
    killed, other = cluster.executors(spark.sparkContext.applicationId)
    os.kill(killed.pid, signal.SIGKILL)
    assert killed.pid not in used(spark)
    cluster.kill_worker(other.worker)
    assert other.worker.returncode == -signal.SIGKILL
    assert not [process for process in processes() if process.session == other.worker.pid]
    assert other.pid not in used(spark)
    assert cluster.workers == [killed.worker]
