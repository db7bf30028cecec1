"""The service under load, on 127.0.0.1: what it answers per second, and how long it takes.

    python benchmarks/serving.py [--seconds 5] [--rounds 3] [--only predict,batch,learn,latency]

Rows have 40 named features, 36 categories and 4 numbers. The server is one process; the load comes from wrk (a package
of Debian), and for latencies from a program that sends at a fixed rate, so that a slow answer does not slow down what
is sent. Server and load share the cores of this machine. "empty" is an endpoint of the same application that reads the
body and answers {}; both are measured in turn, round by round, and their ratio is what counts. CPU is that of the
server process per request.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import io
import json
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

FEATURES, NUMBERS = 36, 4
TRAINED = 300_000  # rows: `auto` has settled by then
HELD = 2000  # different rows that are sent


def rows(count: int, seed: int = 1) -> tuple[list[dict[str, Any]], list[int]]:
    """Rows of 40 features, and labels that depend on a few of them."""
    rng = random.Random(seed)
    effect = random.Random(0)
    weight = {(j, v): effect.gauss(0, 0.5) for j in range(8) for v in range(1000)}
    made, labels = [], []
    for _ in range(count):
        row: dict[str, Any] = {}
        score = -3.0
        for j in range(FEATURES):
            value = int(1000 * rng.random() ** 2)
            row[f"category{j}"] = f"value{value}"
            score += weight.get((j, value), 0.0)
        for j in range(NUMBERS):
            row[f"number{j}"] = round(rng.random() * 100, 2)
        made.append(row)
        labels.append(int(rng.random() < 1 / (1 + np.exp(-score))))
    return made, labels


# -- the server, in a process of its own


def serve(folder: str, learner: str) -> None:
    """Train a model, serve it, and print the address."""
    from rarestream import Block, Hashed, Model
    from rarestream.serve.http import Runner, Settings
    from rarestream.serve.options import Options
    from rarestream.serve.process import run_for_long
    from rarestream.serve.service import Service

    model = Model(learner, features=Hashed())
    made, labels = rows(20_000)
    block = Block.of_dicts(made, labels, features=model.features)
    for _ in range(TRAINED // len(made) if learner == "auto" else 1):
        model.learn(block)
    run_for_long()
    service = Service(folder, model, Options(queue_rows=1_000_000))
    runner = Runner(service, Settings(port=0), say=lambda line: print(line, flush=True))
    runner.app._add("POST", "/empty", takes_body=lambda body, headers, query: b"{}")
    runner.run()


@contextlib.contextmanager
def server(learner: str = "auto") -> Iterator[tuple[str, int]]:
    """Yield address and process of a server."""
    folder = tempfile.mkdtemp(prefix="rarestream-bench-")
    words = [sys.executable, __file__, "--serve", folder, "--learner", learner]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().split()[-1], process.pid
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(folder)


def cpu_seconds(pid: int) -> float:
    """Seconds of CPU that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# -- load by wrk


def lua(bodies: list[bytes], kind: str = "application/json") -> str:
    """A script for wrk that sends these bodies in turn, from a file each: bodies may be binary."""
    folder = tempfile.mkdtemp(prefix="rarestream-wrk-")
    for number, body in enumerate(bodies):
        Path(folder, str(number)).write_bytes(body)
    script = f"""
local bodies = {{}}
for i = 0, {len(bodies) - 1} do
  local file = io.open("{folder}/" .. i, "rb")
  bodies[i] = wrk.format("POST", nil, {{["Content-Type"] = "{kind}"}}, file:read("*a"))
  file:close()
end
local at = 0
function request()
  at = (at + 1) % {len(bodies)}
  return bodies[at]
end
"""
    # wrk.format needs the address, which is known only when a thread has begun.
    path = Path(folder, "script.lua")
    path.write_text(
        script.replace("local bodies = {}", "local bodies = {}\nfunction init()", 1).replace(
            "local at = 0", "end\nlocal at = 0", 1
        )
    )
    return str(path)


def wrk(url: str, script: str, seconds: float, connections: int, pid: int) -> dict[str, float]:
    """Requests per second, CPU microseconds of the server per request, p50 and p99 in ms."""
    before = cpu_seconds(pid)
    words = ["wrk", "-t1", f"-c{connections}", f"-d{seconds:g}s", "--latency", "-s", script, url]
    out = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    used = cpu_seconds(pid) - before
    requests = int(re.search(r"(\d+) requests in", out)[1])  # type: ignore[index]
    errors = re.search(r"Non-2xx or 3xx responses: (\d+)", out)
    if errors:
        raise SystemExit(f"serving: {errors[1]} of {requests} answers were errors:\n{out}")
    return {
        "per_second": float(re.search(r"Requests/sec:\s+([\d.]+)", out)[1]),  # type: ignore[index]
        "cpu": used / requests * 1e6,
        "p50": _milliseconds(re.search(r"50%\s+([\d.]+)(\w+)", out)),
        "p99": _milliseconds(re.search(r"99%\s+([\d.]+)(\w+)", out)),
    }


