"""The model file: golden bytes, hostile files, whole or not at all."""

from __future__ import annotations

import json
import os
import resource
import struct
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rarestream import Model, ModelFileError, learner_names, make_learner, modelfile
from tests import children
from tests.model.write_golden import golden_rows
from tests.strategies import block_of, examples, random_block

GOLDEN = Path(__file__).parent / "golden"


def trained(name: str = "dual-auc", **changes) -> Model:
    model = Model(make_learner(name), **changes)
    model.learn(random_block(60, 20, 4))
    return model


def parts(model: Model, kind: str = "resumable"):
    return modelfile.from_bytes(model.to_bytes(kind))


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.rare")), ids=lambda path: path.stem)
def test_files_written_by_every_release_are_read_and_written_again_alike(path):
    model = Model.load(path)
    expected = json.loads(path.with_suffix(".json").read_text())
    assert model.score(golden_rows(path, 10, 1)).tolist() == expected["scores"]
    if "names" in expected:
        assert model.feature_names(range(len(expected["names"]))) == expected["names"]
    assert model.learner.name == expected["learner"]
    header, arrays = modelfile.from_bytes(path.read_bytes())
    again, same = modelfile.from_bytes(model.to_bytes(model.kind))
    gained = again["learner"]["settings"].keys() - header["learner"]["settings"].keys()
    for name in gained:  # settings a learner has gained since, at their defaults
        del again["learner"]["settings"][name]
    if "candidates" not in header:  # files of the first version do not name the settings that race
        again.pop("candidates", None)
    if "more.shares" not in arrays and (shares := same.pop("more.shares", None)) is not None:  # nor is theirs a mixture
        assert shares[int(arrays["tally"][-1])] == shares.sum() == 1
        del same["more.order"]
    assert again == header
    assert arrays.keys() == same.keys()
    assert all(np.array_equal(arrays[name], same[name]) for name in arrays)


