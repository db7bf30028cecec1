"""ONNX: padded rows in, scores out. The graph, for N rows of at most K features:

    indices int64[N, K] or names string[N, K]  -> LabelEncoder -> place int64[N, K]    of the feature; n if it has none
    place                                      -> Gather       -> weight, with scale "max" also largest; 0 at place n
    values float[N, K]                         -> scaled as the model does
    weight * value                             -> ReduceSum    -> score double[N], and probability double[N]

A row with fewer features is padded with values 0, whatever the indices or names beside them. A graph cannot sum the
values of equal features, so those of a row must be distinct. Sums are float64.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rarestream._version import __version__
from rarestream.errors import ExportError, MissingExtraError, advice
from rarestream.export.linear import Linear

SUFFIXES = (".onnx",)
OPTIONS = ("inputs",)
PROBABILITY = True
LARGEST_FILE = (1 << 31) - (1 << 20)  # bytes: protobuf reads less than 2 GB
FEATURE_BYTES = 16  # of a feature with its weight, at most: index, place, and one double
OPSET, ML_OPSET, IR_VERSION = 13, 3, 8  # as old as possible, for older runtimes
TINY = 1e-300  # in place of a norm of zero


def exported(linear: Linear, inputs: str | None) -> tuple[bytes, list[str]]:
    """Return the file; ExportError if it would be too large, or names are asked for that the model does not know."""
    onnx = _onnx()
    notes: list[str] = []
    by_name = linear.by_name(inputs)
    names = linear.names(notes) if by_name else []
    _check_size(linear, names)
    make, kinds = onnx.helper, onnx.TensorProto
    count = len(linear.index)
    nodes: list[Any] = []
    constants: list[Any] = []

    def constant(name: str, array: Any) -> str:
        constants.append(onnx.numpy_helper.from_array(np.asarray(array), name))
        return name

    def node(kind: str, inputs: list[str], output: str, **attributes: Any) -> str:
        nodes.append(make.make_node(kind, inputs, [output], name=f"{kind}_{output}", **attributes))
        return output

    def padded(array: Any) -> Any:
        return np.append(array, array.dtype.type(0))

    # An empty encoder is no valid one: a model without weights has one feature, whose weight is 0.
    keys: dict[str, Any] = {"keys_strings": names or [""]} if by_name else {"keys_int64s": linear.index.tolist() or [0]}
    feature = "names" if by_name else "indices"
    place = node(
        "LabelEncoder",
        [feature],
        "place",
        domain="ai.onnx.ml",
        values_int64s=list(range(count)) or [0],
        default_int64=count,
        **keys,
    )
    x = node("Cast", ["values"], "x", to=kinds.DOUBLE)
    if linear.largest is not None:
        found = node("Gather", [constant("largest", padded(linear.largest)), place], "largest_before")
        size = node("Abs", [x], "size")
        largest = node("Max", [node("Cast", [found], "largest_double", to=kinds.DOUBLE), size], "largest_now")
        largest = node("Max", [largest, constant("tiny", TINY)], "divisor")
        x = node("Div", [x, largest], "x_scaled")
    weight = node("Gather", [constant("weights", padded(linear.weight)), place], "weight")
    weight = node("Cast", [weight], "weight_double", to=kinds.DOUBLE)
    axis = constant("features", np.array([1], np.int64))
    total = "sum" if linear.scale != "none" else "score"
    node("ReduceSum", [node("Mul", [weight, x], "term"), axis], total, keepdims=0)
    if linear.scale != "none":
        squares = node("ReduceSum", [node("Mul", [x, x], "square"), axis], "squares", keepdims=0)
        norm = node("Max", [node("Sqrt", [squares], "root"), constant("smallest_norm", TINY)], "norm")
        node("Div", [total, norm], "score")
    outputs = ["score"]
    if linear.slope is not None:
        odds = node("Mul", ["score", constant("slope", linear.slope)], "slope_score")
        node("Sigmoid", [node("Add", [odds, constant("intercept", linear.intercept)], "log_odds")], "probability")
        outputs.append("probability")
    rows = [
        make.make_tensor_value_info(feature, kinds.STRING if by_name else kinds.INT64, ["N", "K"]),
        make.make_tensor_value_info("values", kinds.FLOAT, ["N", "K"]),
    ]
    results = [make.make_tensor_value_info(output, kinds.DOUBLE, ["N"]) for output in outputs]
    graph = make.make_graph(nodes, "rarestream", rows, results, constants)
    opsets = [make.make_opsetid("", OPSET), make.make_opsetid("ai.onnx.ml", ML_OPSET)]
    made = make.make_model(
        graph,
        opset_imports=opsets,
        ir_version=IR_VERSION,
        producer_name="rarestream",
        producer_version=__version__,
        doc_string=linear.about,
    )
    data: bytes = made.SerializeToString()
    return data, notes


def usage(linear: Linear, file: str, inputs: str | None) -> str:
    """Return how the file is used."""
    feature = "names" if linear.by_name(inputs) else "indices"
    outputs = "score" if linear.slope is None else "score, probability"
    return f"onnxruntime: InferenceSession({file!r}).run(None, {{{feature!r}: ..., 'values': ...}}) returns {outputs}."


def _check_size(linear: Linear, names: list[str]) -> None:
    size = len(linear.index) * FEATURE_BYTES + sum(len(name.encode()) + 2 for name in names)
    if size <= LARGEST_FILE:
        return
    fit = len(linear.index) * LARGEST_FILE // size
    way = advice(f"model.prune(nonzeros={fit})", f"rarestream prune MODEL --nonzeros {fit}")
    raise ExportError(
        f"export: an ONNX file must be smaller than 2 GB, but {linear.nonzeros:,} weights take about "
        f"{size / 1e9:.1f} GB. Prune the model first: {way}."
    )


def _onnx() -> Any:
    try:
        import onnx
        import onnx.helper
        import onnx.numpy_helper
    except ImportError:
        raise MissingExtraError('Export to ONNX needs the package onnx: pip install "rarestream[onnx]"') from None
    return onnx
