"""What a feature is: a column number, or a name that is hashed to a slot."""

from rarestream.features.display import column_kinds, display, kind_name, namespace_of
from rarestream.features.names import name_problem
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
    "column_kinds",
    "described",
    "display",
    "encode_rows",
    "kind_name",
    "name_problem",
    "namespace_of",
    "of_block",
    "plan_from_settings",
]
