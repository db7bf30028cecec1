"""The rows of requests: JSON objects or lists of pairs, VW and svmlight lines, Arrow tables.

A row becomes the same features as in a file of the same format: the parsers, the plan of the columns and the messages
are those of `rarestream.readers`. What a row may be is decided by the feature space of the model:

    hashed names     {"site": "a.com", "price": 3.5}, VW lines, Arrow tables with the columns of the plan
    column numbers   [[0, 1.5], [7, 1]], from 0; svmlight lines; Arrow tables with lists `indices` and `values`

Decoding changes nothing: not the space, not its names. The same text gives the same rows and the same names whatever
was decoded before, and in which thread.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarestream import _native
from rarestream.blocks import (
    INT64,
    LARGEST_INDEX,
    Block,
    Importances,
    Labels,
    canonical,
    checked_importances,
    concatenate,
)
from rarestream.errors import DataError, MissingExtraError, RarestreamError, plain, quoted
from rarestream.features import Columns, Hashed, Space, described
from rarestream.features.faults import cell_message
from rarestream.features.plan import ColumnPlan, Kind, RequestLimits, TablePlan, table_parser
from rarestream.features.rows import BY_VALUE
from rarestream.readers.batches import exported
from rarestream.readers.batches import pyarrow as require_pyarrow
from rarestream.readers.formats.jsonl import OBJECT, json_message
from rarestream.readers.formats.svmlight import ZERO_INDEX, svmlight_message
from rarestream.readers.formats.vw import vw_message
from rarestream.readers.labels import NO, YES, LabelRule
from rarestream.readers.options import Classes, Label
from rarestream.readers.parser import BadRow, ParsedRows, parsed_rows
from rarestream.readers.tables import no_such_column, require_columns
from rarestream.serve.arrow_sizes import unpacked_size
from rarestream.serve.errors import RequestError

if TYPE_CHECKING:
    from msgspec import Raw

    from rarestream.model import Model

FORMATS = ("json", "vw", "svmlight", "arrow")
INDICES, VALUES = "indices", "values"  # the columns of an Arrow table of column numbers
ROLES = b"rarestream"  # the key in the metadata of an Arrow schema that names the columns of label and importance
PAIRS_RULE = "a row must be a list of [index, value], such as [[0, 1.5], [7, 1]]"
NO_LIST, LONG_NAME, MANY_FEATURES = 1, 12, 13
# Messages for the numbers of json::PairRule. {0} is the text that breaks the rule, {1} the limits.
PAIR_RULES = {
    NO_LIST: PAIRS_RULE + ", but this one starts with {0}.",
    2: "an entry must be [index, value], such as [7, 1.5], got {0}.",
    3: "a feature index must be a whole number, got {0}.",
    4: "a feature index must not be negative, got {0}.",
    5: "feature index {0} is too large; this service takes indices below {1.features:,}. Hash or renumber larger ones.",
    6: "a feature value must be a number, got {0}.",
    7: "a feature value must fit in float32 (up to 3.4e38), got {0}. Scale the values down.",
    8: "a comma or ] is expected after an entry, got {0}.",
    9: "the row ends before its list does.",
    10: "text after the row, {0}.",
    11: "this row has too many entries. There are more than {1.nonzeros:,}.",
    12: "duplicate features of this row sum to a value beyond float32. Scale the values down.",
}
MOST_TABLES = 16  # whose parsers are kept
MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Limits:
    """What a request may hold.

    Attributes
    ----------
    rows : int
        Rows of a request.
    nonzeros : int
        Features of a row that are not zero.
    name_bytes : int
        Bytes of a name as JSON has it: a key, or text that is a category. Text that is split into words may be longer.
    body : int
        Bytes of a body, and of its rows when an Arrow stream has been decompressed.
    features : int
        Columns of a model with column numbers: an index must be below it. A row with a large index would otherwise
        make the model take memory for all the columns before it.
    """

    rows: int = 10_000
    nonzeros: int = 10_000
    name_bytes: int = 1_000
    body: int = 16 << 20
    features: int = 1 << 24

    @classmethod
    def none(cls) -> Limits:
        """Return limits that nothing exceeds: what the log has was accepted."""
        most = 1 << 62
        return cls(rows=most, nonzeros=most, name_bytes=most, body=most, features=most)


class RowText(NamedTuple):
    """Rows as text, as a request has them and the log keeps them."""

    format: str  # "json", "vw", "svmlight" or "arrow"
    text: bytes  # a row per line without blank lines between; or an Arrow IPC stream
    rows: int


@dataclass(frozen=True, slots=True)
class DecodedRows:
    """Rows of a request as features.

    Attributes
    ----------
    block : Block
        The rows. They have labels if each of them has one in the text.
    names : NewNames or None
        The names of their features, for `space.names.add`; None if they were not asked for, or there are none.
    labels : int8 array or None
        -1, +1, or 0 for a row without label; None if no row has one. JSON rows have none.
    importances : float64 array or None
        As the text has them; None if it has none.
    """

    block: Block
    names: _native.NewNames | None = None
    labels: Labels | None = None
    importances: Importances | None = None

    def __len__(self) -> int:
        return len(self.block)


class RowDecoder:
    """Makes rows of the text of requests, for one feature space.

    Any number of threads may decode at once.

    Parameters
    ----------
    space : Columns, Hashed or None
        The feature space of the model; None: column numbers.
    limits : Limits
        What a request may hold.
    first_index : {0, 1}, optional
        The number of the first column in svmlight lines. By default that of the space. Pairs always count from 0.
    classes : tuple, optional
        The labels that mean negative and positive in VW, svmlight and Arrow rows. By default 1 is positive, and 0 or -1
        negative.
    positive : float or str, optional
        The label that is positive, where every other is negative.
    """

    def __init__(
        self,
        space: Space | None,
        limits: Limits,
        *,
        first_index: int | None = None,
        classes: Classes | None = None,
        positive: Label | None = None,
    ) -> None:
        self.space, self.limits = space, limits
        self._hashed = space if isinstance(space, Hashed) else None
        if first_index is None:
            first_index = space.first if isinstance(space, Columns) else 0
        self._first_index = first_index
        self._classes, self._positive = classes, positive
        if self._hashed is not None:
            self._plan = BY_VALUE if self._hashed.plan is None else self._hashed.plan
            objects = _without_roles(self._plan)
            self._objects_of = {names: self._new_parser(objects, names)[0] for names in (False, True)}
            bits = self._hashed.bits
            self._vw_of = {names: _native.VwParser(bits=bits, names=names, forgets=True) for names in (False, True)}
            self._one: _native.TableParser | _native.PairsParser = self._objects_of[False]
        else:
            features = min(limits.features, LARGEST_INDEX + 1)
            self._one = _native.PairsParser(features=features, nonzeros=limits.nonzeros)
        # No bound methods here, nor a cache of one: a decoder that is dropped, with its names, is to be freed at once.
        self._tables: dict[tuple[Any, ...], Any] = {}

    @classmethod
    def of_model(cls, model: Model, limits: Limits) -> RowDecoder:
        """Return the decoder of a model's rows, whose columns and labels count as in the files it was trained on."""
        from rarestream.evaluate import column_base, remembered

        kept = remembered(model.source)
        settings = {} if kept is None else kept[1].settings
        classes = settings.get("classes")
        return cls(
            model.features,
            limits,
            first_index=column_base(model.source),
            classes=None if classes is None or isinstance(classes, str) else tuple(classes),
            positive=settings.get("positive"),
        )

    # -- the text of requests

    @staticmethod
    def joined(raws: Sequence[Raw]) -> RowText:
        """Return the rows of a JSON body, an item of its list each, as text.

        Raises
        ------
        RequestError
            422, if a row is neither an object nor a list.
        """
        rows = len(raws)
        text = b"\n".join(raws)
        if text.count(b"\n") != rows - 1:  # JSON may be written over several lines; a string has no line end
            text = b"\n".join([bytes(raw).replace(b"\n", b" ") for raw in raws])
        wrong, at = None, 0
        for row, raw in enumerate(raws):
            if text[at] not in b"{[":
                wrong = row
                break
            at += len(raw) + 1
        if wrong is not None:
            raise _bad(
                wrong,
                'a row must be an object, such as {"site": "a.com", "price": 3.5}, or a list of [index, value], got '
                f"{quoted(bytes(raws[wrong])[:64])}.",
            )
        return RowText("json", text, rows)

    @staticmethod
    def lines(format: str, body: bytes) -> RowText:
        """Return a body that has a row per line as text; blank lines are left out.

        Parameters
        ----------
        format : {"json", "vw", "svmlight"}
            What the lines are.
        body : bytes
            The lines.
        """
        if body.startswith(MARK):
            body = body[len(MARK) :]
        kept = [line for line in body.split(b"\n") if line and not line.isspace()]
        if format == "svmlight":
            kept = [line for line in kept if not line.lstrip().startswith(b"#")]
        return RowText(format, b"\n".join(kept), len(kept))

    def arrow(self, body: bytes, label: str | None = None, importance: str | None = None) -> RowText:
        """Return an Arrow IPC stream as text of rows.

        Parameters
        ----------
        body : bytes
            The stream.
        label : str, optional
            The column of the label. By default that of the model's plan, else the column named "label", if there is
            one.
        importance : str, optional
            The column of the importance. By default that of the model's plan.

        Raises
        ------
        RequestError
            422, if it is no Arrow stream, has too many rows, or lacks one of these columns.
        """
        self._check_size(len(body))
        roles = {word: name for word, name in (("label", label), ("importance", importance)) if name is not None}
        schema, batches = self._batches(body)
        for word, name in roles.items():
            if name not in schema.names:
                raise RequestError(
                    422, "bad_rows", str(no_such_column(word, name, schema.names)).removeprefix("read: ")
                )
        if roles:
            schema = schema.with_metadata({**(schema.metadata or {}), ROLES: json.dumps(roles).encode()})
            body = _written(schema, batches)
        return RowText("arrow", body, sum(batch.num_rows for batch in batches))

    # -- one row

    def score_one(self, model: Model, text: bytes) -> float | None:
        """Return the score of a row of a JSON body in one call of the core, as `decode` and `Model.score` give it.

        Parameters
        ----------
        model : Model
            A model of the decoder's feature space.
        text : bytes
            The row, as JSON.

        Returns
        -------
        float or None
            None if the row is invalid or unusual, or another thread learns: `decode` then tells.
        """
        return None if len(text) > self.limits.body else model.score_text(text, self._one)

    # -- decoding

    def decode(self, rows: RowText, *, names: bool) -> DecodedRows:
        """Return rows as features.

        Parameters
        ----------
        rows : RowText
            Their text.
        names : bool
            Whether the names of features are collected: for rows to learn.

        Raises
        ------
        RequestError
            422 bad_rows, with the row, if a row is invalid or beyond a limit; 413 for too many rows.
        """
        self._check_size(len(rows.text))
        self._check_rows(rows.rows)
        decoders = {"vw": self._vw, "svmlight": self._svmlight, "arrow": self._arrow}
        decode = decoders.get(rows.format, self._pairs if self._hashed is None else self._objects)
        decoded = decode(rows, names and self._hashed is not None and self._hashed.names is not None)
        if len(decoded.block) != rows.rows:
            raise RequestError(422, "bad_rows", f"{rows.rows} rows are announced, but there are {len(decoded.block)}.")
        if rows.format != "json":  # whose parsers count themselves
            self._check_block(decoded.block)
        return decoded

    def _check_size(self, size: int) -> None:
        if size > self.limits.body:
            raise RequestError(413, "too_large", f"{size:,} bytes; a request has at most {self.limits.body:,}.")

    def _check_rows(self, rows: int) -> None:
        if rows > self.limits.rows:
            raise RequestError(
                413, "too_large", f"{rows:,} rows; a request has at most {self.limits.rows:,}. Send several requests."
            )

    def _check_block(self, block: Block) -> None:
        if not len(block):
            return
        sizes = np.diff(block.indptr)
        if sizes.max() > self.limits.nonzeros:
            row = int(np.argmax(sizes > self.limits.nonzeros))
            raise _bad(row, f"{sizes[row]:,} features; a row has at most {self.limits.nonzeros:,}.")
        if self._hashed is None and block.width > self.limits.features:
            at = int(np.argmax(block.indices >= self.limits.features))
            row = int(np.searchsorted(block.indptr, at, "right")) - 1
            raise _bad(
                row,
                f"feature index {block.indices[at]:,}, but this service takes indices below {self.limits.features:,}. "
                "Hash or renumber larger ones.",
            )

    # -- named features

    def _new_parser(self, plan: TablePlan, names: bool) -> tuple[_native.TableParser, dict[str, int]]:
        assert self._hashed is not None
        limits = RequestLimits(self.limits.nonzeros, self.limits.name_bytes)
        return table_parser(plan, self._hashed.bits, names, limits)

    def _objects(self, rows: RowText, names: bool) -> DecodedRows:
        parsed = self._objects_of[names].parse_objects(rows.text)
        indptr, indices, values, width, importances, collected, broken = parsed
        if broken is not None:
            bad = BadRow(*broken)
            if bad.rule == OBJECT and bad.token.startswith(b"["):
                raise _bad(
                    bad.line - 1,
                    f"the model has {described(self._hashed)}: a row must be an object, such as "
                    '{"site": "a.com", "price": 3.5}, got a list.',
                )
            raise _bad(bad.line - 1, self._cell(bad) or json_message(bad))
        block = Block(indptr, indices, values, width, None, importances, None, True, self._hashed)
        return DecodedRows(block, collected, None, importances)

    def _vw(self, rows: RowText, names: bool) -> DecodedRows:
        if self._hashed is None:
            raise self._other_space("VW lines have named features", "svmlight lines, or lists of [index, value]")
        self._check_words(rows.text)
        found = parsed_rows(self._vw_of[names].parse(_bytes(rows.text), stop_after=1))
        if found.bad:
            raise _bad(found.bad[0].line - 1, vw_message(found.bad[0]))
        return self._decoded(found)

    def _cell(self, bad: BadRow) -> str | None:
        message = cell_message(bad.rule, bad.field, bad.token, planned=True)
        if bad.rule == LONG_NAME:
            return f"{message} It has more than {self.limits.name_bytes:,} bytes."
        if bad.rule == MANY_FEATURES:
            return f"{message} There are more than {self.limits.nonzeros:,}."
        return message

    def _check_words(self, text: bytes) -> None:
        """Raise RequestError if a word of VW text is longer than a name may be."""
        most = self.limits.name_bytes
        if len(text) <= most:
            return
        found = _bytes(text)
        ends = np.flatnonzero((found <= ord(" ")) | (found == ord("|")))
        long = np.flatnonzero(np.diff(ends, prepend=-1, append=len(text)) > most + 1)
        if len(long):
            begin = int(ends[long[0] - 1]) + 1 if long[0] else 0
            row = text.count(b"\n", 0, begin)
            raise _bad(
                row, f"the word {quoted(text[begin : begin + 64])} is too long. It has more than {most:,} bytes."
            )

    # -- column numbers

    def _svmlight(self, rows: RowText, names: bool) -> DecodedRows:
        if self._hashed is not None:
            raise self._other_space("svmlight lines have column numbers", "objects of named values, or VW lines")
        found = parsed_rows(
            _native.parse_svmlight(_bytes(rows.text), first_index=self._first_index, label_required=False, stop_after=1)
        )
        if found.bad:
            bad = found.bad[0]
            zero = "feature index 0, but the columns of the model count from 1 in svmlight lines."
            raise _bad(bad.line - 1, zero if bad.rule == ZERO_INDEX else svmlight_message(bad))
        return self._decoded(found)

    def _pairs(self, rows: RowText, names: bool) -> DecodedRows:
        assert isinstance(self._one, _native.PairsParser)
        indptr, indices, values, width, _, _, broken = self._one.parse(rows.text)
        if broken is not None:
            bad = BadRow(*broken)
            if bad.rule == NO_LIST and bad.token.startswith(b"{"):
                raise _bad(bad.line - 1, f"the model has {described(self.space)}: {PAIRS_RULE}, got an object.")
            message = PAIR_RULES[bad.rule].format(quoted(bad.token), self.limits)
            if bad.token.lower().strip(b"-+") in (b"nan", b"inf", b"infinity"):
                message += " NaN and infinity have no place in a dot product: drop or impute them."
            raise _bad(bad.line - 1, message)
        return DecodedRows(Block(indptr, indices, values, width, own=True))

    def _other_space(self, what: str, way: str) -> RequestError:
        return RequestError(422, "bad_rows", f"{what}, but the model has {described(self.space)}. Send {way}.")

    # -- Arrow

    def _batches(self, body: bytes) -> tuple[Any, list[Any]]:
        """Return the schema and the record batches of a stream."""
        try:
            require_pyarrow("Arrow bodies")
        except MissingExtraError as error:
            raise RequestError(415, "media_type", f"This server does not read Arrow: {error}") from None
        import pyarrow.ipc

        batches: list[Any] = []
        rows = 0
        try:
            buffer = pyarrow.py_buffer(body)
            self._check_size(sum(map(unpacked_size, pyarrow.ipc.MessageReader.open_stream(buffer))))
            with pyarrow.ipc.open_stream(buffer) as stream:
                for batch in stream:
                    rows += batch.num_rows
                    self._check_rows(rows)
                    # Arrays do not say how large their memory is, so nothing in them may point outside.
                    batch.validate(full=True)
                    batches.append(batch)
                _ = stream.schema.names  # which must be text
                return stream.schema, batches
        except RarestreamError:
            raise
        except Exception as error:
            raise _not_arrow(error) from None

    def _table(self, names: tuple[str, ...], roles: tuple[str | None, str | None], collect: bool) -> Any:
        """Return the parser of an Arrow table, and its numbers of the columns."""
        assert self._hashed is not None
        plan = self._plan
        label = roles[0] or plan.label
        if label is None and "label" in names and all(column.name != "label" for column in plan.columns):
            label = "label"
        if plan.open:  # values of other columns count as what they are, as in JSON rows
            known = {column.name for column in plan.columns}
            others = [ColumnPlan(name, Kind.AUTO) for name in names if name not in known]
            plan = replace(plan, columns=(*plan.columns, *others))
        else:
            require_columns("rows", plan, names)
        plan = replace(_without_roles(plan), label=label, importance=roles[1] or plan.importance)
        parser, numbers = self._new_parser(plan, collect)
        return parser, [numbers.get(name, -1) for name in names]

    def _arrow(self, rows: RowText, names: bool) -> DecodedRows:
        schema, batches = self._batches(rows.text)
        columns = tuple(schema.names)
        if len(set(columns)) < len(columns):
            doubled = next(name for name in columns if columns.count(name) > 1)
            raise RequestError(422, "bad_rows", f"two columns are named {plain(doubled)!r}. Rename one.")
        roles = _roles(schema)
        if self._hashed is None:
            return self._arrow_pairs(schema, batches, roles)
        try:
            table = self._tables.get((columns, roles, names))
            if table is None:
                table = self._table(columns, roles, names)
                if len(self._tables) >= MOST_TABLES:
                    self._tables.clear()
                self._tables[columns, roles, names] = table
            parser, numbers = table
        except DataError as error:
            raise RequestError(422, "bad_rows", str(error)) from None
        if not batches:
            return DecodedRows(replace(concatenate([]), space=self._hashed))
        batch = _one_batch(batches)
        try:
            found = parsed_rows(
                parser.parse_arrow(exported(batch), columns=numbers, start=0, stop=batch.num_rows, stop_after=1)
            )
        except ValueError as error:
            raise RequestError(422, "bad_rows", f"{plain(str(error))}. Leave the column out, or convert it.") from None
        if found.bad:
            bad = found.bad[0]
            raise _bad(bad.line, self._cell(bad) or f"rule {bad.rule} is broken by {bad.token!r}.")
        return self._decoded(found)

    def _arrow_pairs(self, schema: Any, batches: list[Any], roles: tuple[str | None, str | None]) -> DecodedRows:
        import pyarrow

        for name in (INDICES, VALUES):
            type = schema.field(name).type if name in schema.names else None
            if type is None or not (pyarrow.types.is_list(type) or pyarrow.types.is_large_list(type)):
                raise RequestError(
                    422,
                    "bad_rows",
                    f"the model has {described(self.space)}: an Arrow table must have the columns {INDICES!r}, lists "
                    f"of whole numbers from 0, and {VALUES!r}, lists of numbers.",
                )
        if not batches:
            return DecodedRows(concatenate([]))
        batch = _one_batch(batches)
        indptr, indices = _lists(batch, INDICES)
        others, values = _lists(batch, VALUES)
        if not np.array_equal(indptr, others):
            row = int(np.argmax(np.diff(indptr) != np.diff(others)))
            raise _bad(row, f"{INDICES!r} and {VALUES!r} must be equally long.")
        try:
            rows = canonical(indptr, indices, values)
        except DataError as error:
            raise RequestError(422, "bad_rows", str(error).removeprefix("Block: ")) from None
        label, importance = roles[0] or "label", roles[1]
        labels = raw = None
        if label in schema.names:
            raw = batch.column(label)
            texts = pyarrow.types.is_string(raw.type) or pyarrow.types.is_boolean(raw.type)
            labels = self._signs(*_label_texts(raw) if texts else (_numbers(raw, "label"), None))
        weights = None
        if importance is not None:
            try:
                weights = checked_importances(_numbers(batch.column(importance), "importance"), batch.num_rows)
            except DataError as error:
                raise RequestError(422, "bad_rows", str(error).removeprefix("Block: ")) from None
        return _with_labels(Block(*rows[:4], own=True), None, labels, weights)

    # -- labels

    def _decoded(self, found: ParsedRows) -> DecodedRows:
        block = Block(*found[:4], None, None, None, True, self._hashed)
        return _with_labels(block, found.names, self._signs(found.labels, found.label_texts), found.importances)

    def _signs(self, raw: NDArray[np.float64], texts: Sequence[str] | None) -> Labels | None:
        """Return -1, +1, or 0 for a row without a label; None if no row has one."""
        known = ~np.isnan(raw)
        if not known.any():
            return None
        rule = self._label_rule()
        signs = rule.signs(raw, texts) if rule is not None else _usual_signs(raw, texts)
        wrong = known & (signs == 0)
        if wrong.any():
            row = int(np.argmax(wrong))
            if rule is not None:
                raise _bad(row, rule.error_message(float(raw[row]), texts))
            label = f"{raw[row]:g}" if texts is None else texts[int(raw[row])]
            raise _bad(
                row, f"label {plain(label)!r}, but a label is 1 for a positive row, and 0 or -1 for a negative one."
            )
        return signs

    def _label_rule(self) -> LabelRule | None:
        """Return the rule for the labels of the model's files; None if they are the usual ones."""
        if self._positive is None and (self._classes is None or set(self._classes) <= {None, -1.0, 0.0, 1.0}):
            return None
        return LabelRule(self._positive, False, self._classes)


