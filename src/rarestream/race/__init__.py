"""Race: many settings in one pass over the data, the best of them trained at its end."""

from rarestream.race.entrants import grid, rivals
from rarestream.race.racing import Entrant, Race, Racing, race

__all__ = ["Entrant", "Race", "Racing", "grid", "race", "rivals"]
