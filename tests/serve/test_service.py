"""The service: what is acknowledged is on disk and applied, in order; what fails is said, and loses nothing."""

from __future__ import annotations

import asyncio
import errno
import os
import random
import shutil
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rarestream import ModelFileError
from rarestream.serve import entries, upkeep
from rarestream.serve.errors import RequestError
from rarestream.serve.log import LogDamagedError, SegmentLog, StateLockedError, segment_log
from rarestream.serve.messages import IdLabel, PredictOne
from rarestream.serve.options import Options
from rarestream.serve.recovery import log_folder, restored, snapshots_of
from rarestream.serve.replica import Replica
from rarestream.serve.service import Service
from tests.serve.states import named_model, row, text

MODEL = named_model()
ROW = '{"site":"s1","n":2}'


def run(work: Callable[[], Awaitable[Any]]) -> Any:
    async def limited() -> Any:
        async with asyncio.timeout(120):  # ends a wait that would never end
            return await work()

    return asyncio.run(limited())


async def started(folder: Path, **options: Any) -> Service:
    service = Service(folder, MODEL, Options(**options))
    await service.start()
    return service


def replayed(folder: Path) -> dict[str, bytes]:
    """The state of a directory by its oldest snapshot and the log."""
    log = SegmentLog.open(log_folder(folder), read_only=True)
    snapshots = snapshots_of(folder)
    return restored(snapshots.load(snapshots.sequences()[0]), log).files()


def log_of(folder: Path) -> list[entries.Entry]:
    return [entries.decode(record) for record in SegmentLog.open(log_folder(folder), read_only=True).read()]


async def refusal(work: Awaitable[Any]) -> RequestError:
    with pytest.raises(RequestError) as refused:
        await work
    return refused.value


def test_what_is_acknowledged_is_on_disk_and_applied(tmp_path):
    async def work() -> None:
        service = await started(tmp_path)
        learned = await service.learn(text([ROW, ROW]), [1, 0])
        assert (learned.learned, learned.sequence, service.sequence) == (2, 2, 2)
        assert service.answering.rows == MODEL.rows + 2
        shutil.copytree(tmp_path, tmp_path.parent / "copy")  # as a power cut would leave it
        assert service.state.files() == replayed(tmp_path.parent / "copy")
        await service.stop()

    run(work)
    assert snapshots_of(tmp_path).sequences() == [0, 2]


def test_requests_at_once_are_applied_in_the_order_of_the_log(tmp_path):
    async def work() -> None:
        service = await started(tmp_path)
        rng = random.Random(1)
        parts = [[row(rng) for _ in range(rng.choice([1, 5, 400]))] for _ in range(40)]
        answers = await asyncio.gather(
            *(service.learn(text([one[0] for one in part]), [one[1] for one in part]) for part in parts)
        )
        assert sorted(answer.sequence for answer in answers)[-1] == sum(map(len, parts)) == service.sequence
        assert service.state.files() == replayed(tmp_path)
        await service.stop()

    run(work)


def test_labels_find_their_rows_also_after_a_restart(tmp_path):
    async def work() -> None:
        service = await started(tmp_path)
        prediction = await service.predict(text([ROW, ROW, ROW]), ["a", "b", "c"])
        assert (prediction.stored, prediction.ids) == (3, ["a", "b", "c"])
        assert (await service.predict(text([ROW]), ["a"])).stored == 0
        first = await service.label([IdLabel("a", 1), IdLabel("none", 0)])
        assert (first.learned, first.unknown) == (1, ["none"])
        await service.stop()
        service = await started(tmp_path)
        assert service.state.waiting == 2
        again = await service.label([IdLabel("a", 1), IdLabel("b", 0)])
        assert (again.learned, again.duplicate) == (1, ["a"])
        await service.stop()

    run(work)