def _usual_signs(raw: NDArray[np.float64], texts: Sequence[str] | None) -> Labels:
    """Return +1 for 1, true and yes, -1 for 0, -1, false and no, and 0 for anything else."""
    if texts is None:
        return np.where(raw == 1, 1, np.where((raw == 0) | (raw == -1), -1, 0)).astype(np.int8)
    table = np.zeros(len(texts) + 1, np.int8)  # the last is that of a row without a label
    for code, text in enumerate(texts):
        with suppress(ValueError):
            text = f"{float(text):g}"
        table[code] = (text.lower() in YES) - (text.lower() in NO)
    signs: Labels = table[np.where(np.isnan(raw), len(texts), raw).astype(np.int64)]
    return signs


def _bad(row: int, message: str) -> RequestError:
    return RequestError(422, "bad_rows", f"row {row}: {message}", row=row)


def _bytes(text: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(text, np.uint8)


def _with_labels(
    block: Block, names: _native.NewNames | None, labels: Labels | None, importances: Importances | None
) -> DecodedRows:
    whole = labels is not None and bool(labels.all())
    if whole or importances is not None:
        block = replace(block, labels=labels if whole else None, importances=importances)
    return DecodedRows(block, names, labels, importances)


def _without_roles(plan: TablePlan) -> TablePlan:
    """Return the plan with label and tag as columns that are ignored."""
    roles = [name for name in (plan.label, plan.tag) if name is not None]
    columns = [column for column in plan.columns if column.name not in roles]
    columns += [ColumnPlan(name, 0) for name in roles if name != plan.importance]
    return replace(plan, columns=tuple(columns), label=None, tag=None)


# -- Arrow


def _not_arrow(error: Exception) -> RequestError:
    reason = plain(str(error).strip().split("\n")[0].rstrip(".")) or type(error).__name__
    return RequestError(422, "bad_rows", f"the body is no valid Arrow IPC stream: {reason}.")


def _roles(schema: Any) -> tuple[str | None, str | None]:
    """Return the columns of label and importance that the metadata of a schema name."""
    try:
        named = json.loads((schema.metadata or {}).get(ROLES, b"{}"))
        label, importance = named.get("label"), named.get("importance")
    except (ValueError, AttributeError, RecursionError):
        raise RequestError(422, "bad_rows", "the metadata of the Arrow schema are invalid.") from None
    for name in (label, importance):
        if name is not None and name not in schema.names:
            raise RequestError(422, "bad_rows", "the metadata of the Arrow schema name a column that is not there.")
    return label, importance


def _written(schema: Any, batches: list[Any]) -> bytes:
    import pyarrow

    out = pyarrow.BufferOutputStream()
    try:
        with pyarrow.ipc.new_stream(out, schema) as stream:
            for batch in batches:
                stream.write_batch(batch)
    except pyarrow.ArrowException as error:
        raise _not_arrow(error) from None
    return bytes(out.getvalue())


def _one_batch(batches: list[Any]) -> Any:
    """Return all rows as one record batch."""
    import pyarrow

    if len(batches) == 1:
        return batches[0]
    return pyarrow.Table.from_batches(batches).combine_chunks().to_batches()[0]


def _lists(batch: Any, name: str) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return where the lists of a column start, and all their elements."""
    import pyarrow

    column = batch.column(name)
    if column.null_count:
        raise _bad(column.is_null().index(True).as_py(), f"{name!r} is missing.")
    flat = column.flatten()
    if flat.null_count or not (pyarrow.types.is_integer(flat.type) or pyarrow.types.is_floating(flat.type)):
        raise RequestError(422, "bad_rows", f"the column {name!r} must be lists of numbers without nulls.")
    starts = column.offsets.to_numpy(zero_copy_only=False).astype(INT64)
    return starts - starts[0], flat.to_numpy(zero_copy_only=False)


def _numbers(column: Any, what: str) -> NDArray[np.float64]:
    import pyarrow

    try:
        return column.cast(pyarrow.float64()).to_numpy(zero_copy_only=False).astype(np.float64)  # type: ignore[no-any-return]
    except pyarrow.ArrowException:
        raise RequestError(422, "bad_rows", f"the column of the {what} must be numbers, got {column.type}.") from None


def _label_texts(column: Any) -> tuple[NDArray[np.float64], list[str]]:
    import pyarrow

    coded = column.cast(pyarrow.string()).dictionary_encode()
    return _numbers(coded.indices, "label"), coded.dictionary.to_pylist()
