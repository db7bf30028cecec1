"""A real Spark standalone cluster on 127.0.0.1: a master, workers with one core each, and sessions of drivers.

Every daemon is a child with a session of its own, which the executors that a worker starts are in, too, and the Python
workers of those: ending a daemon ends all of them, whichever process group they have moved to. Ports are those that the
daemons have found free and written to their logs.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from tests.children import Child

ROOT = Path(__file__).resolve().parents[2]
WORKERS = 2
LIMIT = 3600.0  # seconds that a daemon may run: a whole test run
DIES_WITH_PARENT = 1  # PR_SET_PDEATHSIG
# Short jobs: compiling them well takes longer than running them.
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
DAEMON_OPTIONS = f"{JAVA_OPTIONS} -Dspark.master.rest.enabled=false"


def why_not() -> str | None:
    """What is missing for a cluster; None if nothing is."""
    try:
        import pyspark
    except ImportError:
        return 'pyspark is not installed: pip install "rarestream[spark]"'
    del pyspark
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        return "Spark needs Java: on Debian and Ubuntu, apt-get install default-jre-headless"
    return None


def home() -> Path:
    """The folder of Spark: that of the package pyspark, whatever SPARK_HOME says."""
    import pyspark

    return Path(pyspark.__file__).parent


def why_not_connect() -> str | None:
    """What is missing for Spark Connect; None if nothing is."""
    if not any((home() / "jars").glob("spark-connect_*.jar")):
        return "this pyspark comes without the server of Spark Connect: use pyspark 4 or newer"
    if importlib.util.find_spec("grpc_status") is None:
        return 'Spark Connect needs more packages: pip install "rarestream[spark-connect]"'
    return None


def connect_settings() -> dict[str, str]:
    """Settings of a driver that is also a server of Spark Connect, on a free port; none where that is impossible."""
    if why_not_connect():
        return {}
    return {
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
    }


def connect_address(spark: Any) -> str:
    """The address of the server of Spark Connect that a driver with `connect_settings` is."""
    service = getattr(spark._jvm, "org.apache.spark.sql.connect.service.SparkConnectService$")
    return f"sc://127.0.0.1:{getattr(service, 'MODULE$').localPort()}"


def environment() -> dict[str, str]:
    """Variables that all processes of Spark have: this Python, and nothing but this machine."""
    unwanted = ("SPARK_", "PYSPARK_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}
    return {
        **kept,
        "SPARK_HOME": str(home()),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_HOSTNAME": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT),
    }


def settings(folder: Path) -> dict[str, str]:
    """Settings of every driver; what it writes is in the folder."""
    return {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": JAVA_OPTIONS,
        "spark.driver.memory": "700m",
        "spark.executor.extraJavaOptions": JAVA_OPTIONS,
        "spark.executor.memory": "512m",
        "spark.executorEnv.PYTHONPATH": str(ROOT),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.codegen.wholeStage": "false",  # as for JAVA_OPTIONS
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.local.dir": str(folder / "local"),
    }


@contextmanager
def session(master: str, folder: Path, more: Mapping[str, str] | None = None) -> Iterator[Any]:
    """A session of this process, with a JVM of its own that is gone afterwards; one at a time."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    before, wanted = dict(os.environ), environment()
    os.environ.clear()
    os.environ.update(wanted)
    builder = SparkSession.builder.master(master).appName("rarestream")
    for key, value in {**settings(folder), **(more or {})}.items():
        builder = builder.config(key, value)
    gateway = None
    try:
        spark = builder.getOrCreate()
        gateway = SparkContext._gateway
        spark.sparkContext.setLogLevel("ERROR")
        yield spark
    finally:
        gateway = gateway or SparkContext._gateway
        with suppress(Exception):  # the JVM may be gone
            SparkSession.getActiveSession().stop()
        if gateway is not None:
            with suppress(Exception):
                gateway.shutdown()
            gateway.proc.stdin.close()  # its end
            try:
                gateway.proc.wait(60)
            except subprocess.TimeoutExpired:
                gateway.proc.kill()
                gateway.proc.wait()
            SparkContext._gateway = SparkContext._jvm = None
        os.environ.clear()
        os.environ.update(before)