@pytest.mark.parametrize(("rule", "learned"), [("drop", 0), ("negative", 2)])
def test_rows_without_a_label_expire(tmp_path, rule, learned, monkeypatch):
    async def work() -> None:
        service = await started(tmp_path, label_wait=10.0, unlabelled=rule)
        await service.predict(text([ROW, ROW]), ["a", "b"])
        monkeypatch.setattr(service, "_last_time", time.time() + 15)
        late = await service.label([IdLabel("a", 1)])
        assert (late.learned, late.late) == (0, ["a"])
        assert service.answering.rows == MODEL.rows + learned and service.state.waiting == 0
        await service.stop()

    run(work)


def test_a_key_is_learned_once(tmp_path):
    async def work() -> None:
        service = await started(tmp_path)
        both = await asyncio.gather(*(service.learn(text([ROW]), [1], key="k") for _ in range(5)))
        assert sorted(answer.repeated for answer in both) == [False, True, True, True, True]
        assert {answer.sequence for answer in both} == {1}
        reused = await refusal(service.learn(text([ROW]), [0], key="k"))
        assert (reused.status, reused.code) == (422, "key_reused")
        await service.stop()
        service = await started(tmp_path)
        again = await service.learn(text([ROW]), [1], key="k")
        assert again.repeated and again.sequence == 1 and service.answering.rows == MODEL.rows + 1
        await service.stop()

    run(work)


def test_a_full_queue_is_refused_and_predictions_go_on(tmp_path):
    async def work() -> None:
        service = await started(tmp_path, queue_rows=3)
        first = asyncio.ensure_future(service.learn(text([ROW] * 3), [1, 0, 1]))
        await asyncio.sleep(0)
        busy = await refusal(service.learn(text([ROW]), [1]))
        assert (busy.status, busy.retry_after) == (429, 1)
        prediction = await service.predict(text([ROW]), ["a"])
        assert prediction.stored == 0 and prediction.ids is None
        assert (await first).learned == 3
        assert (await service.learn(text([ROW]), [1])).learned == 1
        await service.stop()

    run(work)


def test_a_full_disk_refuses_learning_until_there_is_space(tmp_path, monkeypatch):
    async def work() -> None:
        service = await started(tmp_path)
        await service.learn(text([ROW]), [1])

        def full(*_: object) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

        with monkeypatch.context() as patched:
            patched.setattr(segment_log.os, "writev", full)
            refused = await refusal(service.learn(text([ROW]), [1], key="k"))
            assert (refused.status, refused.code) == (507, "disk_full")
            assert not service.model().learning
            assert service.predict_one(PredictOne(msgspec.Raw(ROW.encode()))).scores
            stored = await service.predict(text([ROW]), ["a"])
            assert stored.scores and stored.stored == 0
        assert (await service.learn(text([ROW]), [1], key="k")).learned == 1
        assert service.model().learning and service.state.files() == replayed(tmp_path)
        await service.stop()

    run(work)


def test_a_disk_that_fails_ends_learning_until_a_restart(tmp_path, monkeypatch):
    async def work() -> None:
        service = await started(tmp_path)
        await service.learn(text([ROW]), [1])

        def fails(*_: object) -> None:
            raise OSError(errno.EIO, "Input/output error")

        with monkeypatch.context() as patched:
            patched.setattr(segment_log, "fdatasync", fails)
            assert (await refusal(service.learn(text([ROW]), [1]))).status == 503
        assert (await refusal(service.learn(text([ROW]), [1]))).code == "log_broken"
        assert service.predict_one(PredictOne(msgspec.Raw(ROW.encode()))).scores
        assert (await service.predict(text([ROW]), ["a"])).stored == 0
        await service.stop()
        service = await started(tmp_path)
        assert (await service.learn(text([ROW]), [1])).learned == 1
        await service.stop()

    run(work)


def test_a_clock_that_goes_back_does_not_matter(tmp_path, monkeypatch):
    async def work() -> None:
        service = await started(tmp_path, label_wait=10.0)
        await service.predict(text([ROW]), ["a"])
        monkeypatch.setattr(time, "time", lambda: 1000.0)
        assert (await service.label([IdLabel("a", 1)])).learned == 1
        await service.stop()
        service = await started(tmp_path, label_wait=10.0)
        await service.predict(text([ROW]), ["b"])
        assert (await service.label([IdLabel("b", 1)])).learned == 1
        await service.stop()

    run(work)
    times = [entry.time for entry in log_of(tmp_path)]
    assert times == sorted(times)


