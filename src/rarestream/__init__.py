"""rarestream learns to rank rare events on sparse, high-dimensional streams, one row at a time.

    from rarestream import Model, read

    model = Model()
    for block in read("clicks.svm.gz"):
        scores = model.learn(block)
    model.save("clicks.rare")

Names are imported when first used, so that `import rarestream` and the command line start quickly. What type checkers
and editors see is in __init__.pyi, which `make lint` keeps up to date.
"""

from importlib import import_module

from rarestream._version import __version__ as __version__

_PACKAGES = {
    "blocks": ["Block"],
    "converting": ["convert"],
    "errors": [
        "DataError",
        "ExportError",
        "FewRowsWarning",
        "MissingExtraError",
        "ModelBusyError",
        "ModelFileError",
        "NotCalibratedError",
        "OutputError",
        "RarestreamError",
        "RoundsStoppedWarning",
        "RowError",
        "SettingsDroppedWarning",
        "SortedRowsWarning",
    ],
    "evaluate": ["follow"],
    "features": ["Columns", "Hashed"],
    "learners": ["Learner", "learner_names", "make_learner"],  # and every registered learner
    "metrics": ["Estimate", "StreamingAuc", "WindowedAuc", "auc", "auc_interval"],
    "model": ["Model"],
    "one_vs_rest": ["OneVsRest"],
    "readers": ["read"],
    "splitting": ["split"],
}
_PACKAGE_OF = {name: package for package, names in _PACKAGES.items() for name in names}


def _public_names() -> list[str]:
    learners = import_module("rarestream.learners").learner_classes()
    return sorted([*_PACKAGE_OF, *(cls.__name__ for cls in learners), "__version__"])


def __getattr__(name: str) -> object:
    value: object = None
    if name in _PACKAGE_OF:
        value = getattr(import_module(f"rarestream.{_PACKAGE_OF[name]}"), name)
    elif name == "__all__":
        value = _public_names()
    elif name[:1].isupper():  # not for `from rarestream import datasets`, which asks here first
        value = import_module("rarestream.learners").learner_of_class(name)
    if value is None:
        raise AttributeError(f"module 'rarestream' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_public_names()})
