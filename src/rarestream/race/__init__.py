"""Races: many settings learn the same rows in one pass, and the best of them is the trained model."""

from rarestream.race.entrants import grid, rivals
from rarestream.race.racing import Entrant, RaceResult, Racing, race

__all__ = ["Entrant", "RaceResult", "Racing", "grid", "race", "rivals"]