@pytest.mark.parametrize("name", learner_names())
@pytest.mark.parametrize("scale", ["unit", "max", "none"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_scoring_model_scores_as_the_model_it_was_made_of(name, scale, dtype):
    model = trained(name, scale=scale, dtype=dtype)
    slim = Model.from_bytes(model.to_bytes("scoring"))
    wide = random_block(50, 40, 6, seed=5)  # features the model never saw, values larger than any before
    assert np.array_equal(slim.score(wide), model.score(wide))
    assert np.array_equal(slim.coef, model.coef)
    assert (slim.threshold, slim.intercept, slim.rows) == (model.threshold, model.intercept, model.rows)
    assert len(model.to_bytes("scoring")) < len(model.to_bytes())


def test_a_scoring_model_refuses_to_learn_and_says_why():
    slim = Model.from_bytes(trained().to_bytes("scoring"))
    assert slim.kind == "scoring"
    with pytest.raises(ModelFileError, match=r"scoring only.*kind='resumable'"):
        slim.learn(block_of([{0: 1.0}], [1]))
    with pytest.raises(ModelFileError, match="kind='scoring'"):
        slim.to_bytes()
    assert Model.from_bytes(slim.to_bytes("scoring")).to_bytes("scoring") == slim.to_bytes("scoring")


@pytest.mark.parametrize("kind", ["resumable", "scoring"])
def test_a_file_cut_at_every_byte_is_refused(kind):
    data = trained().to_bytes(kind)
    for size in range(len(data)):
        with pytest.raises(ModelFileError):
            Model.from_bytes(data[:size])


@given(st.data())
@settings(max_examples=examples(300))
def test_a_file_with_any_byte_changed_is_refused(data):
    whole = bytearray(trained().to_bytes())
    at = data.draw(st.integers(0, len(whole) - 1))
    whole[at] ^= data.draw(st.integers(1, 255))
    with pytest.raises(ModelFileError):
        Model.from_bytes(bytes(whole))


@pytest.mark.parametrize("other", [b"0E0", b"9E999", b"NaN", b"Infinity", b"-Infinity"])
def test_a_number_spelled_otherwise_is_refused(other):
    whole = trained().to_bytes()
    size = int.from_bytes(whole[:8], "little")
    header = whole[8 : 8 + size]
    assert header.count(b'l1\\":0.0') == 1
    header = header.replace(b'l1\\":0.0', b'l1\\":' + other)
    with pytest.raises(ModelFileError, match="the checksum does not match"):
        Model.from_bytes(struct.pack("<Q", len(header)) + header + whole[8 + size :])


@given(st.binary(max_size=300))
def test_junk_is_refused(junk):
    with pytest.raises(ModelFileError):
        Model.from_bytes(junk)
    with pytest.raises(ModelFileError):
        Model.from_bytes(struct.pack("<Q", len(junk)) + junk)


def test_a_newer_format_names_itself_and_the_way_on():
    header, arrays = parts(trained())
    newer = modelfile.to_bytes(header, arrays).replace(b'\\"format\\":1', b'\\"format\\":7')
    with pytest.raises(ModelFileError, match=r"spam.rare: written by format 7; this version reads up to 3\. Upgrade"):
        Model.from_bytes(newer, "spam.rare")


def test_a_safetensors_file_that_is_no_model_says_so():
    from safetensors.numpy import save

    with pytest.raises(ModelFileError, match="not a rarestream model"):
        Model.from_bytes(save({"w": np.zeros(3)}))
    with pytest.raises(ModelFileError, match="not a rarestream model"):
        Model.from_bytes(save({"w": np.zeros(3)}, metadata={"rarestream": "[]"}))


@given(
    st.dictionaries(
        st.text('abcdeéß"\\\n\x7f._0', min_size=1, max_size=8),
        st.tuples(st.sampled_from(modelfile.DTYPES), st.lists(st.integers(0, 4), min_size=1, max_size=3)),
        max_size=6,
    ),
    st.text(max_size=20),
)
@settings(deadline=None)
def test_a_file_is_as_safetensors_writes_it(kinds, source):
    from safetensors.numpy import save

    arrays = {
        name: np.arange(int(np.prod(shape)), dtype=dtype).reshape(shape) for name, (dtype, shape) in kinds.items()
    }
    made = modelfile.to_bytes({"source": source}, arrays)
    header = json.loads(made[8 : 8 + int.from_bytes(made[:8], "little")])
    assert made == save(arrays, metadata=header["__metadata__"])


@pytest.mark.parametrize("kind", ["resumable", "scoring"])
@pytest.mark.parametrize("name", learner_names())
def test_what_is_saved_is_of_one_moment(name, kind):
    model = trained(name, scale="max")
    expected = model.to_bytes(kind)
    header, arrays = model._file_parts(kind)
    model.learn(random_block(60, 20, 5))
    assert modelfile.to_bytes(header, arrays) == expected


HOSTILE = {
    "unsorted index": lambda h, a: a.update(index=a["index"][::-1].copy()),
    "index out of range": lambda h, a: a.update(index=a["index"] + np.int32(10**6)),
    "negative index": lambda h, a: a.update(index=a["index"] - np.int32(5)),
    "NaN": lambda h, a: a.update(z=a["z"] * np.float32(np.nan)),
    "negative n": lambda h, a: a.update(n=-1 - a["n"]),
    "wrong length": lambda h, a: a.update(n=a["n"][1:]),
    "wrong type": lambda h, a: a.update(z=a["z"].astype(np.float64)),
    "missing array": lambda h, a: a.pop("z"),
    "matrix": lambda h, a: a.update(z=a["z"][None]),
    "short tally": lambda h, a: a.update(tally=a["tally"][:3]),
    "negative count": lambda h, a: a["tally"].__setitem__(0, -1.0),
    "no learner": lambda h, a: h.pop("learner"),
    "unknown learner": lambda h, a: h.update(learner={"name": "skynet", "settings": {}}),
    "unknown setting": lambda h, a: h["learner"]["settings"].update(speed=9),
    "bad setting": lambda h, a: h["learner"]["settings"].update(l1=-1),
    "settings that are none": lambda h, a: h["learner"].update(settings=3),
    "unknown scale": lambda h, a: h.update(scale="huge"),
    "unknown dtype": lambda h, a: h.update(dtype="float16"),
    "unknown kind": lambda h, a: h.update(kind="other"),
    "too many features": lambda h, a: h["features"].update(count=2**40),
    "features that are none": lambda h, a: h["features"].update(count="many"),
    "unknown feature space": lambda h, a: h["features"].update(space="words"),
    "negative rows": lambda h, a: h.update(rows=-1),
    "source that is none": lambda h, a: h.update(source=5),
    "no progress": lambda h, a: [a.pop(key) for key in list(a) if key.startswith("progress.")],
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_file_with_a_right_checksum_is_refused(what):
    header, arrays = parts(trained())
    arrays = {name: array.copy() for name, array in arrays.items()}
    HOSTILE[what](header, arrays)
    with pytest.raises(ModelFileError, match="evil.rare: "):
        Model.from_bytes(modelfile.to_bytes(header, arrays), "evil.rare")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ModelFileError, match=r"gone.rare: cannot be read \(No such file"):
        Model.load(tmp_path / "gone.rare")


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(ModelFileError, match=r"m.rare: cannot be written \(No such file"):
        trained().save(tmp_path / "nowhere" / "m.rare")


def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "m.rare"
    model = trained()
    model.save(path)
    before = path.read_bytes()
    model.learn(random_block(500, 5000, 9, seed=2))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    import signal

    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) // 2, limits[1]))
    try:
        with pytest.raises(ModelFileError, match=r"could not be saved .*was left as it was.*save again"):
            model.save(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, ignored)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["m.rare"]


KILLED = """
import os, sys
from rarestream import Model
from tests.strategies import random_block
model = Model.load(sys.argv[1])
model.learn(random_block(200, 50, 5, seed=3))
step, real = sys.argv[2], getattr(os, sys.argv[2])
def die(*args):
    if len(sys.argv) > 3: real(*args)
    os.kill(os.getpid(), 9)
setattr(os, step, die)
model.save(sys.argv[1])
"""


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_in_the_middle_of_a_save_the_path_holds_the_old_or_the_new_model(tmp_path, step, when):
    path = tmp_path / "m.rare"
    trained().save(path)
    old = path.read_bytes()
    new = Model.load(path)
    new.learn(random_block(200, 50, 5, seed=3))
    command = [sys.executable, "-c", KILLED, str(path), step, *(["after"] if when == "after" else [])]
    children.run(command, cwd=Path(__file__).parents[2])
    assert path.read_bytes() in (old, new.to_bytes())
    Model.load(path)
