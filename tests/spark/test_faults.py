"""What is killed during a fit changes no bit of the model."""

from __future__ import annotations

import signal
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from rarestream import DataError, Model
from rarestream.groups import RoundsFit
from rarestream.spark import fit, fitting
from tests.children import run
from tests.spark.cluster import ROOT, Cluster
from tests.spark.faults import DyingTrainer
from tests.spark.streams import FIT, make_rows, write_file


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with rows in two files, which are two partitions."""
    made = tmp_path_factory.mktemp("fit")
    for number in range(2):
        write_file(made / "rows", number, make_rows(2000, number))
    return made


@pytest.fixture(scope="module")
def undisturbed(spark: Any, folder: Path) -> bytes:
    return contents(fit(frame(spark, folder), **FIT))


def frame(spark: Any, folder: Path) -> Any:
    return spark.read.parquet(str(folder / "rows"))


def contents(model: Model) -> bytes:
    """All bytes of a model but its receipt, which has times."""
    model.source = {}
    return model.to_bytes()


def test_an_executor_killed_in_a_round_and_a_worker_in_a_later_one_change_no_bit(
    spark: Any,
    cluster: Cluster,
    folder: Path,
    undisturbed: bytes,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "round-1").write_text("executor")
    (tmp_path / "round-3").write_text("worker")
    monkeypatch.setattr(fitting, "_Trainer", partial(DyingTrainer, faults=str(tmp_path)))
    before = {executor.pid for executor in cluster.executors(spark.sparkContext.applicationId)}
    model = fit(frame(spark, folder), **FIT)
    assert sorted(path.name.split("-taken")[0] for path in tmp_path.glob("*-taken-*")) == ["round-1", "round-3"]
    assert [worker.poll() for worker in cluster.workers].count(-signal.SIGKILL) == 1
    assert len(before - {executor.pid for executor in cluster.executors(spark.sparkContext.applicationId)}) >= 1
    assert contents(model) == undisturbed


def test_a_driver_killed_between_rounds_goes_on_with_the_next_one_to_the_same_bits(
    spark: Any, folder: Path, undisturbed: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    died = run([sys.executable, "-m", "tests.spark.fit_driver", folder, 2], cwd=ROOT)
    assert died.returncode == -signal.SIGKILL, died.stderr
    rounds = []
    learn_round = RoundsFit._round

    def counted(self: RoundsFit, train: Any) -> None:
        rounds.append(self.done)
        learn_round(self, train)

    monkeypatch.setattr(RoundsFit, "_round", counted)
    model = fit(frame(spark, folder), checkpoint_dir=folder / "checkpoint", **FIT)
    assert rounds == [2, 3]
    assert contents(model) == undisturbed
    fewer = frame(spark, folder).where("size(indices) > 0 and indices[0] != 3")
    with pytest.raises(DataError, match="4 rounds of a fit with other rows. Pass the same frame and arguments"):
        fit(fewer, checkpoint_dir=folder / "checkpoint", **FIT)