def test_one_service_per_directory_and_one_first_model(tmp_path):
    async def work() -> None:
        service = await started(tmp_path)
        with pytest.raises(StateLockedError, match="in use"):
            await started(tmp_path)
        await service.stop()
        other = Service(tmp_path, named_model(7))
        with pytest.raises(ModelFileError, match="began with another model"):
            await other.start()
        service = Service(tmp_path)  # the lock was released
        await service.start()
        await service.stop()

    run(work)


def test_the_gate_lets_better_models_through_and_no_worse_ones(tmp_path, monkeypatch):
    monkeypatch.setattr(upkeep, "CONTROL", 0.01)
    rng = random.Random(1)

    async def work() -> None:
        service = Service(tmp_path, named_model(1, "dual-auc"))
        await service.start()
        good = named_model(1, "dual-auc")
        await service.start_shadow(good.to_bytes(), "manual", 10**6, 0.0)
        closed = await refusal(service.promote())
        assert (closed.status, closed.code) == (409, "gate_closed")
        await service.stop_shadow()
        assert (await refusal(service.promote())).status == 404
        await service.start_shadow(named_model(3000, seed=9).to_bytes(), "auto", 20, 0.4)
        while service.version == 1:
            rows = [row(rng) for _ in range(50)]
            await service.learn(text([one[0] for one in rows]), [one[1] for one in rows])
            await asyncio.sleep(0.01)
        assert service.state.shadow is None
        assert service.state.files() == replayed(tmp_path)
        await service.stop()

    run(work)


def test_a_read_only_service_follows_snapshots(tmp_path):
    async def work() -> None:
        service = await started(tmp_path)
        replica = Replica(tmp_path, every=0.01)
        await replica.start()
        assert (await refusal(replica.learn(text([ROW]), [1]))).status == 403
        await service.learn(text([ROW] * 5), [1, 0, 1, 0, 1])
        assert await service.snapshot() == 5
        while replica.sequence < 5:
            await asyncio.sleep(0.01)
        body = PredictOne(msgspec.Raw(ROW.encode()))
        assert replica.predict_one(body).scores == service.predict_one(body).scores
        await replica.stop()
        await service.stop()

    run(work)


def test_predictions_are_answered_while_a_long_request_is_learned(tmp_path):
    async def work() -> None:
        service = await started(tmp_path)
        rng = random.Random(1)
        rows = [row(rng) for _ in range(10_000)]
        learning = asyncio.ensure_future(service.learn(text([one[0] for one in rows]), [one[1] for one in rows]))
        seen = []
        while not learning.done():
            seen.append(service.predict_one(PredictOne(msgspec.Raw(ROW.encode()))).rows)
            await asyncio.sleep(0)
        assert len(set(seen)) > 5, "states between the first and the last row"
        assert seen == sorted(seen)
        await service.stop()

    run(work)


def test_a_service_that_stops_loses_nothing_that_it_acknowledged(tmp_path):
    async def work() -> None:
        service = await started(tmp_path, label_wait=10.0, unlabelled="negative")
        await service.predict(text([ROW] * 2000), [str(n) for n in range(2000)])
        service._last_time = time.time() + 60
        service.submit(entries.Tick(service.now()), 0)  # 2,000 rows are learned in slices now
        rows = text([ROW] * 3000)
        asked = [asyncio.ensure_future(service.learn(rows, [1, 0] * 1500)) for _ in range(5)]
        await asyncio.sleep(0)
        stopping = asyncio.ensure_future(service.stop())
        found = await asyncio.gather(*asked, return_exceptions=True)
        await stopping
        learned = [answer for answer in found if not isinstance(answer, BaseException)]
        assert all(error.status == 503 for error in found if isinstance(error, RequestError))
        again = Service(tmp_path)
        await again.start()
        assert again.answering.rows == MODEL.rows + 2000 + 3000 * len(learned)
        assert again.state.files() == replayed(tmp_path)
        await again.stop()

    run(work)


