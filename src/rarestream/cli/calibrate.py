"""rarestream calibrate: probabilities of a model that has none, or for rows with another share of positives."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from rarestream.cli import look, options, outputs
from rarestream.cli.parser import Option
from rarestream.errors import plain

Output = Annotated[
    Path | None,
    Option("--output", "-o", metavar="OUT", help="The model file to write.", default="MODEL"),
]


def calibrate(
    model: options.ModelPath,
    data: options.Data,
    output: Output = None,
    overwrite: outputs.Overwrite = False,
    json: options.Json = False,
    *,
    reading: options.ReadingLabelled,
) -> None:
    """Fit the probabilities of a model to labelled rows.

    Models are calibrated while they learn. This is for those that are not, of an earlier version or pruned, and for
    rows with another share of positives. Use rows that were not learned. Scores do not change.
    """
    from rarestream.model import Model

    loaded = Model.load(model)
    options.check_paths(data)
    target = output or model
    replaced = outputs.for_model(target, outputs.files_of(data), overwrite, model).note
    stream = reading.open(data, reading.settings_for(loaded, data))
    learned = options.warn_if_learned(loaded, data, "and the probabilities are too sure of themselves")
    loaded.calibrate_on(stream)
    loaded.save(target, loaded.kind)
    if replaced:
        look.stderr().line(replaced)
    options.print_notes(stream)
    options.warn_of_refused(stream.refused, stream.refusals)
    found = options.calibration_of(loaded)
    if json:
        look.print_json(
            {
                "rows": found.rows,
                "positives": found.positives,
                "slope": found.slope,
                "intercept": found.intercept,
                "learned": learned,
                "model": str(target),
            }
        )
        return
    ink = look.stdout()
    ink.line(f"log odds = {found.slope:.4g} score {'+' if found.intercept >= 0 else '-'} {abs(found.intercept):.4g}")
    ink.line(f"from {look.counted(found.rows, 'row')}, {look.counted(found.positives, 'positive')}")
    ink.line(f"{ink(plain(target), 'bold')} written; rarestream predict --probability uses it.")
