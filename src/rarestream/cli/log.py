"""rarestream log: whether the log of a service is as it was written, what it holds, its repair, and its replay."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

from rarestream.cli import failures, look, options, outputs
from rarestream.cli.parser import Argument, Option, UsageError
from rarestream.errors import plain

if TYPE_CHECKING:
    from rarestream.serve.log.survey import Segment, Survey
    from rarestream.serve.replay import Replay

ABOUT = "Check, show, repair and replay the log of a service."
NAMES = ("verify", "dump", "repair", "replay")

State = Annotated[Path, Argument("STATE", help="The directory of the service, as given to serve --dir.")]
After = Annotated[int, Option("--after", metavar="N", help="Only entries after this sequence number.", min=0)]
Until = Annotated[
    int | None, Option("--until", metavar="N", help="Only entries up to this sequence number.", min=1, default="all")
]
Last = Annotated[
    int | None, Option("--until", metavar="N", help="The last entry to replay.", min=0, default="the last of the log")
]
Output = Annotated[
    Path | None,
    Option("--output", "-o", metavar="OUT", help="Write the model to this file; without it nothing is written."),
]
NoCheck = Annotated[bool, Option("--no-check", help="Do not compare with the snapshots on the way.")]


def verify(state: State, json: options.Json = False) -> None:
    """Check every record of the log, and every snapshot. Changes nothing.

    A service may be running. The end of the log may be torn after a crash: the next start cuts that off, and it is no
    damage. The exit code is 3 if anything is damaged.
    """
    from rarestream.serve.log.survey import survey
    from rarestream.serve.snapshots import Snapshots

    found = survey(str(_log_folder(state)))
    store = Snapshots(state / "snapshots")
    snapshots = {sequence: store.problem(sequence) for sequence in store.sequences()}
    record = _record(found, snapshots)
    if json:
        look.print_json(record)
    else:
        _show(state, found, snapshots)
    if found.damage is not None:
        found.raise_damage()
    damaged = [sequence for sequence, problem in snapshots.items() if problem is not None]
    if damaged:
        _refuse_snapshots(state, found, snapshots, damaged)


def dump(state: State, after: After = 0, until: Until = None) -> None:
    """Print the records of the log as JSON, one per line. Changes nothing.

    A service may be running. A record with entries on both sides of a limit is printed whole.
    """
    from rarestream.cli.serve import require_serve

    require_serve()
    from rarestream.serve.log.reading import read_shared
    from rarestream.serve.log.survey import survey
    from rarestream.serve.recovery import describe

    if until is not None and until <= after:
        raise UsageError(f"must be above --after, which is {after}, got {until}.", "--until")
    folder = str(_log_folder(state))
    for record in read_shared(folder, after):
        if until is not None and record.sequence > until:
            return
        look.print_json(describe(record))
    found = survey(folder, thorough=False)
    found.raise_damage()
    if found.torn is not None:
        look.warn(f"{found.torn}.")


def repair(state: State, json: options.Json = False) -> None:
    """Keep the log up to the first damage, and move the rest to STATE/aside.

    If a snapshot has everything up to the damage, and the log is whole again from a segment behind it on, that part is
    kept instead. No service may be running. Nothing is deleted, except a torn end that a crash has left.
    """
    from rarestream.serve.log import StateLock
    from rarestream.serve.log.survey import repair
    from rarestream.serve.snapshots import Snapshots

    folder = _log_folder(state)
    with StateLock(state):
        store = Snapshots(state / "snapshots")
        whole = [sequence for sequence in store.sequences() if store.problem(sequence) is None]
        newest = whole[-1] if whole else None
        done = repair(str(folder), str(state / "aside"), None if newest is None else newest + 1)
    if json:
        look.print_json(
            {
                "first": done.first,
                "last": done.last,
                "damage": done.damage and done.damage._asdict(),
                "shortened": done.shortened,
                "torn": done.torn and done.torn._asdict(),
                "aside": done.aside,
                "moved": done.moved,
                "snapshot": newest,
            }
        )
        return
    ink = look.stdout()
    if done.damage is None:
        if done.torn is not None:
            ink.message(f"Cut off: {done.torn}.")
        ink.message(f"{plain(state)}: no damage. The log ends with entry {look.count(done.last)}.")
        return
    entries = f"entries {look.count(done.first)} to {look.count(done.last)}" if done.last >= done.first else "no entry"
    ink.message(f"{plain(state)}: repaired. The log has {entries}. It was damaged in")
    ink.line(f"  {done.damage.name}, byte {look.count(done.damage.offset)}: {done.damage.reason}")
    ink.message(f"Moved to {plain(done.aside)}:")
    for name in done.moved:
        ink.line(f"  {name}")
    if not done.shortened:
        ink.message(f"The snapshot of entry {look.count(newest or 0)} has what was before: no entry is lost.")
    elif newest is None or newest <= done.last:
        ink.message(f"The service has lost the entries after {look.count(done.last)}.")
    else:
        ink.message(f"The service starts from the snapshot of entry {look.count(newest)}. Those after it are lost.")


def replay(
    state: State,
    until: Last = None,
    output: Output = None,
    overwrite: outputs.Overwrite = False,
    no_check: NoCheck = False,
    json: options.Json = False,
) -> None:
    """Learn again what the log has, from the oldest snapshot that it is complete for. Changes nothing in STATE.

    The model after any entry that is still there is written with --output. On the way the state is compared with every
    newer snapshot, bit for bit; the exit code is 3 if one differs. A service may be running.
    """
    from rarestream.cli.serve import require_serve

    require_serve()
    from rarestream.serve.replay import replay

    _log_folder(state)
    note = None if output is None else outputs.for_model(output, [], overwrite).note
    done = replay(state, until, check=not no_check)
    if until is not None and until > done.last:
        raise UsageError(f"the log ends with entry {done.last}, got {until}.", "--until")
    model = done.state.model
    if output is not None:
        model.save(output, model.kind)
        if note is not None:
            look.stderr().line(note)
    auc = model.progress.auc
    if json:
        look.print_json(
            {
                "from": done.first,
                "sequence": done.state.sequence,
                "version": done.state.version,
                "rows": model.rows,
                "positives": model.positives,
                "auc": None if auc != auc else float(auc),
                "auc_low": auc.low,
                "auc_high": auc.high,
                "snapshots": [one._asdict() for one in done.compared],
                "output": None if output is None else str(output),
            }
        )
    else:
        _show_replay(done, until)
        if output is not None:
            look.stdout().message(f"{plain(output)}: written.")
    different = [one for one in done.compared if one.differs]
    if different:
        shown = "; ".join(f"that of entry {look.count(one.sequence)} in {', '.join(one.differs)}" for one in different)
        failures.exit_with(
            f"{plain(state)}: the log does not give the state of every snapshot: {shown}. Both were made from the same "
            "entries, so the disk, or a program other than the service, has changed one of them, or this version "
            "computes otherwise than the one that wrote the snapshot. Keep a copy of the directory.",
            failures.REFUSED,
        )


def _show_replay(done: Replay, until: int | None) -> None:
    ink = look.stdout()
    begin, sequence, model = done.first, done.state.sequence, done.state.model
    if sequence > begin:
        ink.message(f"replayed entries {look.count(begin + 1)} to {look.count(sequence)}")
    else:
        ink.message(f"the state is that of the snapshot {look.count(begin)}: there is nothing to replay")
    if until is not None and sequence < until:
        ink.message(f"entry {look.count(until)} is inside a record, which is applied whole or not at all")
    for one in done.compared:
        found = f"differs in {', '.join(one.differs)}" if one.differs else "same bits"
        ink.message(f"snapshot {look.count(one.sequence)}: {found}")
    ink.message(
        f"{look.count(model.rows)} rows learned, {look.count(model.positives)} positive; version {done.state.version}"
    )
    if model.progress.auc == model.progress.auc:
        auc = model.progress.auc
        ink.message(f"progressive AUC {float(auc):.4f} [{auc.low:.4f}, {auc.high:.4f}]")


def _log_folder(state: Path) -> Path:
    folder = state / "log"
    if not folder.is_dir():
        what = "it has no folder named log" if state.is_dir() else "there is no such directory"
        failures.exit_with(
            f"{plain(state)}: {what}. Pass the directory that was given to rarestream serve --dir.", failures.FAILED
        )
    return folder


def _record(found: Survey, snapshots: dict[int, str | None]) -> dict[str, Any]:
    return {
        "whole": found.damage is None and not any(snapshots.values()),
        "first": found.segments[0].first if found.segments else None,
        "next": found.next,
        "records": sum(segment.records or 0 for segment in found.segments),
        "bytes": sum(segment.bytes for segment in found.segments),
        "segments": [segment._asdict() for segment in found.segments],
        "torn": found.torn and found.torn._asdict(),
        "damage": found.damage and found.damage._asdict(),
        "unread": found.unread,
        "snapshots": [{"sequence": sequence, "problem": problem} for sequence, problem in snapshots.items()],
    }


def _show(state: Path, found: Survey, snapshots: dict[int, str | None]) -> None:
    ink = look.stdout()
    cells = [
        [
            segment.name,
            f"{look.count(segment.first)} - {look.count(segment.last)}"
            if segment.last and _entries(segment)
            else "none",
            look.count(segment.records or 0),
            look.size(segment.bytes),
            "" if found.damage is None or found.damage.name != segment.name else "damaged",
        ]
        for segment in found.segments
    ]
    cells += [[name, "", "", "", "not read" if number else "damaged"] for number, name in enumerate(found.unread)]
    if found.damage is not None and found.damage.offset and found.unread:
        cells[len(found.segments)][4] = "not read"
    if cells:
        lines = look.table(cells, ["segment", "entries", "records", "size", ""], left=(0, 4))
        ink.line(ink(lines[0].rstrip(), "bold"))
        for line in lines[1:]:
            ink.line(line.rstrip())
    if found.torn is not None:
        ink.message(f"Torn end, which the next start cuts off: {found.torn}.")
    for sequence, problem in snapshots.items():
        ink.message(f"snapshot of entry {look.count(sequence)}: {problem or 'whole'}")
    if found.damage is None:
        entries = sum(_entries(segment) for segment in found.segments)
        ink.line(f"{plain(state)}: the log is whole, {look.count(entries)} entries.")


def _entries(segment: Segment) -> int:
    return 0 if segment.last is None else int(segment.last - segment.first + 1)


def _refuse_snapshots(state: Path, found: Survey, snapshots: dict[int, str | None], damaged: list[int]) -> NoReturn:
    """Say which snapshots are damaged, and whether the state can be had from what is whole."""
    whole = [sequence for sequence, problem in snapshots.items() if problem is None]
    first = found.segments[0].first if found.segments else 1
    if whole and first <= whole[-1] + 1:
        way = f"The service starts from that of entry {look.count(whole[-1])} and the log after it"
    elif first == 1:
        way = "The service starts from its model and the whole log"
    else:
        way = f"The log begins with entry {look.count(first)}: the state before it is lost. Restore a backup"
    shown = ", ".join(look.count(sequence) for sequence in damaged)
    noun = "the snapshot of entry" if len(damaged) == 1 else "the snapshots of entries"
    verb = "is" if len(damaged) == 1 else "are"
    failures.exit_with(f"{plain(os.fspath(state))}: {noun} {shown} {verb} damaged. {way}.", failures.REFUSED)