def test_after_a_crash_a_snapshot_is_one_of_what_was_replayed(tmp_path):
    async def work() -> None:
        service = await started(tmp_path / "state")
        await service.learn(text([ROW] * 4), [1, 0, 1, 0])
        shutil.copytree(tmp_path / "state", tmp_path / "crashed")
        await service.stop()
        service = Service(tmp_path / "crashed")
        await service.start()
        assert await service.snapshot() == 4
        assert snapshots_of(tmp_path / "crashed").sequences() == [0, 4]
        await service.stop()

    run(work)


def test_a_damaged_snapshot_gives_way_to_an_older_one(tmp_path):
    async def work() -> None:
        service = await started(tmp_path)
        await service.learn(text([ROW] * 4), [1, 0, 1, 0])
        expected = service.state.files()
        await service.stop()
        damaged = tmp_path / "snapshots" / f"{4:020}" / "model.rare"
        damaged.write_bytes(damaged.read_bytes()[:-1])
        service = Service(tmp_path)
        await service.start()
        assert service.state.files() == expected
        await service.stop()

    run(work)
    assert snapshots_of(tmp_path).problem(4) is None, "it was written again"


def test_a_log_that_is_damaged_in_the_middle_is_not_used(tmp_path):
    async def work() -> None:
        service = await started(tmp_path)
        for _ in range(20):
            await service.learn(text([ROW]), [1])
        shutil.copytree(tmp_path, tmp_path.parent / "damaged")
        await service.stop()
        [file] = (tmp_path.parent / "damaged" / "log").glob("*.log")
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 1
        file.write_bytes(data)
        with pytest.raises(LogDamagedError, match=r"rarestream log repair"):
            await Service(tmp_path.parent / "damaged").start()

    run(work)


def test_a_log_that_is_cut_anywhere_is_replayed_up_to_there(tmp_path):
    """What a crash may leave: the log up to any byte."""

    async def work() -> None:
        service = await started(tmp_path / "state")
        states = {0: service.state.files()}
        for number in range(4):
            await service.learn(text([ROW] * (number + 1)), [number % 2] * (number + 1), key=str(number))
            states[service.sequence] = service.state.files()
        shutil.copytree(tmp_path / "state", tmp_path / "whole")
        await service.stop()
        [file] = (tmp_path / "whole" / "log").glob("*.log")
        data = file.read_bytes()
        found = set()
        for size in range(0, len(data) + 1, 3):
            file.write_bytes(data[:size])
            copy = tmp_path / f"copy{size}"
            shutil.copytree(tmp_path / "whole", copy)
            again = Service(copy)
            await again.start()
            assert again.state.files() == states[again.sequence]
            found.add(again.sequence)
            assert (await again.learn(text([ROW]), [1])).sequence == again.sequence
            os.unlink(copy / "lock")
            await again.stop()
            shutil.rmtree(copy)
        assert found == set(states)

    run(work)


def test_a_short_answer_is_that_of_the_long_way(tmp_path):
    rng = random.Random(3)

    async def work() -> None:
        service = await started(tmp_path)
        for _ in range(20):
            line, label = row(rng)
            body = f'{{"row": {line}}}'.encode()
            short = service.answer_one(body)
            assert short is not None
            long = service.predict_one(msgspec.json.decode(body, type=PredictOne))
            assert msgspec.json.decode(short) == msgspec.to_builtins(long)
            await service.learn(text([line]), [label])
        for unusual in (
            b'{"row": {"a": 1}, "id": "x"}',
            b'{"row": {"a": 1}} ',
            b'{"row": {"a": 1}}}',
            b'{"row": {"a": 1}, "row": {"b": 1}}',
            b'{"row": {"a": }}',
            b'{"row": 7}',
            b'{"row":}',
            b'{"rows": [{"a": 1}]}',
            b"",
        ):
            assert service.answer_one(unusual) is None
        await service.stop()

    run(work)