class Daemon(Child):
    """A master or a worker, with a log; all that it has started ends with it, and it ends with this process."""

    def __init__(self, name: str, folder: Path, words: list[str], expected: str) -> None:
        folder.mkdir(parents=True)
        self.name, self.expected = name, expected
        self.log = folder / "log.txt"
        libc = ctypes.CDLL(None)

        def die_with_parent() -> None:
            libc.prctl(DIES_WITH_PARENT, signal.SIGKILL)

        with self.log.open("wb") as log:
            super().__init__(
                [home() / "bin" / "spark-class", f"org.apache.spark.deploy.{name}", *words],
                limit=LIMIT,
                several_tests=True,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**environment(), "SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": DAEMON_OPTIONS},
                cwd=folder,
                preexec_fn=die_with_parent,
            )

    def wait_until_ready(self) -> None:
        """Waits until its log has the line that is expected of one that works."""
        try:
            self.until(lambda: self.told(self.expected))
        except AssertionError as error:
            raise AssertionError(f"{self.name} does not start; its log:\n{self.log.read_text()}") from error

    def told(self, pattern: str) -> re.Match[str] | None:
        """The first place of its log that matches."""
        return re.search(pattern, self.log.read_text(errors="replace"))

    def end(self) -> None:
        """Ends it and every process of its session."""
        super().end()
        while left := [process.pid for process in processes() if process.session == self.pid]:
            for pid in left:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.01)


class Cluster:
    """A master and two workers. `master` is the address for drivers.

    Made without waiting for the workers, so that a driver can start at the same time; `wait_until_ready` does.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.workers: list[Daemon] = []
        self._started = 0
        words = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        self._master = Daemon("master.Master", folder / "master", words, r"I have been elected leader")
        try:
            self._master.wait_until_ready()
            address = self._master.told(r"spark://127\.0\.0\.1:\d+")
            assert address is not None
            self.master = address[0]
            for _ in range(WORKERS):
                self.start_worker()
        except BaseException:
            self.end()
            raise

    def start_worker(self) -> Daemon:
        """Adds a worker, without waiting for it."""
        folder = self.folder / f"worker-{self._started}"
        self._started += 1
        words = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0", "--cores", "1", "--memory", "700M"]
        words += ["--work-dir", str(folder / "work"), self.master]
        worker = Daemon("worker.Worker", folder, words, r"Successfully registered with master")
        self.workers.append(worker)
        return worker

    def wait_until_ready(self) -> None:
        """Waits until the master knows all workers."""
        for worker in self.workers:
            worker.wait_until_ready()

    def complete(self, application: str) -> None:
        """Replaces workers that were killed, and waits until each has an executor of an application."""
        for worker in [one for one in self.workers if one.poll() is not None]:
            self.kill_worker(worker)
        while len(self.workers) < WORKERS:
            self.start_worker()
        self.wait_until_ready()
        self._master.until(lambda: len(self.executors(application)) == WORKERS)

    def executors(self, application: str) -> list[Executor]:
        """The running executors of an application."""
        backend = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
        workers = {worker.pid: worker for worker in self.workers}
        return [
            Executor(process.pid, workers[process.session])
            for process in processes()
            if process.session in workers and backend in process.words and application in process.words
        ]

    def kill_worker(self, worker: Daemon) -> None:
        """Kills a worker with all its executors at once, like a machine that is switched off."""
        self.workers.remove(worker)
        worker.end()

    def end(self) -> None:
        """Ends everything."""
        for daemon in [*self.workers, self._master]:
            daemon.end()
        self.workers.clear()


class Executor(NamedTuple):
    pid: int
    worker: Daemon  # that has started it


class Process(NamedTuple):
    pid: int
    session: int
    words: list[str]  # of its command line


def processes() -> list[Process]:
    """The processes of this machine that have not ended."""
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        with suppress(OSError):  # it has just ended
            state, _, _, session = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
            words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
            if state != "Z":
                found.append(Process(int(folder.name), int(session), words))
    return found
