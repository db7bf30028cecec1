"""Dense arrays as Blocks: the same rows, bit for bit, as SciPy's CSR of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from rarestream import Block, DataError, _native

TYPES = ["float16", "float32", "float64", "longdouble", "bool", ">f4", ">f8", ">i4", ">i8"]
TYPES += [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
LAYOUTS = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "every second column": lambda a: np.repeat(a, 2, axis=1)[:, ::2],
    "every second row": lambda a: np.repeat(a, 2, axis=0)[::2],
    "backwards": lambda a: a[::-1, ::-1].copy()[::-1, ::-1],
    "transposed slice": lambda a: np.repeat(np.repeat(a.T, 3, axis=0), 2, axis=1)[::3, ::2].T,
    "unaligned": lambda a: unaligned(a),
}


@pytest.fixture(params=["portable", "avx2"])
def isa(request):
    if request.param == "avx2" and _native.isa() != "avx2":
        pytest.skip("this machine has no AVX2, or another set was asked for")
    before = _native.isa()
    _native.set_isa(request.param)
    yield request.param
    _native.set_isa(before)


def unaligned(array):
    packed = np.zeros(array.shape, np.dtype([("before", "u1"), ("number", array.dtype)]))
    packed["number"] = array
    return packed["number"]


def numbers(dtype, rows, columns, seed):
    """Two thirds zeros; else small, huge and tiny numbers, and, of floats, negative zeros."""
    random = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        edges = [1.5, -2.25, 0.1, 1e-3, -0.0, 65504.0, 6e-8]
        if dtype.itemsize > 2:
            edges += [1 / 3, 3.4028234e38, -1e38, 1e-45, 1.17e-38]
        if dtype.itemsize > 4:
            edges += [16777217.0, 1e-300, 5e-324, 0.1 + 1e-12, 1.0000000596046448]
    elif dtype.kind == "b":
        edges = [True]
    else:
        info = np.iinfo(dtype)
        edges = [1, 2, info.max, info.max - 1, info.max // 3, info.min, min(2**24 + 1, info.max)]
        edges += [2**53 + 1, 2**62 + 2**38 + 1] if dtype.itemsize == 8 else []
    chosen = np.array(edges, dtype)[random.integers(0, len(edges), (rows, columns))]
    return np.where(random.random((rows, columns)) < 0.66, np.zeros(1, dtype), chosen).astype(dtype)


def same(block, expected):
    assert block.width == expected.width
    for field in ("indptr", "indices", "values"):
        mine, theirs = getattr(block, field), getattr(expected, field)
        assert mine.dtype == theirs.dtype
        assert not mine.flags.writeable
        assert mine.tobytes() == theirs.tobytes()
    assert block.sealed


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", TYPES)
def test_rows_are_those_of_scipy(dtype, layout, isa):
    for rows, columns in [(1, 1), (3, 1), (1, 9), (7, 8), (40, 17), (130, 33), (3, 3000)]:
        dense = LAYOUTS[layout](numbers(dtype, rows, columns, rows + columns))
        before = dense.copy()
        known = dense.astype(np.float32 if dtype == "float16" else dense.dtype.newbyteorder("="))  # SciPy's types
        same(Block.of(dense), Block.of(sparse.csr_array(known)))
        assert np.array_equal(dense, before)


@pytest.mark.parametrize("shape", [(0, 0), (0, 5), (5, 0), (4, 7)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool"])
def test_what_has_no_entries_has_no_width(shape, dtype, isa):
    block = Block.of(np.zeros(shape, dtype))
    assert (len(block), block.nonzeros, block.width) == (shape[0], 0, 0)
    same(block, Block.of((np.zeros(shape[0] + 1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32))))


@given(
    hnp.arrays(
        st.sampled_from([np.float32, np.float64]),
        hnp.array_shapes(min_dims=2, max_dims=2, max_side=20),
        elements=st.sampled_from([0.0, -0.0, 1.0, -3.5, 0.25]),
    ),
    st.booleans(),
)
def test_any_pattern_of_zeros_is_dropped(dense, fortran):
    same(Block.of(np.asfortranarray(dense) if fortran else dense), Block.of(sparse.csr_array(dense)))


@pytest.mark.parametrize("order", ["first dense", "last dense", "random"])
def test_memory_grows_with_what_is_found(order, isa):
    random = np.random.default_rng(5)
    dense = np.zeros((3000, 40))
    if order == "random":
        dense[random.random(dense.shape) < 0.5] = 2
    else:
        dense[slice(0, 300) if order == "first dense" else slice(2700, 3000)] = random.normal(size=(300, 40))
    same(Block.of(dense), Block.of(sparse.csr_array(dense)))


@pytest.mark.parametrize("layout", ["C", "Fortran", "every second column"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_the_first_number_that_is_not_finite_is_named(bad, dtype, layout, isa):
    for column in (0, 7, 8, 20):
        dense = np.ones((50, 21), dtype)
        dense[:, 3] = 0
        dense[30, column] = dense[31, 0] = dense[49, 20] = bad
        with pytest.raises(
            DataError, match=rf"^Block: row 30, feature {column} has the value {bad}; values must be finite"
        ):
            Block.of(LAYOUTS[layout](dense))


def test_numbers_beyond_float32_are_refused_as_they_are(isa):
    with pytest.raises(DataError, match=r"row 1, feature 2 has the value -1e\+39; .* fit in float32"):
        Block.of(np.array([[0, 3.4028235e38, 1], [0, 0, -1e39]]))


def test_read_only_arrays_and_subclasses_are_read(isa):
    dense = numbers("float64", 9, 5, 1)
    expected = Block.of(sparse.csr_array(dense))
    dense.flags.writeable = False
    for array in (dense, np.asmatrix(dense), np.ma.array(dense), dense.tolist(), dense.astype(object)):
        same(Block.of(array), expected)
    with pytest.raises(DataError, match="masked"):
        Block.of(np.ma.array(dense, mask=dense > 1))
    same(Block.of(np.broadcast_to(dense[:1], (4, 5))), Block.of(sparse.csr_array(np.repeat(dense[:1], 4, axis=0))))


def test_any_byte_that_is_not_zero_is_true(isa):
    strange = np.array([[0, 1, 2], [255, 0, 128]], np.uint8).view(np.bool_)
    assert Block.of(strange).values.tolist() == [1, 1, 1, 1]


def test_a_block_does_not_change_with_the_array():
    dense = np.ones((4, 3))
    block = Block.of(dense)
    dense[:] = 7
    assert (block.values == 1).all()


# -- the survey of CSR


@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("value", ["float32", "float64"])
@pytest.mark.parametrize("size", [1, 3, 4, 7, 8, 9, 31, 2047, 2048, 2049, 5000])
def test_faults_are_found_wherever_they_are(size, value, index, isa):
    indices, values = np.arange(size, dtype=index), np.ones(size, value)
    indptr = np.array([0, size])
    block = Block.of((indptr, indices, values))
    assert (block.width, block.nonzeros) == (size, size)
    for at in sorted({0, 1, 2, 3, 4, 6, 7, 8, size // 2, size - 2, size - 1} & set(range(size))):
        wrong = values.copy()
        wrong[at] = np.nan
        with pytest.raises(DataError, match=f"row 0, feature {at} has the value nan"):
            Block.of((indptr, indices, wrong))
        outside = [-1, 2**31 - 1] if index == "int32" else [-1, 2**31 - 1, 2**31, 2**32, 2**32 + 5, -(2**32) + 5]
        for number in outside:
            strange = indices.copy()
            strange[at] = number
            with pytest.raises(DataError, match=f"row 0 has feature index {number};"):
                Block.of((indptr, strange, values))
        if at:  # twice in one row: summed; in two rows: not
            twice = indices.copy()
            twice[at] = twice[at - 1]
            summed = Block.of((indptr, twice, values))
            assert summed.nonzeros == size - 1
            assert summed.values.sum() == size
            apart = Block.of((np.array([0, at, size]), twice, values))
            assert apart.nonzeros == size
            assert np.array_equal(apart.indices, twice)
