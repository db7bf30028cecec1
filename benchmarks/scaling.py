"""What a round of learning in groups costs, measured on one core, and what that gives on a cluster.

    python benchmarks/scaling.py [--learners dual-logistic,evidence,auto] [--bits 22,24] [--sizes 32768,131072,524288]
        [--groups 4,16,64] [--check 26:524288:16] [--repeats 3] [--json FILE] [the assumptions, below]
    python benchmarks/scaling.py --show FILE [the assumptions]

The rows are those of a click log (shapes.py, "avazu": 15 fields, hashed into 2^bits slots), made up and seeded. For
every number of slots, rows of a round, and groups, each piece of a round is timed in CPU seconds on one core, smallest
of the repeats: encoding and decoding the state, learning the rows of a group, packing and unpacking what it has
learned, merging. A linear model is fitted to each piece, by least squares of the logarithm of predicted / measured,
with constants that are not negative:

    encode = a + b features + c slots          learn  = a + b non-zeros + c touched + d slots
    decode = a + b features + c slots          pack   = a + b touched
    unpack = a + b groups + c received         merge  = a + b groups + c received + d union + e slots

features: that the state has; slots: 2^bits; touched: features of a group's rows; received: their sum over the groups;
union: features of all rows of the round. The tables are larger than the caches of a core: with fewer slots all is
quicker than the model says. The experiment of --check is predicted, not fitted.

A round on a cluster is the sum of the pieces, each with one group's or the driver's share, and of what the network and
Spark add, which are assumptions: see --help. With merging by ranges, executors merge a range of the features each, and
the driver receives the union once.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import least_squares

import bench
import machine
import shapes
import timing
from groups import SETTINGS, table
from rarestream import Block, Model, read
from rarestream.groups import Part, auto_rounds, merge, train_group
from rarestream.groups.fitting import Copies
from rarestream.learners import make_learner

PIECES = {  # and what the time of each depends on, beside a constant
    "encode": ("features", "slots"),
    "decode": ("features", "slots"),
    "learn": ("nonzeros", "touched", "slots"),
    "pack": ("touched",),
    "unpack": ("groups", "received"),
    "merge": ("groups", "received", "union", "slots"),
}
CURVE_BITS, CURVE_ROWS = 24, 1 << 21  # of the rows whose features are counted
BLOCK_ROWS = 4096
RACE = ([20, 22], [16_384, 65_536], [4, 16])  # bits, rows and groups of the experiments with a race
FORECAST_BITS, FORECAST_GROUPS = (20, 24, 28), (1, 4, 16, 64, 256, 1024)

Amounts = dict[str, float]
Constants = dict[str, list[float]]  # of each piece: seconds, then seconds for one of each thing


@dataclass(frozen=True)
class Assumed:
    """What is not measured here."""

    rows: float = 1e10
    gigabits: float = 10.0  # of network, each machine
    broadcast: float = 2.0  # times that the state goes over a machine's network, in Spark's broadcast
    cores: int = 16  # of a machine
    overhead: float = 1.0  # seconds of a Spark job
    blocks: float = 500.0  # MB/s at which Spark hands packed blocks to a core
    pack: float = 200_000.0  # rows/s that a core reads and packs: what spark_read.py measures with 15 non-zeros


# -- measuring


def measure(args: argparse.Namespace) -> dict[str, Any]:
    """All that is measured."""
    found: dict[str, Any] = {"rates": rates(args.repeats), "curve": curve(), "learners": {}}
    for word in args.learners:
        race = word == "auto"  # whose settings have many numbers: fewer experiments
        bits, sizes, groups = RACE if race else (args.bits, args.sizes, args.groups)
        experiments = [one for b in bits for rows in sizes for one in experiment(word, b, rows, groups, args.repeats)]
        checked = [] if race else args.check
        checks = [one for b, rows, g in checked for one in experiment(word, b, rows, [g], args.repeats)]
        found["learners"][word] = {"experiments": experiments, "checks": checks}
    return found


@lru_cache(maxsize=2)
def click_rows(bits: int, rows: int) -> Block:
    """Rows of the click log with so many slots."""
    return shapes.rows(replace(shapes.SHAPES["avazu"], d=1 << bits), rows)


def cut(rows: Block, size: int) -> list[Block]:
    return [rows[at : at + size] for at in range(0, len(rows), size)]


def seconds(prepare: Callable[[], Callable[[], Any]], repeats: int) -> float:
    """The CPU seconds of what `prepare` returns, on one core; the smallest of the repeats."""
    return timing.interleaved({"": timing.timed(prepare)}, repeats)[""].cpu


def in_groups(state: bytes, blocks: Sequence[Block], groups: int) -> list[Part]:
    """What each of the groups has learned, the blocks in turn."""
    of, copies, parts = sum(map(len, blocks)), Copies(state), []
    for group in range(groups):
        mine = blocks[group::groups]
        parts.append(train_group(copies.next(), mine, rows=sum(map(len, mine)), of=of))
        copies.take_back(parts[-1])
    return parts


def experiment(word: str, bits: int, rows: int, groups: Sequence[int], repeats: int) -> list[dict[str, Any]]:
    """The amounts and seconds of each piece of a round, after a round of as many rows, for each number of groups."""
    learner = SETTINGS.get(word) or make_learner(word)
    everything = click_rows(bits, 2 * rows)
    before, after = everything[:rows], everything[rows:]
    empty = Model(learner, n_features=1 << bits)
    base = merge(empty, in_groups(empty.to_bytes(), cut(before, BLOCK_ROWS), 2))
    state = base.to_bytes()
    shared = {
        "slots": 1 << bits,
        "rows": rows,
        "features": len(np.unique(before.indices)),
        "union": len(np.unique(after.indices)),
        "settings": len(base._engine.candidates),
        "state bytes": len(state),
    }
    both = {
        "encode": seconds(lambda: base.to_bytes, repeats),
        "decode": seconds(lambda: partial(Model.from_bytes, state), repeats),
    }
    found = []
    for number in groups:
        blocks = cut(after, max(1, min(BLOCK_ROWS, rows // (number * 4))))
        parts = in_groups(state, blocks, number)
        packed, first = [part.to_bytes() for part in parts], blocks[::number]
        sizes = [len(part.change.features) for part in parts if part.change is not None]
        amounts = {
            **shared,
            "groups": number,
            "nonzeros": sum(block.nonzeros for block in first),
            "touched": sizes[0],
            "received": sum(sizes),
            "part bytes": len(packed[0]),
        }
        train = partial(train_group, blocks=first, rows=sum(map(len, first)), of=rows)
        times = {
            **both,
            "learn": seconds(lambda: partial(train, Model.from_bytes(state)), repeats),  # noqa: B023
            "pack": seconds(lambda: parts[0].to_bytes, repeats),  # noqa: B023
            "unpack": seconds(lambda: lambda: [Part.from_bytes(one) for one in packed], repeats),  # noqa: B023
            "merge": seconds(lambda: partial(merge, Model.from_bytes(state), parts), repeats),  # noqa: B023
        }
        shown = "  ".join(f"{name} {1e3 * time:.1f}" for name, time in times.items())
        print(f"{word:14} 2^{bits} slots, {rows:,} rows, {number} groups, ms: {shown}", flush=True)
        found.append({"amounts": amounts, "seconds": times})
    return found


def rates(repeats: int) -> dict[str, float]:
    """Rows and bytes per second of one core, without groups."""
    rows = click_rows(20, 200_000)
    blocks = cut(rows, BLOCK_ROWS)
    found = {}

    def learn(word: str) -> Callable[[], Any]:
        model = Model(word, n_features=1 << 20)
        return lambda: [model.learn(block) for block in blocks]

    for word in ("dual-logistic", "auto"):
        found[f"{word}, rows/s"] = len(rows) / seconds(partial(learn, word), repeats)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.svm"
        machine.write_text(path, rows)
        found["svmlight text read, rows/s"] = len(rows) / seconds(lambda: lambda: list(read(path)), repeats)
    try:
        from rarestream.spark.packing import block_from_bytes, block_to_bytes
    except ImportError:
        return found
    packed = [block_to_bytes(block) for block in blocks]
    size = sum(map(len, packed)) / 1e6
    found["packed blocks, bytes a non-zero"] = 1e6 * size / rows.nonzeros
    found["blocks packed, MB/s"] = size / seconds(lambda: lambda: [block_to_bytes(one) for one in blocks], repeats)
    found["blocks unpacked, MB/s"] = size / seconds(lambda: lambda: [block_from_bytes(one) for one in packed], repeats)
    return found


def curve() -> list[tuple[int, int]]:
    """How many features so many rows have."""
    rows = click_rows(CURVE_BITS, CURVE_ROWS)
    ends = [1 << power for power in range(12, int(math.log2(CURVE_ROWS)) + 1)]
    return [(end, len(np.unique(rows.indices[: rows.indptr[end]]))) for end in ends]


# -- the model


def fit(experiments: Sequence[Mapping[str, Any]]) -> Constants:
    """The constants of each piece: least squares of log(predicted / measured), none of them negative."""
    found: Constants = {}
    for piece, names in PIECES.items():
        times = np.array([one["seconds"][piece] for one in experiments])
        things = np.array([[1.0, *(one["amounts"][name] for name in names)] for one in experiments])
        scale = things.max(axis=0)
        things /= scale

        def errors(logarithms: Any, things: Any = things, times: Any = times) -> Any:
            return np.log(things @ np.exp(logarithms) / times)

        start = np.log((times[:, np.newaxis] / things).min(axis=0) / len(scale))
        found[piece] = (np.exp(least_squares(errors, start).x) / scale).tolist()
    return found


def predicted(constants: Constants, amounts: Mapping[str, float]) -> dict[str, float]:
    """The seconds of each piece."""
    return {
        piece: float(np.dot(constants[piece], [1.0, *(amounts[name] for name in names)]))
        for piece, names in PIECES.items()
    }


def power_law(found: Sequence[Sequence[int]]) -> tuple[float, float]:
    """a, b of features = a rows^b, of the longer half of a curve."""
    rows, features = np.array(found[len(found) // 2 :], float).T
    b, log_a = np.polyfit(np.log(rows), np.log(features), 1)
    return float(np.exp(log_a)), float(b)


def distinct(law: tuple[float, float], rows: float, slots: float) -> float:
    """Features of so many rows: the law goes on, and hashing puts them into slots."""
    return slots * -math.expm1(-law[0] * rows ** law[1] / slots) if rows > 0 else 0.0


@dataclass(frozen=True)
class Forecast:
    """Seconds of all rounds."""

    rounds: int
    learn: float  # in a group, with reading packed blocks
    state: float  # to encode, send and decode
    driver: float  # to receive and merge
    overhead: float
    into_driver: float  # bytes, in the last round
    memory: float  # bytes of a machine whose cores all learn, in the last round

    @property
    def total(self) -> float:
        return self.learn + self.state + self.driver + self.overhead


def forecast(
    constants: Constants,
    sizes: tuple[float, float],
    law: tuple[float, float],
    nonzeros: float,
    slots: int,
    groups: int,
    given: Assumed,
    *,
    ranges: bool = False,
) -> Forecast:
    """What all rounds take; `sizes` are the bytes of a feature in the state and in a part."""
    rounds = auto_rounds(groups)
    bandwidth = given.gigabits * 1e9 / 8
    machines = math.ceil(groups / given.cores)
    block_bytes = 8 * nonzeros + 9
    learn = state = driver = overhead = into = features = 0.0
    for number in range(rounds):
        mine = given.rows / rounds / groups
        features = distinct(law, given.rows * number / rounds, slots)
        touched, union = distinct(law, mine, slots), distinct(law, given.rows / rounds, slots)
        amounts = {"features": features, "slots": slots, "nonzeros": nonzeros * mine, "touched": touched}
        amounts["groups"] = groups
        pieces = predicted(constants, {**amounts, "received": groups * touched, "union": union})
        learn += pieces["learn"] + mine * block_bytes / (given.blocks * 1e6)
        if groups == 1:  # on one machine, nothing is sent
            continue
        sent = sizes[0] * features
        state += pieces["encode"] + pieces["decode"] + given.broadcast * sent / bandwidth
        overhead += given.overhead * (1.5 if ranges else 1)  # the job has a second stage
        into = sizes[1] * (union if ranges else groups * touched)
        driver += pieces["pack"] + into / bandwidth
        if ranges:  # all machines exchange parts, their cores merge; the driver takes the result over
            shuffled = sizes[1] * groups * touched / machines
            driver += shuffled / bandwidth + (pieces["unpack"] + pieces["merge"]) / groups
            driver += predicted(constants, {**amounts, "received": union, "union": union})["unpack"]
        else:
            driver += pieces["unpack"] + pieces["merge"]
    final = distinct(law, given.rows, slots)
    workers = min(groups, given.cores)
    memory = workers * ((sizes[1] - 4) * slots + sizes[0] * final)  # the table, and the bytes it was decoded from
    return Forecast(rounds, learn, state, driver, overhead, into, memory)


# -- showing


def sections(found: Mapping[str, Any], given: Assumed) -> dict[str, str]:
    """What was measured, the model's errors, and what it foretells, in Markdown."""
    learners = found["learners"]
    return {
        "rates": rates_text(found["rates"]),
        "curve": curve_text(found["curve"]),
        **{f"model-{word}": learner_text(word, one) for word, one in learners.items()},
        **{
            f"forecast-{word}": forecast_text(word, one, found, given)
            for word, one in learners.items()
            if one["checks"]
        },
    }


