"""The errors a user meets: each says the place, the rule, what came, and the way on."""


class RarestreamError(Exception):
    """What every error of this package is, so that one `except` can catch them all."""


class DataError(RarestreamError, ValueError):
    """Rows that break a rule. Nothing was learned from them."""


class RowError(DataError):
    """A row of a block that cannot be learned. `row` is its number within the block, from 0."""

    def __init__(self, message: str, row: int) -> None:
        super().__init__(message)
        self.row = row


class ModelFileError(RarestreamError, ValueError):
    """A model file that is damaged, hostile, or of a format this version does not read."""


class MissingExtraError(RarestreamError, ImportError):
    """An optional dependency is not installed; the message says which extra brings it."""


class ModelBusyError(RarestreamError, RuntimeError):
    """`learn` while another thread learns or scores with the same model, or the reverse."""