def _milliseconds(found: Any) -> float:
    return float(found[1]) * {"us": 1e-3, "ms": 1.0, "s": 1e3}[found[2]]


# -- load at a fixed rate


async def paced(
    host: str, port: int, requests: list[bytes], rate: float, seconds: float, connections: int
) -> list[float]:
    """Send requests at a rate, whatever the answers do; return how long each took from when it was due."""
    took: list[float] = []
    idle: asyncio.Queue[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = asyncio.Queue()
    for _ in range(connections):
        idle.put_nowait(await asyncio.open_connection(host, port))

    async def one(request: bytes, due: float) -> None:
        reader, writer = await idle.get()
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        if b" 200 " not in head[:20]:
            raise SystemExit(f"serving: {head!r}")
        await reader.readexactly(int(re.search(rb"content-length: (\d+)", head)[1]))  # type: ignore[index]
        took.append(time.perf_counter() - due)
        idle.put_nowait((reader, writer))

    begin = time.perf_counter()
    tasks = set()
    for number in range(int(rate * seconds)):
        due = begin + number / rate
        if (wait := due - time.perf_counter()) > 0:
            await asyncio.sleep(wait)
        task = asyncio.create_task(one(requests[number % len(requests)], due))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
    await asyncio.gather(*tasks)
    return took


def send(address: str, path: str, rate: float, seconds: float, batch: int) -> None:
    """Send requests at a rate, and print the percentiles: a process of its own."""
    host, _, port = address.removeprefix("http://").partition(":")
    made, labels = rows(HELD, 7)
    requests = []
    for begin in range(0, HELD - batch + 1, batch):
        part = made[begin : begin + batch]
        body = {"row": part[0]} if path == "/predict" else {"rows": part, "labels": labels[begin : begin + batch]}
        text = json.dumps(body).encode()
        head = (
            f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {len(text)}\r\n\r\n"
        )
        requests.append(head.encode() + text)
    try:
        import uvloop

        run: Any = uvloop.run
    except ImportError:
        run = asyncio.run
    took = np.array(run(paced(host, int(port), requests, rate, seconds, 64))) * 1e3
    print(*(f"{np.percentile(took, q):.3f}" for q in (50, 90, 99, 99.9)))


# -- what is measured


def measure(seconds: float = 5, rounds: int = 3, only: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Measure everything; print and return it."""
    if shutil.which("wrk") is None:
        print("serving: needs wrk: on Debian and Ubuntu, apt-get install wrk")
        return {}
    found: dict[str, Any] = {}
    wanted = only or frozenset(("predict", "batch", "learn", "latency"))
    with server() as (address, pid):
        print(f"one process, {FEATURES + NUMBERS} named features; server and load share {os.cpu_count()} cores")
        made, labels = rows(HELD, 7)
        if "predict" in wanted:
            found["predict"] = _predict(address, pid, made, seconds, rounds)
        if "batch" in wanted:
            found["batch"] = _batches(address, pid, made, seconds, rounds)
        if "learn" in wanted:
            found["learn"] = _learning(address, pid, made, labels, seconds, rounds)
    if "latency" in wanted:
        with server() as (address, pid):
            found["latency"] = _latencies(address, pid, made, labels, seconds, rounds)
    return found


def _predict(address: str, pid: int, made: list[dict[str, Any]], seconds: float, rounds: int) -> dict[str, float]:
    plain = lua([json.dumps({"row": row}).encode() for row in made])
    results: dict[str, list[dict[str, float]]] = {"empty": [], "predict": []}
    for _ in range(rounds):
        for path in results:
            results[path].append(wrk(f"{address}/{path}", plain, seconds, 16, pid))
    stored = [json.dumps({"row": row, "remember": True}).encode() for row in made]
    results["predict and store"] = [wrk(f"{address}/predict", lua(stored), seconds, 16, pid)]
    shares = [a["per_second"] / b["per_second"] for a, b in zip(results["predict"], results["empty"], strict=True)]
    for name, runs in results.items():
        print(
            f"  {name:18} {statistics.median(run['per_second'] for run in runs):8,.0f} requests/s   "
            f"{statistics.median(run['cpu'] for run in runs):5.1f} us CPU   "
            f"p50 {statistics.median(run['p50'] for run in runs):.2f} ms   "
            f"p99 {statistics.median(run['p99'] for run in runs):.2f} ms"
        )
    share = statistics.median(shares)
    print(f"  predict reaches {share:.0%} of the empty endpoint ({min(shares):.0%} to {max(shares):.0%})")
    return {"share": share, "per_second": statistics.median(run["per_second"] for run in results["predict"])}


def _batches(address: str, pid: int, made: list[dict[str, Any]], seconds: float, rounds: int) -> dict[str, float]:
    import pyarrow as pa

    found = {}
    texts = [json.dumps({"rows": made[i : i + 1000]}).encode() for i in range(0, HELD, 1000)]
    table = pa.Table.from_pylist(made * 5)
    coded = table.select(range(FEATURES)).to_pydict()
    categories = pa.table(
        {name: pa.array(values).dictionary_encode() for name, values in coded.items()}
        | {name: table[name] for name in table.column_names[FEATURES:]}
    )
    for name, kind, bodies, count in (
        ("JSON, 1,000 rows", "application/json", texts, 1000),
        ("Arrow, 10,000 rows of text", "application/vnd.apache.arrow.stream", [_stream(table)], len(table)),
        (
            "Arrow, 10,000 rows of dictionaries",
            "application/vnd.apache.arrow.stream",
            [_stream(categories)],
            len(table),
        ),
    ):
        script = lua(bodies, kind)
        runs = [wrk(f"{address}/predict", script, seconds, 4, pid) for _ in range(rounds)]
        per_second = statistics.median(run["per_second"] for run in runs) * count
        cpu = statistics.median(run["cpu"] for run in runs) / count
        print(f"  batch predict, {name:35} {per_second:10,.0f} rows/s   {cpu:5.2f} us CPU a row")
        found[name] = per_second
    return found


def _stream(table: Any) -> bytes:
    import pyarrow as pa

    out = io.BytesIO()
    with pa.ipc.new_stream(out, table.schema) as stream:
        stream.write_table(table.combine_chunks())
    return out.getvalue()


def _learning(
    address: str, pid: int, made: list[dict[str, Any]], labels: list[int], seconds: float, rounds: int
) -> dict[str, float]:
    found = {}
    for batch, connections in ((1, 64), (10, 32), (100, 16)):
        bodies = [
            json.dumps({"rows": made[i : i + batch], "labels": labels[i : i + batch]}).encode()
            for i in range(0, HELD, batch)
        ]
        script = lua(bodies)
        runs = [wrk(f"{address}/learn", script, seconds, connections, pid) for _ in range(rounds)]
        per_second = statistics.median(run["per_second"] for run in runs) * batch
        p99 = statistics.median(run["p99"] for run in runs)
        cpu = statistics.median(run["cpu"] for run in runs) / batch
        print(
            f"  durable learn, {batch:3} rows a request {per_second:8,.0f} rows/s   {cpu:5.2f} us CPU a row   "
            f"p99 {p99:.1f} ms"
        )
        found[str(batch)] = per_second
    return found


def _latencies(
    address: str, pid: int, made: list[dict[str, Any]], labels: list[int], seconds: float, rounds: int
) -> dict[str, float]:
    """Predictions at a fixed rate, alone and while rows are learned at half of full load."""
    batch, rate = 100, 500.0
    bodies = [
        json.dumps({"rows": made[i : i + batch], "labels": labels[i : i + batch]}).encode()
        for i in range(0, HELD, batch)
    ]
    full = wrk(f"{address}/learn", lua(bodies), seconds, 16, pid)["per_second"]
    sending = [sys.executable, __file__, "--send", address]
    predicting = [*sending, "--path", "/predict", "--rate", str(rate), "--seconds", str(seconds)]
    learning = [
        *sending,
        "--path",
        "/learn",
        "--rate",
        str(full / 2),
        "--seconds",
        str(seconds + 3),
        "--batch",
        str(batch),
    ]
    alone, beside = [], []
    for _ in range(rounds):
        out = subprocess.run(predicting, capture_output=True, text=True, check=True).stdout
        alone.append([float(number) for number in out.split()])
        learner = subprocess.Popen(learning, stdout=subprocess.DEVNULL)
        time.sleep(1.5)
        out = subprocess.run(predicting, capture_output=True, text=True, check=True).stdout
        beside.append([float(number) for number in out.split()])
        learner.wait()
    print(f"  {rate:,.0f} predictions/s; rows learned at half of full load: {full * batch / 2:,.0f} rows/s")
    found = {}
    for name, runs in (("alone", alone), ("while learning", beside)):
        shown = [statistics.median(run[i] for run in runs) for i in range(4)]
        print(
            f"  predict {name:15} p50 {shown[0]:.2f}  p90 {shown[1]:.2f}  p99 {shown[2]:.2f}  p99.9 {shown[3]:.2f} ms"
        )
        found[name] = shown[2]
    found["ratio"] = found["while learning"] / found["alone"]
    print(f"  p99 while learning is {found['ratio']:.2f} times that without")
    return found


def main() -> None:
    given = argparse.ArgumentParser()
    given.add_argument("--seconds", type=float, default=5)
    given.add_argument("--rounds", type=int, default=3)
    given.add_argument("--only", default="")
    given.add_argument("--serve")
    given.add_argument("--learner", default="auto")
    given.add_argument("--send")
    given.add_argument("--path", default="/predict")
    given.add_argument("--rate", type=float, default=500)
    given.add_argument("--batch", type=int, default=1)
    words = given.parse_args()
    if words.serve:
        serve(words.serve, words.learner)
    elif words.send:
        send(words.send, words.path, words.rate, words.seconds, words.batch)
    else:
        measure(words.seconds, words.rounds, frozenset(words.only.split(",")) - {""})


if __name__ == "__main__":
    main()