def rates_text(known: Mapping[str, float]) -> str:
    rows = [[name, f"{number:.3g}" if number < 100 else f"{number:,.0f}"] for name, number in known.items()]
    return "One core, without groups:\n\n" + table(["what", "measured"], rows)


def curve_text(known: Sequence[Sequence[int]]) -> str:
    (a, b), start = power_law(known), known[len(known) // 2][0]
    rows = [[f"{n:,}", f"{features:,}", f"{a * n**b:,.0f}"] for n, features in known]
    about = f"Different features of so many rows. The law, fitted from {start:,} rows on: {a:.3g} rows^{b:.3f}.\n\n"
    return about + table(["rows", "features", "law"], rows)


def learner_text(word: str, one: Mapping[str, Any]) -> str:
    experiments, checks = one["experiments"], one["checks"]
    constants, sizes = fit(experiments), bytes_of(experiments)
    settings = experiments[0]["amounts"]["settings"]
    counted = f"{settings} setting{'s' * (settings > 1)}"
    about = f"`{word}`: {counted}, {sizes[0]:.1f} bytes for a feature in the state, {sizes[1]:.1f} in a part.\n\n"
    rows = []
    for piece, names in PIECES.items():
        pairs = zip(names, constants[piece][1:], strict=True)
        rows.append(
            [piece, f"{1e3 * constants[piece][0]:.2f} ms", ", ".join(f"{_nanoseconds(c)} ({n})" for n, c in pairs)]
        )
    text = about + table(["piece", "constant", "for one of these"], rows)
    rows = []
    for kind, some in (("", experiments), (", not fitted", checks)):
        for known in some:
            guess, amounts = predicted(constants, known["amounts"]), known["amounts"]
            cells = [f"{1e3 * known['seconds'][piece]:.1f} / {1e3 * guess[piece]:.1f}" for piece in PIECES]
            error = sum(guess.values()) / sum(known["seconds"].values()) - 1
            slots = f"2^{int(math.log2(amounts['slots']))}{kind}"
            rows.append([slots, f"{amounts['rows']:,}", str(amounts["groups"]), *cells, f"{100 * error:+.0f} %"])
    heading = ["slots", "rows", "groups", *PIECES, "error of the sum"]
    return text + "\n\nMilliseconds measured / predicted:\n\n" + table(heading, rows)


def forecast_text(word: str, one: Mapping[str, Any], found: Mapping[str, Any], given: Assumed) -> str:
    experiments, law = one["experiments"], power_law(found["curve"])
    constants, sizes = fit(experiments), bytes_of(experiments)
    amounts = max((known["amounts"] for known in experiments), key=lambda known: known["nonzeros"])
    nonzeros = amounts["nonzeros"] * amounts["groups"] / amounts["rows"]
    rows = []
    for bits in FORECAST_BITS:
        known = [
            [forecast(constants, sizes, law, nonzeros, 1 << bits, groups, given, ranges=by) for by in (False, True)]
            for groups in FORECAST_GROUPS
        ]
        least = min(one.total for pair in known for one in pair)
        for groups, (plain, ranged) in zip(FORECAST_GROUPS, known, strict=True):
            totals = [f"{one.total:,.0f}{' (least)' * (one.total == least)}" for one in (plain, ranged)]
            pieces = [f"{number:,.0f}" for number in (plain.learn, plain.state, plain.driver, plain.overhead)]
            gigabytes = f"{plain.into_driver / 1e9:.2f} / {ranged.into_driver / 1e9:.2f}"
            last = ["-", "-"] if groups == 1 else [totals[1], gigabytes]
            shown = [
                f"2^{bits}",
                f"{groups:,}",
                f"{plain.rounds}",
                *pieces,
                totals[0],
                *last,
                f"{plain.memory / 1e9:.1f}",
            ]
            rows.append(shown)
    about = (
        f"`{word}`, {given.rows:.3g} rows of {nonzeros:.1f} non-zeros. Assumed: {given.gigabits:g} Gbit/s, "
        f"{given.cores} cores a machine, {given.overhead:g} s for a Spark job, the state sent "
        f"{given.broadcast:g} times over each machine's "
        f'network, packed blocks handed to a core at {given.blocks:g} MB/s. Seconds of all rounds; "by ranges": with '
        "executors that merge ranges of features; GB in: into the driver in the last round, without / with ranges; GB "
        "memory: of a machine whose cores all learn.\n\n"
    )
    heading = [
        "slots",
        "groups",
        "rounds",
        "learn",
        "state",
        "driver",
        "Spark",
        "total",
        "by ranges",
        "GB in",
        "GB memory",
    ]
    packing = [f"{cores:,} cores {given.rows / given.pack / cores:,.0f} s" for cores in (given.cores, 64, 256, 1024)]
    before = f"Before, rows are read and packed; at {given.pack:,.0f} rows/s a core, assumed: {', '.join(packing)}."
    return about + table(heading, rows) + "\n\n" + before


def _nanoseconds(constant: float) -> str:
    return "0" if constant < 1e-12 else f"{1e9 * constant:,.3g} ns" if constant < 1e-6 else f"{1e6 * constant:.3g} us"


def bytes_of(experiments: Sequence[Mapping[str, Any]]) -> tuple[float, float]:
    """The bytes of a feature in the state, and in a part, of the largest."""
    largest = max(experiments, key=lambda e: e["amounts"]["features"])["amounts"]
    part = max(experiments, key=lambda e: e["amounts"]["touched"])["amounts"]
    return largest["state bytes"] / largest["features"], part["part bytes"] / part["touched"]


def show(found: Mapping[str, Any], given: Assumed) -> None:
    print("\n" + "\n\n".join(sections(found, given).values()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    listed = lambda text: [part for part in text.split(",") if part]  # noqa: E731
    numbers = lambda text: [int(part) for part in listed(text)]  # noqa: E731
    triples = lambda text: [tuple(int(n) for n in part.split(":")) for part in listed(text)]  # noqa: E731
    parser.add_argument("--learners", type=listed, default=["dual-logistic", "evidence", "auto"])
    parser.add_argument("--bits", type=numbers, default=[22, 24])
    parser.add_argument("--sizes", type=numbers, default=[32_768, 131_072, 524_288])
    parser.add_argument("--groups", type=numbers, default=[4, 16, 64])
    parser.add_argument("--check", type=triples, default=[(26, 524_288, 16)], help="bits:rows:groups, predicted only")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--json", type=Path, help="where the results go; benchmarks/results/scaling-DATE.json by default"
    )
    parser.add_argument("--show", type=Path, help="a file that was written before: print it")
    default = Assumed()
    parser.add_argument("--rows", type=float, default=default.rows, help="assumed: rows, %(default)g")
    parser.add_argument("--gigabits", type=float, default=default.gigabits, help="assumed: network, %(default)g Gbit/s")
    parser.add_argument(
        "--broadcast", type=float, default=default.broadcast, help="assumed: times the state is sent, %(default)g"
    )
    parser.add_argument("--cores", type=int, default=default.cores, help="assumed: cores of a machine, %(default)d")
    parser.add_argument(
        "--overhead", type=float, default=default.overhead, help="assumed: s of a Spark job, %(default)g"
    )
    parser.add_argument(
        "--blocks", type=float, default=default.blocks, help="assumed: MB/s of packed blocks into a core, %(default)g"
    )
    parser.add_argument("--pack", type=float, default=default.pack, help="assumed: rows/s a core packs, %(default)g")
    args = parser.parse_args()
    given = Assumed(args.rows, args.gigabits, args.broadcast, args.cores, args.overhead, args.blocks, args.pack)
    if args.show:
        show(json.loads(args.show.read_text("utf-8"))["scaling"], given)
        return
    now = datetime.now()
    target = args.json or bench.RESULTS / f"scaling-{now:%Y-%m-%d-%H%M%S}.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    about = {"date": now.isoformat(timespec="seconds"), "machine": machine.description(), "versions": bench.versions()}
    found = measure(args)
    written = {**about, "commit": bench.commit(), "scaling": found}
    target.write_text(json.dumps(written, indent=1) + "\n", "utf-8")
    show(found, given)
    print(f"\nwritten to {target}")


if __name__ == "__main__":
    main()
