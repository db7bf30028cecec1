"""The estimator and the model of Spark ML: columns, params, pipelines, searches, files."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.ml import Pipeline, PipelineModel
from pyspark.ml.evaluation import BinaryClassificationEvaluator
from pyspark.ml.feature import HashingTF, StringIndexer, Tokenizer, VectorAssembler
from pyspark.ml.linalg import Vectors, VectorUDT
from pyspark.ml.tuning import CrossValidator, ParamGridBuilder
from pyspark.sql.types import IntegerType, StructField, StructType

from rarestream import Block, DataError, Model, ModelFileError, NotCalibratedError, make_learner
from rarestream.spark import ml
from rarestream.spark.ml import RarestreamClassifier, RarestreamClassifierModel

SCHEMA = "a double, b double, site string, clicked string"
FEATURES = 30


def rows(count: int = 600, seed: int = 0) -> list[tuple[Any, ...]]:
    """Rows of a table: clicks are one in eight, more of them where `a` is large or the site is s1."""
    draw = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        a, b, site = float(draw.normal()), float(draw.normal()), int(draw.integers(5))
        odds = 2 * a + 2 * (site == 1) - 3
        found.append((a, b, f"s{site}", "yes" if draw.random() < 1 / (1 + np.exp(-odds)) else "no"))
    return found


def stages(**params: Any) -> list[Any]:
    return [
        StringIndexer(inputCol="clicked", outputCol="label"),  # the rarer label becomes 1
        VectorAssembler(inputCols=["a", "b"], outputCol="features"),
        RarestreamClassifier(learner="dual-auc", **params),
    ]


@pytest.fixture(scope="module")
def frame(spark):
    return spark.createDataFrame(rows(), SCHEMA).coalesce(2).cache()


@pytest.fixture(scope="module")
def fitted(frame) -> PipelineModel:
    return Pipeline(stages=stages(groups=1)).fit(frame)


def sparse_rows(count: int, seed: int) -> tuple[list[Any], np.ndarray]:
    draw = np.random.default_rng(seed)
    found, labels = [], np.empty(count, np.int8)
    for number in range(count):
        columns = np.sort(draw.choice(FEATURES, 5, replace=False))
        found.append(Vectors.sparse(FEATURES, columns, np.ones(5)))
        labels[number] = 1 if (columns < 3).any() and draw.random() < 0.7 else -1
    return found, labels


def trained(calibrate: bool = True) -> Model:
    """A model that this machine has trained on sparse vectors."""
    vectors, labels = sparse_rows(500, 1)
    model = Model("dual-auc", calibrate=calibrate)
    model.learn(block(vectors, labels))
    return model


def block(vectors: list[Any], labels: np.ndarray | None = None) -> Block:
    return Block.of(np.array([vector.toArray() for vector in vectors]), labels)


@pytest.fixture(scope="module")
def vectors(spark):
    """Sparse vectors, one dense, and a null."""
    found, _ = sparse_rows(20, 2)
    found[3] = Vectors.dense(found[3].toArray())
    schema = StructType([StructField("id", IntegerType()), StructField("features", VectorUDT())])
    return spark.createDataFrame([(number, one) for number, one in enumerate([*found, None])], schema)


def collected(df: Any, *columns: str) -> list[Any]:
    return [tuple(row[column] for column in columns) for row in df.orderBy("id").collect()]


# -- transform


def test_the_columns_are_those_of_a_classifier_of_spark(vectors):
    model = trained()
    out = RarestreamClassifierModel(model).transform(vectors)
    assert out.schema == RarestreamClassifierModel(model).transformSchema(vectors.schema)
    types = [out.schema[name].dataType for name in ("rawPrediction", "probability")]
    assert all(isinstance(kind, VectorUDT) for kind in types)
    found = collected(out, "rawPrediction", "probability", "prediction")
    assert found.pop() == (None, None, None)
    rows = block([row["features"] for row in vectors.orderBy("id").collect()[:-1]])
    scores = model.score(rows)
    np.testing.assert_array_equal([raw.toArray() for raw, _, _ in found], np.column_stack([-scores, scores]))
    chances = model.probability(rows)
    np.testing.assert_array_equal([two.toArray() for _, two, _ in found], np.column_stack([1 - chances, chances]))
    assert [called for *_, called in found] == (model.label(rows) > 0).tolist()


def test_a_threshold_is_one_of_the_probability(vectors):
    model = RarestreamClassifierModel(trained())
    lower = model.copy({model.threshold: 0.1})
    assert model.getThreshold() is None and lower.getThreshold() == 0.1
    found = collected(lower.transform(vectors), "probability", "prediction", "features")[:-1]
    assert 0 < sum(called for _, called, _ in found) < len(found)
    assert [called for _, called, _ in found] == [float(two[1] > 0.1) for two, _, _ in found]
    assert [called for _, called, _ in found] == [lower.predict(vector) for *_, vector in found]


def test_columns_without_a_name_are_left_out(vectors):
    model = RarestreamClassifierModel(trained(calibrate=False)).setProbabilityCol("").setPredictionCol("called")
    assert model.transform(vectors).columns == ["id", "features", "rawPrediction", "called"]


def test_a_model_that_is_not_calibrated_has_no_probabilities(vectors):
    model = RarestreamClassifierModel(trained(calibrate=False))
    with pytest.raises(NotCalibratedError, match=r'calibrate=False.*setProbabilityCol\(""\)'):
        model.transform(vectors)
    with pytest.raises(NotCalibratedError, match="clear threshold"):
        model.setProbabilityCol("").setThreshold(0.2).transform(vectors)


def test_a_single_row_is_scored_as_in_a_frame(vectors):
    model = RarestreamClassifierModel(trained())
    raw, called, vector = collected(model.transform(vectors), "rawPrediction", "prediction", "features")[0]
    assert (model.predictRaw(vector), model.predict(vector)) == (raw, called)
    assert model.predictRaw(vector.toArray()) == raw
    assert (model.numClasses, model.numFeatures) == (2, FEATURES)


# -- fit


def test_params_become_arguments_of_fit(vectors, monkeypatch: pytest.MonkeyPatch):
    seen: dict[str, Any] = {}

    def fit(df: Any, **arguments: Any) -> Model:
        seen.update(arguments)
        return trained()

    monkeypatch.setattr(ml, "fit", fit)
    classifier = RarestreamClassifier(inputCols=["features"], labelCol="id", weightCol="id", positive=1, scale="max")
    classifier.setParams(groups=3, rounds=5, passes=2, checkpointDir="/tmp/c", nulls="skip", dtype="float64")
    classifier.setCalibrate(False).setNegativesKept(0.1).setPrice(False)
    classifier.setLearner("dual-auc").setLearnerSettings('{"learning_rate": 0.5}').setTableOptions({"bits": 18})
    model = classifier.fit(vectors)
    assert seen == {
        "label": "id",
        "features": ["features"],
        "importance": "id",
        "positive": 1,
        "learner": make_learner("dual-auc", learning_rate=0.5),
        "groups": 3,
        "rounds": 5,
        "passes": 2,
        "checkpoint_dir": "/tmp/c",
        "scale": "max",
        "dtype": "float64",
        "nulls": "skip",
        "calibrate": False,
        "negatives_kept": 0.1,
        "price": False,
        "bits": 18,
    }
    assert model.uid == classifier.uid
    assert model.extractParamMap().keys() == classifier.extractParamMap().keys()
    for param in classifier.params:
        getter = getattr(model, f"get{param.name[0].upper()}{param.name[1:]}")
        assert not classifier.isDefined(param) or getter() == classifier.getOrDefault(param)
    classifier.fit(vectors, {classifier.passes: 7})
    assert seen["passes"] == 7 and classifier.getPasses() == 2


def test_a_pipeline_learns_and_scores(frame, fitted):
    out = fitted.transform(frame).cache()
    assert BinaryClassificationEvaluator().evaluate(out) > 0.7
    model = fitted.stages[-1].model
    assert type(model) is Model and model.rows == 600
    table = out.toPandas()
    rows = Block.of(np.array([vector.toArray() for vector in table["features"]]))
    np.testing.assert_array_equal([raw[1] for raw in table["rawPrediction"]], model.score(rows))


def test_columns_of_a_table_need_no_encoding(frame):
    found = RarestreamClassifier(
        inputCols=["a", "b", "site"], labelCol="clicked", learner="dual-auc", groups=1, tableOptions={"bits": 16}
    ).fit(frame)
    assert found.numFeatures == 2**16
    row = found.transform(frame).first()
    assert found.predictRaw({"a": row["a"], "b": row["b"], "site": row["site"]}) == row["rawPrediction"]
    assert found.predict({"a": 4.0, "site": "s1"}) == 1.0


def test_a_search_compares_settings(frame):
    data = Pipeline(stages=stages()[:2]).fit(frame).transform(frame).cache()
    classifier = RarestreamClassifier(learner="dual-auc", groups=1)
    settings = [{"learning_rate": 1e-6, "l1": 100.0}, {"learning_rate": 0.25}]  # the first one learns nothing
    grid = ParamGridBuilder().addGrid(classifier.learnerSettings, settings).build()
    evaluator = BinaryClassificationEvaluator()
    search = CrossValidator(estimator=classifier, estimatorParamMaps=grid, evaluator=evaluator, numFolds=2, seed=1)
    found = search.fit(data)
    assert found.avgMetrics[0] == 0.5 < found.avgMetrics[1]
    assert found.bestModel.getLearnerSettings() == {"learning_rate": 0.25}


# -- files


def test_a_pipeline_that_was_saved_gives_the_same_predictions(frame, fitted, tmp_path: Path):
    fitted.save(f"{tmp_path}/pipeline")
    loaded = PipelineModel.load(f"{tmp_path}/pipeline")
    assert loaded.stages[-1].model.to_bytes() == fitted.stages[-1].model.to_bytes()
    assert loaded.stages[-1].extractParamMap() == fitted.stages[-1].extractParamMap()
    assert loaded.transform(frame).collect() == fitted.transform(frame).collect()


def test_an_estimator_is_saved_with_its_params(spark, tmp_path: Path):
    first = RarestreamClassifier(learnerSettings={"l1": 0.5}, learner="ftrl-auc", groups=2, inputCols=["a", "b"])
    first.save(f"{tmp_path}/classifier")
    assert RarestreamClassifier.load(f"{tmp_path}/classifier").extractParamMap() == first.extractParamMap()


def test_a_model_is_replaced_and_a_damaged_one_is_an_error(spark, tmp_path: Path):
    for _ in range(2):
        RarestreamClassifierModel(trained()).write().overwrite().save(f"{tmp_path}/one")
    assert RarestreamClassifierModel.load(f"{tmp_path}/one").model.rows == 500
    shutil.rmtree(tmp_path / "one" / "model")
    with pytest.raises(ModelFileError, match="one/model: there is no model, or it is incomplete or damaged"):
        RarestreamClassifierModel.load(f"{tmp_path}/one")


# -- what is wrong is said


@pytest.mark.parametrize(
    "params, message",
    [
        ({"learner": "dual_acu"}, r"learner: no learner is called 'dual_acu'; did you mean 'dual-auc'"),
        ({"threshold": 1.5}, "threshold: must be between 0 and 1, got 1.5"),
        ({"groups": 0}, "groups: must be at least 1, got 0"),
        ({"passes": -1}, "passes: must be at least 1, got -1"),
        ({"learnerSettings": "{"}, "learnerSettings: "),
    ],
)
def test_values_out_of_range(params: dict[str, Any], message: str):
    with pytest.raises(ValueError, match=f"RarestreamClassifier: {message}"):
        RarestreamClassifier(**params)


@pytest.mark.parametrize(
    "params, message",
    [
        ({"rounds": "many"}, 'Invalid param value given for param "rounds"'),
        ({"learnerSettings": [1]}, "must be a dict of names and values, or JSON text of one, got \\[1\\]"),
    ],
)
def test_values_of_wrong_types(params: dict[str, Any], message: str):
    with pytest.raises(TypeError, match=message):
        RarestreamClassifier(**params)
    with pytest.raises(TypeError, match="there is no param 'round'"):
        RarestreamClassifier().setParams(round=3)


def test_columns_that_do_not_fit(vectors):
    with pytest.raises(DataError, match="labelCol names the column 'label', which the frame does not have; it has id,"):
        RarestreamClassifier().fit(vectors)
    with pytest.raises(DataError, match="inputCols names the column 'price'"):
        RarestreamClassifier(inputCols=["id", "price"]).transformSchema(vectors.schema)
    with pytest.raises(DataError, match="predictionCol is 'ID', which the frame, or another output, has already"):
        RarestreamClassifierModel(trained()).setPredictionCol("ID").transform(vectors)
    with pytest.raises(DataError, match="probabilityCol is 'rawPrediction', which"):
        RarestreamClassifierModel(trained()).setProbabilityCol("rawPrediction").transformSchema(vectors.schema)
    with pytest.raises(ValueError, match="dual-auc: no setting is called 'rate'"):
        RarestreamClassifier(labelCol="id", learner="dual-auc", learnerSettings={"rate": 1}).fit(vectors)


# -- Spark Connect


def test_pipelines_work_with_spark_connect(connect, tmp_path: Path):
    frame = connect.createDataFrame(rows(), SCHEMA).coalesce(2)
    words = [Tokenizer(inputCol="site", outputCol="words"), HashingTF(inputCol="words", outputCol="features")]
    pipeline = Pipeline(stages=[stages()[0], *words, RarestreamClassifier(learner="dual-auc", groups=1)])
    fitted = pipeline.fit(frame)
    out = fitted.transform(frame)
    assert BinaryClassificationEvaluator().evaluate(out) > 0.6
    fitted.save(f"{tmp_path}/pipeline")
    loaded = PipelineModel.load(f"{tmp_path}/pipeline")
    assert loaded.transform(frame).collect() == out.collect()
