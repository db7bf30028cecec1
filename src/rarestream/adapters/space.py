"""FeatureSpace: a scikit-learn transformer of tables to sparse matrices, with the features that `read` gives them."""

from __future__ import annotations

import dataclasses
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, csr_matrix
from sklearn import get_config
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from rarestream.adapters.frames import first_rows, more_rows
from rarestream.blocks import LARGEST_INDEX, Block
from rarestream.features import Hashed, TablePlan
from rarestream.features.space import DEFAULT_BITS
from rarestream.readers.options import FormatOptions, OptionError, OptionInfo, options_of
from rarestream.readers.tables import TableOptions


class TableTransformer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Base class of FeatureSpace, whose parameters are made of the options of reading tables."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Decide on the first rows what each column is, and remember the names of the features of all rows.

        Parameters
        ----------
        X : frame, list of dicts, or array of shape (n_samples, n_columns)
            The rows. The columns of an array are called x0, x1, ...
        y
            Ignored.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter is not allowed or names a column that is not there, or a value cannot be a feature.
        """
        self._first_rows(X)
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Remember the names of the features of more rows; what each column is stays as the first rows decided it.

        Parameters
        ----------
        X, y
            As for `fit`.

        Returns
        -------
        self
        """
        if hasattr(self, "feature_space_"):
            more_rows(self, X, self.feature_space_, "the space")
        else:
            self._first_rows(X)
        return self

    def transform(self, X: Any) -> Any:
        """Return rows as a sparse matrix.

        Parameters
        ----------
        X : frame, list of dicts, or array of shape (n_samples, n_columns)
            The rows. Columns of frames are found by their names; new ones are ignored, with a warning.

        Returns
        -------
        scipy.sparse.csr_matrix of shape (n_samples, 2**bits)
            Values are float32, features ascend within a row. A csr_array if scikit-learn's `sparse_interface` says so.

        Raises
        ------
        ValueError
            If a column is missing, or a value cannot be a feature.
        """
        check_is_fitted(self)
        self._check_output()
        return self._matrix(more_rows(self, X, self.feature_space_, "nobody"))

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Fit, and return the same rows as a sparse matrix, in one pass.

        Parameters
        ----------
        X, y
            As for `fit`.

        Returns
        -------
        scipy.sparse.csr_matrix of shape (n_samples, 2**bits)
            As `transform` returns it.
        """
        self._check_output()
        return self._matrix(self._first_rows(X))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of all 2**bits features, those that were never seen as "slot 123".

        With the default of 22 bits these are four million texts: `feature_names` gives some of them in no time.

        Parameters
        ----------
        input_features : array-like of str, optional
            Not needed; if given, they must be the columns of the rows.

        Returns
        -------
        array of object of shape (2**bits,)
            Such as "site = a.com".
        """
        check_is_fitted(self)
        _check_feature_names_in(self, input_features, generate_names=False)
        return np.array(self.feature_space_.all_shown(), object)

    def feature_names(self, indices: ArrayLike) -> list[str]:
        """Return what some features are called.

        Parameters
        ----------
        indices : array-like of int
            Columns of the matrix that `transform` returns.

        Returns
        -------
        list of str
            The name of each, such as "site = a.com", or "slot 123" if it was never seen.
        """
        check_is_fitted(self)
        return self.feature_space_.shown(np.asarray(indices, np.int32))

    @property
    def plan_(self) -> TablePlan:
        """What each column is, and what its cells become."""
        check_is_fitted(self)
        plan = self.feature_space_.plan
        assert plan is not None
        return plan

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = tags.input_tags.string = tags.input_tags.dict = True
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags

    # -- implementation

    def first_rows(self, estimator: Any, X: Any) -> tuple[Hashed, list[Block]]:
        """Return a new feature space, and the first rows of an estimator, which decide its plan."""
        options = self.checked_options()
        space = Hashed(options.bits, options.names)
        given = {name: getattr(options, name) for name in PARAMETERS if name not in ("bits", "names")}
        return space, first_rows(estimator, X, space, given)

    def _first_rows(self, X: Any) -> list[Block]:
        self.feature_space_, blocks = self.first_rows(self, X)
        return blocks

    def checked_options(self) -> Any:
        """Return the parameters as options of reading tables; OptionError if one is not allowed."""
        name = type(self).__name__
        if self.bits is None:
            raise ValueError(f"{name}: bits must be between 1 and 30, got None.")
        try:
            return TableOptions(**{option: getattr(self, option) for option in PARAMETERS})
        except OptionError as error:
            raise OptionError(f"{name}: {error.option} {error.reason}", error.option, error.reason) from None

    def _check_output(self) -> None:
        wanted = _get_output_config("transform", self)["dense"]
        if wanted != "default":
            raise ValueError(
                f"{type(self).__name__}: {wanted} output does not support sparse data. Use "
                'set_output(transform="default").'
            )

    def _matrix(self, blocks: list[Block]) -> Any:
        ends = np.cumsum([0, *(block.nonzeros for block in blocks)])
        indptr = np.concatenate(
            [[0], *(block.indptr[1:] + before for block, before in zip(blocks, ends, strict=False))],
            dtype=np.int32 if ends[-1] <= LARGEST_INDEX else np.int64,
            casting="same_kind",
        )
        indices = np.concatenate([block.indices for block in blocks], dtype=np.int32)
        values = np.concatenate([block.values for block in blocks], dtype=np.float32)
        kind = csr_array if get_config().get("sparse_interface") == "sparray" else csr_matrix
        matrix = kind((values, indices, indptr), shape=(len(indptr) - 1, self.feature_space_.slots))
        matrix.has_canonical_format = True
        return matrix


