"""An Estimator and a Model of Spark ML: rarestream as a stage of pipelines and of searches over settings.

`RarestreamClassifier.fit` is `rarestream.spark.fit`, `RarestreamClassifierModel.transform` is `rarestream.spark.score`;
what is added here are the columns, params and files that Spark ML has everywhere.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Self

from rarestream.errors import DataError, ModelFileError, NotCalibratedError, RarestreamError
from rarestream.learners import Learner, make_learner
from rarestream.learners.registry import learner_class
from rarestream.model import Model
from rarestream.spark.errors import require_pyspark
from rarestream.spark.fitting import fit
from rarestream.spark.scoring import score
from rarestream.spark.store import read_bytes, write_bytes

try:
    from pyspark import keyword_only
    from pyspark.ml.classification import ClassificationModel, Classifier
    from pyspark.ml.linalg import DenseVector, SparseVector, VectorUDT
    from pyspark.ml.param import Param, Params, TypeConverters
    from pyspark.ml.param.shared import HasInputCols, HasProbabilityCol, HasWeightCol
    from pyspark.ml.util import (
        DefaultParamsReadable,
        DefaultParamsReader,
        DefaultParamsWritable,
        DefaultParamsWriter,
        MLReadable,
        MLWritable,
    )
except ImportError:
    require_pyspark()
    raise

MODEL = "model"  # folder of the model, beside that of Spark's own metadata
SCORE, PROBABILITY = "__rarestream_score", "__rarestream_probability"  # columns that `transform` makes others of


# -- what values params take: these are called with a value, and raise TypeError or ValueError


def _count_or_auto(value: Any) -> int | str:
    if value == "auto":
        return "auto"
    return _count(value)


def _count(value: Any) -> int:
    number = int(TypeConverters.toInt(value))
    if number < 1:
        raise ValueError(f"must be at least 1, got {number}.")
    return number


def _probability(value: Any) -> float:
    number = float(TypeConverters.toFloat(value))
    if not 0 <= number <= 1:
        raise ValueError(f"must be between 0 and 1, got {number:g}.")
    return number


def _settings(value: Any) -> dict[str, Any]:
    """A dict of settings, or JSON text of one."""
    if isinstance(value, str):
        value = json.loads(value)
    if not isinstance(value, Mapping) or not all(isinstance(word, str) for word in value):
        raise TypeError(f"must be a dict of names and values, or JSON text of one, got {value!r}.")
    return dict(value)


def _learner_name(value: Any) -> str:
    name = str(TypeConverters.toString(value))
    learner_class(name)  # raises if there is none
    return name


class _Converter:
    """A type converter that says which param a value is for."""

    def __init__(self, name: str, convert: Any) -> None:
        self.name, self.convert = name, convert

    def __call__(self, value: Any) -> Any:
        try:
            return self.convert(value)
        except ValueError as error:
            raise ValueError(f"RarestreamClassifier: {self.name}: {error}") from None


def _param(name: str, doc: str, convert: Any) -> Any:
    return Param(Params._dummy(), name, doc, typeConverter=_Converter(name, convert))


class _ClassifierParams(HasInputCols, HasWeightCol, HasProbabilityCol):  # type: ignore[misc]
    """The params of the estimator and of its model."""

    threshold = _param(
        "threshold",
        "probability above which a row is predicted to be positive; not set: the threshold of the model",
        _probability,
    )
    positive = _param("positive", "the label that counts as positive", TypeConverters.identity)
    learner = _param("learner", "name of the learner", _learner_name)
    learnerSettings = _param("learnerSettings", "settings of the learner, a dict or JSON", _settings)  # noqa: N815
    groups = _param("groups", 'number of groups that learn side by side, or "auto"', _count_or_auto)
    rounds = _param("rounds", 'number of times per pass that their states are merged, or "auto"', _count_or_auto)
    passes = _param("passes", "number of passes over the rows", _count)
    checkpointDir = _param(  # noqa: N815
        "checkpointDir", "folder to save the state of training in, for resuming", TypeConverters.toString
    )
    scale = _param("scale", 'how rows are scaled: "unit", "max" or "none"', TypeConverters.toString)
    dtype = _param("dtype", 'precision of the state: "float32" or "float64"', TypeConverters.toString)
    nulls = _param("nulls", 'rows to learn without label or features: "error", or "skip" them', TypeConverters.toString)
    calibrate = _param("calibrate", "whether the model learns to give probabilities, too", TypeConverters.toBoolean)
    negativesKept = _param(  # noqa: N815
        "negativesKept", "share of the negatives that the rows to learn have", TypeConverters.toFloat
    )
    price = _param("price", "whether to measure what the groups cost in AUC, on a sample", TypeConverters.toBoolean)
    tableOptions = _param(  # noqa: N815
        "tableOptions", "options of a table, such as categorical and crosses, a dict or JSON", _settings
    )

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._setDefault(
            learner="auto",
            learnerSettings={},
            groups="auto",
            rounds="auto",
            passes=1,
            scale="unit",
            dtype="float32",
            nulls="error",
            calibrate=True,
            negativesKept=1.0,
            price=True,
            tableOptions={},
        )

    def getThreshold(self) -> float | None:  # noqa: N802
        """Return `threshold`; None if it is not set."""
        found: float | None = self._optional(self.threshold)
        return found

    def getPositive(self) -> Any:  # noqa: N802
        """Return `positive`; None if it is not set."""
        return self._optional(self.positive)

    def getLearner(self) -> str:  # noqa: N802
        """Return `learner`."""
        return str(self.getOrDefault(self.learner))

    def getLearnerSettings(self) -> dict[str, Any]:  # noqa: N802
        """Return `learnerSettings`."""
        return dict(self.getOrDefault(self.learnerSettings))

    def getGroups(self) -> int | str:  # noqa: N802
        """Return `groups`."""
        found: int | str = self.getOrDefault(self.groups)
        return found

    def getRounds(self) -> int | str:  # noqa: N802
        """Return `rounds`."""
        found: int | str = self.getOrDefault(self.rounds)
        return found

    def getPasses(self) -> int:  # noqa: N802
        """Return `passes`."""
        return int(self.getOrDefault(self.passes))

    def getCheckpointDir(self) -> str | None:  # noqa: N802
        """Return `checkpointDir`; None if it is not set."""
        found: str | None = self._optional(self.checkpointDir)
        return found

    def getScale(self) -> str:  # noqa: N802
        """Return `scale`."""
        return str(self.getOrDefault(self.scale))

    def getDtype(self) -> str:  # noqa: N802
        """Return `dtype`."""
        return str(self.getOrDefault(self.dtype))

    def getNulls(self) -> str:  # noqa: N802
        """Return `nulls`."""
        return str(self.getOrDefault(self.nulls))

    def getCalibrate(self) -> bool:  # noqa: N802
        """Return `calibrate`."""
        return bool(self.getOrDefault(self.calibrate))

    def getNegativesKept(self) -> float:  # noqa: N802
        """Return `negativesKept`."""
        return float(self.getOrDefault(self.negativesKept))

    def getPrice(self) -> bool:  # noqa: N802
        """Return `price`."""
        return bool(self.getOrDefault(self.price))

    def getTableOptions(self) -> dict[str, Any]:  # noqa: N802
        """Return `tableOptions`."""
        return dict(self.getOrDefault(self.tableOptions))

    def setInputCols(self, value: list[str]) -> Self:  # noqa: N802
        """Set `inputCols`, the columns of a table, in place of `featuresCol`."""
        return self._assigned(inputCols=value)

    def setProbabilityCol(self, value: str) -> Self:  # noqa: N802
        """Set `probabilityCol`; "" for none."""
        return self._assigned(probabilityCol=value)

    def setThreshold(self, value: float) -> Self:  # noqa: N802
        """Set `threshold`."""
        return self._assigned(threshold=value)

    def _assigned(self, **values: Any) -> Self:
        self._set(**values)
        return self

    def _optional(self, param: Any) -> Any:
        return self.getOrDefault(param) if self.isDefined(param) else None

    def _features(self) -> str | list[str]:
        """Return the columns of the features, as `fit` and `score` take them."""
        if self.isDefined(self.inputCols):
            return list(self.getInputCols())
        return str(self.getFeaturesCol())

    def _check_columns(self, schema: Any, *, learn: bool) -> None:
        """Raise DataError if columns are missing, or those to add are there."""
        known = {name.lower() for name in schema.names}  # Spark looks for names in either case
        features = self._features()
        wanted = {"inputCols": features} if isinstance(features, list) else {"featuresCol": [features]}
        if learn:
            wanted["labelCol"] = [self.getLabelCol()]
            weight = self._optional(self.weightCol)
            wanted["weightCol"] = [weight] if weight else []
        for param, columns in wanted.items():
            for column in columns:
                if column.lower() not in known:
                    raise DataError(
                        f"RarestreamClassifier: {param} names the column {column!r}, which the frame does not have; "
                        f"it has {', '.join(schema.names)}."
                    )
        for param, column in self._outputs().items():
            if column.lower() in known:
                raise DataError(
                    f"RarestreamClassifier: {param} is {column!r}, which the frame, or another output, has already. "
                    "Drop that column, or name another."
                )
            known.add(column.lower())

    def _outputs(self) -> dict[str, str]:
        """Return the columns that `transform` adds, by param."""
        params = ("rawPredictionCol", "probabilityCol", "predictionCol")
        return {param: name for param in params if (name := self.getOrDefault(self.getParam(param)))}

    def transformSchema(self, schema: Any) -> Any:  # noqa: N802
        """Return the schema of a frame after `transform`; DataError if columns are missing, or there already."""
        from pyspark.sql.types import DoubleType, StructField, StructType

        self._check_columns(schema, learn=False)
        added = [
            StructField(name, DoubleType() if param == "predictionCol" else VectorUDT())
            for param, name in self._outputs().items()
        ]
        return StructType([*schema.fields, *added])


class RarestreamClassifier(Classifier, _ClassifierParams, DefaultParamsReadable, DefaultParamsWritable):  # type: ignore[misc]
    """Learns rare events: an Estimator of Spark ML.

    All params have setters and getters, such as `setLearner` and `getLearner`.

    Parameters
    ----------
    featuresCol : str, default "features"
        The column of the features: vectors, or whatever else `fit` takes as one column.
    inputCols : list of str, optional
        In place of `featuresCol`: the columns of a table, as `fit` takes them; text, numbers, dates and lists need not
        be encoded.
    labelCol : str, default "label"
        The column of the label. Predictions are 1.0 for positive rows, which labels of 0 and 1 agree with.
    weightCol : str, optional
        The column of the importance of rows.
    rawPredictionCol : str, default "rawPrediction"
        Column to add: the vector [-score, score]. This and the next two are left out if they are "".
    probabilityCol : str, default "probability"
        Column to add: the vector of the probabilities of a negative and of a positive.
    predictionCol : str, default "prediction"
        Column to add: 1.0 for the rows that are predicted to be positive, 0.0 for the others.
    threshold : float, between 0 and 1, optional
        Rows with a larger probability are predicted to be positive. By default those whose score is at least that of
        the model's decision or, without one, of probability 1/2, as in `Model.label`.
    positive : number or str, optional
        The label that counts as positive; by default as for `rarestream.read`.
    learner : str, default "auto"
        The name of a learner; `rarestream.learner_names()` lists them.
    learnerSettings : dict, optional
        Settings of the learner, such as {"learning_rate": 0.5}; JSON text of it will do.
    groups, rounds : int or "auto"
    passes : int, default 1
    checkpointDir : str, optional
    scale, dtype, nulls : str
    calibrate : bool, default True
    negativesKept : float, default 1
    price : bool, default True
        As for `fit`.
    tableOptions : dict, optional
        Further options of `fit` for a table, such as {"categorical": ["zip"], "crosses": ["site*device"]}; JSON text of
        it will do.

    Raises
    ------
    TypeError
        If a value has a wrong type.
    ValueError
        If a value is out of range, or there is no such learner.
    """

    @keyword_only  # type: ignore[untyped-decorator]
    def __init__(
        self,
        *,
        featuresCol: str = "features",
        inputCols: list[str] | None = None,
        labelCol: str = "label",
        weightCol: str | None = None,
        rawPredictionCol: str = "rawPrediction",
        probabilityCol: str = "probability",
        predictionCol: str = "prediction",
        threshold: float | None = None,
        positive: Any = None,
        learner: str = "auto",
        learnerSettings: dict[str, Any] | str | None = None,
        groups: int | str = "auto",
        rounds: int | str = "auto",
        passes: int = 1,
        checkpointDir: str | None = None,
        scale: str = "unit",
        dtype: str = "float32",
        nulls: str = "error",
        calibrate: bool = True,
        negativesKept: float = 1.0,
        price: bool = True,
        tableOptions: dict[str, Any] | str | None = None,
    ) -> None:
        super().__init__()
        self._set(**self._input_kwargs)

    def setParams(self, **params: Any) -> Self:  # noqa: N802
        """Set the params that are given, as for the constructor; the others stay as they are."""
        for name in params:
            if not self.hasParam(name):
                raise TypeError(f"RarestreamClassifier: there is no param {name!r}.")
        return self._assigned(**params)

    def setWeightCol(self, value: str) -> Self:  # noqa: N802
        """Set `weightCol`."""
        return self._assigned(weightCol=value)

    def setPositive(self, value: Any) -> Self:  # noqa: N802
        """Set `positive`."""
        return self._assigned(positive=value)

    def setLearner(self, value: str) -> Self:  # noqa: N802
        """Set `learner`."""
        return self._assigned(learner=value)

    def setLearnerSettings(self, value: dict[str, Any] | str) -> Self:  # noqa: N802
        """Set `learnerSettings`."""
        return self._assigned(learnerSettings=value)

    def setGroups(self, value: int | str) -> Self:  # noqa: N802
        """Set `groups`."""
        return self._assigned(groups=value)

    def setRounds(self, value: int | str) -> Self:  # noqa: N802
        """Set `rounds`."""
        return self._assigned(rounds=value)

    def setPasses(self, value: int) -> Self:  # noqa: N802
        """Set `passes`."""
        return self._assigned(passes=value)

    def setCheckpointDir(self, value: str) -> Self:  # noqa: N802
        """Set `checkpointDir`."""
        return self._assigned(checkpointDir=value)

    def setScale(self, value: str) -> Self:  # noqa: N802
        """Set `scale`."""
        return self._assigned(scale=value)

    def setDtype(self, value: str) -> Self:  # noqa: N802
        """Set `dtype`."""
        return self._assigned(dtype=value)

    def setNulls(self, value: str) -> Self:  # noqa: N802
        """Set `nulls`."""
        return self._assigned(nulls=value)

    def setCalibrate(self, value: bool) -> Self:  # noqa: N802
        """Set `calibrate`."""
        return self._assigned(calibrate=value)

    def setNegativesKept(self, value: float) -> Self:  # noqa: N802
        """Set `negativesKept`."""
        return self._assigned(negativesKept=value)

    def setPrice(self, value: bool) -> Self:  # noqa: N802
        """Set `price`; measuring it for every fit of a search takes time."""
        return self._assigned(price=value)

    def setTableOptions(self, value: dict[str, Any] | str) -> Self:  # noqa: N802
        """Set `tableOptions`."""
        return self._assigned(tableOptions=value)

    def _fit(self, dataset: Any) -> RarestreamClassifierModel:
        self._check_columns(dataset.schema, learn=True)
        learner: Learner = make_learner(self.getLearner(), **self.getLearnerSettings())
        model = fit(
            dataset,
            label=self.getLabelCol(),
            features=self._features(),
            importance=self._optional(self.weightCol) or None,
            positive=self.getPositive(),
            learner=learner,
            groups=self.getGroups(),
            rounds=self.getRounds(),
            passes=self.getPasses(),
            checkpoint_dir=self.getCheckpointDir(),
            scale=self.getScale(),
            dtype=self.getDtype(),
            nulls=self.getNulls(),
            calibrate=self.getCalibrate(),
            negatives_kept=self.getNegativesKept(),
            price=self.getPrice(),
            **self.getTableOptions(),
        )
        fitted = RarestreamClassifierModel(model)
        fitted._resetUid(self.uid)
        copied: RarestreamClassifierModel = self._copyValues(fitted)
        return copied


class RarestreamClassifierModel(ClassificationModel, _ClassifierParams, MLReadable, MLWritable):  # type: ignore[misc]
    """What RarestreamClassifier has learned: a Model of Spark ML.

    It has the params of RarestreamClassifier; columns and `threshold` may be changed.

    Parameters
    ----------
    model : Model
        An ordinary model, wherever it was trained.

    Attributes
    ----------
    model : Model
        The ordinary model: save, inspect, export or serve it, or let it learn on.
    """

    def __init__(self, model: Model | None = None) -> None:
        super().__init__()
        self._model = model

    @property
    def model(self) -> Model:
        """The ordinary model."""
        if self._model is None:
            raise RarestreamError("RarestreamClassifierModel: there is no model yet; give one, or load it.")
        return self._model

    @property
    def numClasses(self) -> int:  # noqa: N802
        """Number of classes: 2."""
        return 2

    @property
    def numFeatures(self) -> int:  # noqa: N802
        """Number of features of the model."""
        return self.model.n_features

    def predictRaw(self, value: Any) -> Any:  # noqa: N802
        """Return [-score, score] of a vector or, if the model has named features, of a row as a dict."""
        found = self._score_one(value)
        return DenseVector([-found, found])

    def predict(self, value: Any) -> float:
        """Return the prediction, 0.0 or 1.0, for a vector or, if the model has named features, a row as a dict."""
        found, threshold = self._score_one(value), self.getThreshold()
        if threshold is None:
            return float(found >= self.model.label_threshold)
        known = self.model.known_calibration("RarestreamClassifierModel.predict")
        return float(known.probability(found, self.model.negatives_kept) > threshold)

    def _score_one(self, value: Any) -> float:
        if isinstance(value, Mapping):
            return self.model.score_one(value)
        if not isinstance(value, SparseVector):
            value = DenseVector(value)
            value = SparseVector(len(value), {at: entry for at, entry in enumerate(value) if entry != 0})
        return self.model.score_one(value.indices, value.values)

    def _transform(self, dataset: Any) -> Any:
        from pyspark.ml.functions import array_to_vector
        from pyspark.sql import functions as F  # noqa: N812

        self._check_columns(dataset.schema, learn=False)
        outputs, threshold = self._outputs(), self.getThreshold()
        self._check_calibrated(outputs, threshold)
        needs_probability = "probabilityCol" in outputs or ("predictionCol" in outputs and threshold is not None)
        scored = score(
            dataset,
            self.model,
            features=self._features(),
            score=SCORE,
            probability=PROBABILITY if needs_probability else None,
        )
        found, probability = F.col(SCORE), F.col(PROBABILITY)
        positive = found >= F.lit(self.model.label_threshold) if threshold is None else probability > F.lit(threshold)
        made = {
            "rawPredictionCol": lambda: F.when(found.isNotNull(), array_to_vector(F.array(-found, found))),
            "probabilityCol": lambda: F.when(
                probability.isNotNull(), array_to_vector(F.array(1 - probability, probability))
            ),
            "predictionCol": lambda: positive.cast("double"),
        }
        added = [made[param]().alias(name) for param, name in outputs.items()]
        return scored.select("*", *added).drop(SCORE, PROBABILITY)

    def _check_calibrated(self, outputs: dict[str, str], threshold: float | None) -> None:
        if self.model.calibration is not None:
            return
        try:
            self.model.known_calibration("RarestreamClassifierModel")
        except NotCalibratedError as error:
            if "predictionCol" in outputs and threshold is not None:
                raise NotCalibratedError(f"{error} Or clear threshold, which is a probability.") from None
            if "probabilityCol" in outputs:
                raise NotCalibratedError(f'{error} Or leave the column out: setProbabilityCol("").') from None

    def write(self) -> Any:
        """Return what writes this to a folder."""
        return _Writer(self)

    @classmethod
    def read(cls) -> Any:
        """Return what reads a folder."""
        return _Reader(cls)


class _Writer(DefaultParamsWriter):  # type: ignore[misc]
    """Writes the params as Spark ML does, and the model beside them."""

    def saveImpl(self, path: str) -> None:  # noqa: N802
        data = self.instance.model.to_bytes()
        super().saveImpl(path)
        write_bytes(self.sparkSession, f"{path}/{MODEL}", data, {})


class _Reader(DefaultParamsReader):  # type: ignore[misc]
    """Reads what _Writer has written."""

    def load(self, path: str) -> RarestreamClassifierModel:
        instance: RarestreamClassifierModel = super().load(path)
        read = read_bytes(self.sparkSession, f"{path}/{MODEL}")
        if read is None:
            raise ModelFileError(f"{path}/{MODEL}: there is no model, or it is incomplete or damaged. Save it again.")
        instance._model = Model.from_bytes(read[0], f"{path}/{MODEL}")
        return instance
