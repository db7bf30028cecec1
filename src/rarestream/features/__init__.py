"""What a feature is: a column number, or a name that is hashed to a slot."""

from rarestream.features.display import display
from rarestream.features.plan import ColumnPlan, Kind, TablePlan, plan_from_settings
from rarestream.features.rows import EncodedRows, encode_rows
from rarestream.features.space import COLUMNS, Columns, Hashed, Space, described, of_block

__all__ = [
    "COLUMNS",
    "ColumnPlan",
    "Columns",
    "EncodedRows",
    "Hashed",
    "Kind",
    "Space",
    "TablePlan",
    "described",
    "display",
    "encode_rows",
    "of_block",
    "plan_from_settings",
]