# -- the class

_ROLES = ("label", "importance", "tag")  # columns that are no features: scikit-learn passes them apart
_COMMON = tuple(field.name for field in dataclasses.fields(FormatOptions))
PARAMETERS: dict[str, OptionInfo] = {
    name: info for name, info in options_of(TableOptions).items() if name not in (*_ROLES, *_COMMON)
}
_DEFAULTS = {name: info.default for name, info in PARAMETERS.items()} | {"bits": DEFAULT_BITS}

_DOC = """Turns tables into sparse matrices: categories, words, numbers, dates and lists become hashed features.

    What each column is follows from the parameters; what they leave open is decided on the first rows of `fit`, as
    `rarestream.read` does: text is a category, decimals are numbers, whole numbers are both, dates give hour, weekday
    and month, lists one category per element. Missing values are absent. The matrix has 2**bits columns, and its values
    are float32.

    Parameters
    ----------
{parameters}
    Attributes
    ----------
    feature_space_ : Hashed
        The feature space: the hash, the names of features, the plan of the columns.
    plan_ : TablePlan
        What each column is.
    n_features_in_, feature_names_in_
        Number and names of the columns; an array has no names.
    """


def _described(info: OptionInfo) -> str:
    kind = "list of str" if info.kind is tuple else info.kind.__name__
    if info.choices:
        kind = "{" + ", ".join(repr(choice) for choice in info.choices) + "}"
    text = "Base-2 logarithm of the number of features, 1 to 30." if info.name == "bits" else info.help
    return f"    {info.name} : {kind}, default={_DEFAULTS[info.name]!r}\n        {text}\n"


FeatureSpace: type[TableTransformer] = dataclasses.make_dataclass(
    "FeatureSpace",
    [(name, Any, dataclasses.field(default=default)) for name, default in _DEFAULTS.items()],
    bases=(TableTransformer,),
    namespace={"__doc__": _DOC.format(parameters="".join(map(_described, PARAMETERS.values())))},
    kw_only=True,
    eq=False,
    repr=False,
)
FeatureSpace.__module__ = "rarestream.sklearn"  # its public address, where pickle finds it
