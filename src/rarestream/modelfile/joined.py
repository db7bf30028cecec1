"""The file of several models that share their rows and features, one for each class: docs/model-file.md.

Every model is encoded as a file of its own would be. Its header is an entry of the list `models`, its arrays have the
prefix "0.", "1." and so on; one that equals that without a prefix is left out. The feature space is stored once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarestream._version import __version__
from rarestream.errors import ModelFileError
from rarestream.features import COLUMNS
from rarestream.modelfile.codec import FileParts, Saved, decode, decode_features, encode, encode_features

JOINED = 3  # the format of such files
SHARED = ("largest_index", "largest")  # arrays that are equal in all models, besides the names of features


def join(models: Sequence[Saved], kind: str, entries: Mapping[str, Any]) -> FileParts:
    """Return the header, with these entries, and the arrays of a file.

    Parameters
    ----------
    models : sequence of Saved
        At least one; all have learned the same rows, and have the same features.
    kind : str
        "resumable" or "scoring".
    entries : mapping
        More entries of the header.

    Raises
    ------
    ModelFileError
        If a model cannot be encoded.
    """
    space, n_features = models[0].features, models[0].n_features
    parts = [encode(replace(model, features=COLUMNS if model.features else None), kind) for model in models]
    index = np.unique(np.concatenate([arrays["index"] for _, arrays in parts])).astype(np.int32)
    joined: dict[str, NDArray[Any]] = {"index": index}
    joined |= {name: array for name, array in parts[0][1].items() if name in SHARED}
    features = encode_features(space, n_features, joined, kind)
    headers = []
    for number, (header, arrays) in enumerate(parts):
        for name, array in arrays.items():
            if not (name in joined and np.array_equal(joined[name], array)):
                joined[f"{number}.{name}"] = array
        headers.append({key: value for key, value in header.items() if key not in ("format", "rarestream", "features")})
    return (
        {
            "format": JOINED,
            "kind": kind,
            "rarestream": __version__,
            "features": features,
            "models": headers,
            **entries,
        },
        joined,
    )


def split(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], name: str) -> list[Saved]:
    """Return the models of a file; ModelFileError, whose message starts with `name`, if it is invalid."""
    try:
        space = decode_features(header, arrays)
        headers = list(header["models"])
        shared = {key: arrays[key] for key in ("index", *SHARED) if key in arrays}
        own: list[dict[str, NDArray[Any]]] = [dict(shared) for _ in headers]
        for key, array in arrays.items():
            number, dot, rest = key.partition(".")
            if dot and number.isdecimal():
                own[int(number)][rest] = array
        if not headers:
            raise ValueError("it has no models")
        common = {"format": header["format"], "features": header["features"]}
        models = [decode({**one, **common}, mine, name, space) for one, mine in zip(headers, own, strict=True)]
        if len({(model.rows, model.dtype, model.engine.scale, model.engine.learner.name) for model in models}) != 1:
            raise ValueError("its models have not learned the same rows in the same way")
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError, IndexError, MemoryError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError(f"{name}: not a model this version can read ({error}).") from None
    return models
