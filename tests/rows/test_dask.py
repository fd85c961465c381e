"""Rows in Dask partitions: the same answer as in memory, however they are divided."""

from __future__ import annotations

import numpy as np
import pytest

from safespn import IgnoredColumnWarning, SafeSPNClassifier
from safespn.network.columns import column_ranges
from safespn.rows.blocks import RowBlock
from tests.rows.tables import blobs

dask = pytest.importorskip("dask", reason="needs the extra [dask]")
pytest.importorskip("dask.sizeof")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")


@pytest.fixture(autouse=True)
def _scheduler():
    with dask.config.set(scheduler="threads"):
        yield


def assert_same(ours, theirs, X):
    np.testing.assert_allclose(ours.joint_log_likelihood(X), theirs.joint_log_likelihood(X), rtol=1e-9)
    np.testing.assert_allclose(ours.safety_.worst_case, theirs.safety_.worst_case, rtol=1e-9)
    assert (ours.safety_.certified, ours.n_iter_) == (theirs.safety_.certified, theirs.n_iter_)
    np.testing.assert_allclose(np.asarray(ours.soft_labels_), np.asarray(theirs.soft_labels_), atol=1e-9)


def test_blocks_say_how_large_they_are():
    """Else Dask moves them as if they were nothing, and one of two workers may get three of four."""
    block = RowBlock(np.zeros((1_000, 20)), np.zeros(1_000, dtype=np.intp), np.ones(1_000))
    arrays = 8 * 1_000 * (20 + 1 + 1)
    assert arrays < dask.sizeof.sizeof(block) < arrays + 1_000
    assert dask.sizeof.sizeof(block.take(slice(0, 10))) < 10_000


@pytest.mark.parametrize("chunks", [57, (1, 0, 250, 149, 0)], ids=str)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"safety": "mcp", "max_iter": 10},
        {"safety": "none"},
        {"network": "deep", "univariate": True, "max_depth": 2, "max_iter": 20},
        {"sample_size": 120},
        {"network": "auto", "max_iter": 5},
    ],
    ids=str,
)
def test_blocks_of_any_size_give_the_answer_of_memory(chunks, options):
    X, _, partly = blobs(400)
    X[::17, 1] = np.nan
    options = {"random_state": 0, "max_iter": 30, **options}
    in_memory = SafeSPNClassifier(**{"network": "blocks", **options}).fit(X, partly)
    sizes = (chunks,) if isinstance(chunks, tuple) else chunks
    lazily = SafeSPNClassifier(**{"network": "blocks", **options}).fit(
        da.from_array(X, chunks=(sizes[0] if isinstance(sizes, tuple) else sizes, 2)),
        da.from_array(partly, chunks=sizes),
    )
    assert_same(lazily, in_memory, X)
    assert lazily.n_sampled_ == in_memory.n_sampled_ == min(400, options.get("sample_size", 400))


@pytest.mark.parametrize("columns", [3, 2])
@pytest.mark.parametrize("weighted", [False, True])
def test_masked_cells_are_missing_as_in_memory(columns, weighted):
    X, _, partly = blobs(200)
    X[:, 2] = np.round(X[:, 2] * 3)
    table = np.ma.array(X, mask=np.random.default_rng(0).random(X.shape) < 0.3)
    table[150:] = X[150:]
    weights = np.where(np.arange(200) % 7 == 0, 0.0, 1.5) if weighted else None
    options = {"network": "blocks", "random_state": 0, "max_iter": 10}
    in_memory = SafeSPNClassifier(**options).fit(table, partly, weights)
    blocks = da.concatenate(
        [da.from_array(table[:150], chunks=(60, columns)), da.from_array(X[150:], chunks=(60, columns))]
    )
    lazily = SafeSPNClassifier(**options).fit(blocks, partly, weights)
    assert_same(lazily, in_memory, X)
    whole = table.astype(int)
    assert_same(
        SafeSPNClassifier(**options).fit(da.from_array(whole, chunks=(60, columns)), partly),
        SafeSPNClassifier(**options).fit(whole, partly),
        X,
    )


def test_types_are_decided_without_masked_cells():
    """One column is masked throughout, another where it is neither of two numbers."""
    X, _, partly = blobs(120)
    X[:, 1] = np.arange(120) % 3
    mask = np.column_stack([np.zeros(120), X[:, 1] == 2, np.ones(120)])
    table = np.ma.array(X, mask=mask)
    options = {"network": "blocks", "random_state": 0, "max_iter": 3}
    in_memory = SafeSPNClassifier(**options).fit(table, partly)
    lazily = SafeSPNClassifier(**options).fit(da.from_array(table, chunks=(50, 3)), partly)
    assert lazily.column_types_ == in_memory.column_types_ == ["continuous", "categorical", "ignored"]
    assert_same(lazily, in_memory, np.where(mask, np.nan, X))


TINY = {
    "array": lambda X: (X, da.from_array(X, chunks=(40, 3))),
    "numbers": lambda X: _frames(pd.DataFrame(X, columns=list("abc"))),
    "nullable": lambda X: _frames(pd.DataFrame(X, columns=list("abc")).astype("Float64")),
    "texts": lambda X: _frames(pd.DataFrame(X, columns=list("abc")).assign(c=np.where(X[:, 2] > 0, "high", "low"))),
}


def _frames(frame):
    return frame, dd.from_pandas(frame, npartitions=3)


@pytest.mark.parametrize("scratch", [False, True])
@pytest.mark.parametrize("kind", TINY)
def test_units_too_small_for_a_variance_are_refused_as_in_memory(kind, scratch, tmp_path):
    X, _, partly = blobs(120)
    X[::5, 0] = np.nan
    X[40:80, 1] = np.nan
    table, blocks = TINY[kind](X * [1, 1e-150, 1])
    with pytest.raises(
        ValueError, match=r"column 1.* too close to compute a variance; choose another unit"
    ) as expected:
        SafeSPNClassifier(network="blocks").fit(table, partly)
    classifier = SafeSPNClassifier(network="blocks", scratch=tmp_path if scratch else None)
    with pytest.raises(ValueError, match="choose another unit") as found:
        classifier.fit(blocks, partly)
    assert str(found.value) == str(expected.value)
    assert not hasattr(classifier, "classes_")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.uint8, np.bool_])
def test_ranges_of_tables_of_any_type(dtype):
    lowest, highest = column_ranges(np.array([[1, 0], [1, 1]], dtype=dtype))
    assert (lowest.tolist(), highest.tolist()) == ([1.0, 0.0], [1.0, 1.0])
    assert lowest.dtype == highest.dtype == np.float64
    lowest, highest = column_ranges(np.zeros((0, 2), dtype=dtype))
    assert (lowest.tolist(), highest.tolist()) == ([np.inf] * 2, [-np.inf] * 2)


def test_the_range_of_a_column_is_that_of_all_blocks_and_of_rows_that_count():
    X, _, partly = blobs(120)
    X[:, 1] = np.repeat([1e-150, 0.5, 1.0], 40) * X[:, 0]
    options = {"network": "blocks", "random_state": 0, "max_iter": 3}
    blocks = da.from_array(X, chunks=(40, 3))
    assert_same(SafeSPNClassifier(**options).fit(blocks, partly), SafeSPNClassifier(**options).fit(X, partly), X)
    with pytest.raises(ValueError, match=r"column 1: its values lie within .*e-150 of each other"):
        SafeSPNClassifier(**options).fit(blocks, partly, sample_weight=(np.arange(120) < 40).astype(float))


def test_two_tiny_numbers_are_categories():
    X, _, partly = blobs(120)
    frame = pd.DataFrame(X, columns=list("abc")).assign(b=np.where(X[:, 1] > 0, 1e-150, 2e-150))
    options = {"network": "blocks", "random_state": 0, "max_iter": 3}
    lazily = SafeSPNClassifier(**options).fit(dd.from_pandas(frame, npartitions=3), partly)
    assert_same(lazily, SafeSPNClassifier(**options).fit(frame, partly), frame)


@pytest.mark.parametrize("persist", ["rows", "labels", "nothing"])
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_of_a_file_are_read_again_where_they_are_used(persist, weighted, tmp_path):
    X, _, partly = blobs(200)
    weights = np.where(np.arange(200) % 5 == 0, 0.0, 1.5) if weighted else None
    frame = pd.DataFrame(X, columns=list("abc")).assign(y=partly, weight=1.0 if weights is None else weights)
    for number, start in enumerate(range(0, 200, 70)):
        frame[start : start + 70].to_parquet(tmp_path / f"{number}.parquet")
    options = {"random_state": 0, "max_iter": 5}
    in_memory = SafeSPNClassifier(**{"network": "blocks", **options}).fit(
        frame[list("abc")], partly, sample_weight=weights
    )
    table = dd.read_parquet(tmp_path)
    lazily = SafeSPNClassifier(persist=persist, network="blocks", **options).fit(
        table[list("abc")], table["y"], sample_weight=table["weight"] if weighted else None
    )
    assert_same(lazily, in_memory, frame[list("abc")])


def test_only_blocks_with_nothing_in_common_are_read_by_the_tasks_that_use_them():
    from safespn.rows.lazy_block import graphs_apart

    def tenth(number):
        return np.arange(10.0) + 10 * number

    apart = [[dask.delayed(tenth)(number)] for number in range(3)]
    graphs = graphs_apart(apart)
    assert [set(graph) for graph in graphs] == [{promise.key} for (promise,) in apart]
    source = dask.delayed(tenth)(0)
    assert graphs_apart([[source[:5]], [source[5:]]]) is None


@pytest.mark.parametrize("persist", ["rows", "labels", "nothing"])
def test_what_workers_hold_does_not_matter(persist):
    X, _, partly = blobs(200)
    options = {"random_state": 0, "max_iter": 5}
    in_memory = SafeSPNClassifier(**{"network": "blocks", **options}).fit(X, partly)
    lazily = SafeSPNClassifier(persist=persist, network="blocks", **options).fit(
        da.from_array(X, chunks=(60, 3)), partly
    )
    assert_same(lazily, in_memory, X)


def test_weights_and_labels_in_memory_or_in_dask():
    X, _, partly = blobs(300)
    weights = np.random.default_rng(0).integers(0, 3, 300).astype(float)
    weights[:20] = 1.0
    in_memory = SafeSPNClassifier(network="blocks", random_state=0, max_iter=20).fit(X, partly, sample_weight=weights)
    blocks = da.from_array(X, chunks=(90, 3))
    for y, w in ((partly, weights), (da.from_array(partly, chunks=40), da.from_array(weights, chunks=300))):
        assert_same(
            SafeSPNClassifier(network="blocks", random_state=0, max_iter=20).fit(blocks, y, sample_weight=w),
            in_memory,
            X,
        )


def test_a_class_that_occurs_in_one_block_only():
    X, y, partly = blobs(300)
    partly = np.where(np.arange(300) < 250, np.where(partly == 1, -1, partly), y)
    in_memory = SafeSPNClassifier(network="blocks", random_state=0, max_iter=10).fit(X, partly)
    lazily = SafeSPNClassifier(network="blocks", random_state=0, max_iter=10).fit(
        da.from_array(X, chunks=(50, 3)), da.from_array(partly, chunks=50)
    )
    assert_same(lazily, in_memory, X)


def mixed_frame(n_rows=240):
    """Numbers, strings, booleans and pandas categories; some cells missing; each partition has its own categories."""
    X, y, partly = blobs(n_rows, n_columns=2)
    rng = np.random.default_rng(0)
    third = np.arange(n_rows) * 3 // n_rows
    frame = pd.DataFrame(X, columns=["a", "b"])
    frame["site"] = np.array(["north", "south", "west", "east"])[third + (y & (third < 3))]
    frame.loc[rng.random(n_rows) < 0.1, "site"] = None
    frame["smoker"] = rng.random(n_rows) < 0.3
    frame["grade"] = pd.Categorical(np.array(["x", "y", "z"])[third])
    frame.loc[rng.random(n_rows) < 0.1, "b"] = np.nan
    return frame, np.array(["no", "yes"], dtype=object)[y], partly


def test_data_frames_whose_partitions_have_different_categories():
    frame, names, partly = mixed_frame()
    labels = pd.Series(np.where(partly >= 0, names, "?"))
    options = {"random_state": 0, "max_iter": 20, "unlabeled": "?"}
    in_memory = SafeSPNClassifier(**{"network": "blocks", **options}).fit(frame, labels)
    lazily = SafeSPNClassifier(**{"network": "blocks", **options}).fit(
        dd.from_pandas(frame, npartitions=3), dd.from_pandas(labels, npartitions=3)
    )
    assert_same(lazily, in_memory, frame)
    assert list(lazily.feature_names_in_) == list(frame.columns)
    assert lazily.classes_.tolist() == ["no", "yes"]
    assert sorted(lazily._encoder.categories[2]) == ["east", "north", "south", "west"]
    predicted = lazily.predict(dd.from_pandas(frame, npartitions=2))
    np.testing.assert_array_equal(predicted.compute(), in_memory.predict(frame))


def test_predictions_are_lazy():
    X, y, partly = blobs(100)
    fitted = SafeSPNClassifier(network="blocks", random_state=0, max_iter=5).fit(X, partly)
    blocks = da.from_array(X, chunks=(30, 3))
    for method in ("predict", "predict_proba", "predict_log_proba", "score_samples", "joint_log_likelihood"):
        promise = getattr(fitted, method)(blocks)
        assert isinstance(promise, da.Array)
        expected = getattr(fitted, method)(X)
        assert promise.shape == expected.shape
        assert promise.dtype == expected.dtype
        np.testing.assert_allclose(promise.compute(), expected, rtol=1e-12)
    assert fitted.score(blocks, y) == fitted.score(X, y)


def test_unknown_chunk_sizes():
    X, _, partly = blobs(200)
    both = da.from_array(np.column_stack([X, partly]), chunks=(70, 4))
    both = both[both[:, 0] > -10]
    assert np.isnan(both.chunks[0]).all()
    in_memory = SafeSPNClassifier(network="blocks", random_state=0, max_iter=10).fit(X, partly)
    lazily = SafeSPNClassifier(network="blocks", random_state=0, max_iter=10).fit(both[:, :3], both[:, 3])
    assert_same(lazily, in_memory, X)
    assert lazily.predict(both[:, :3]).compute().shape == (200,)


def test_empty_blocks_and_blocks_without_any_observed_cell():
    X, _, partly = blobs(200)
    X[50:100] = np.nan
    partly[50:100] = -1
    in_memory = SafeSPNClassifier(network="blocks", random_state=0, max_iter=10).fit(X, partly)
    lazily = SafeSPNClassifier(network="blocks", random_state=0, max_iter=10).fit(
        da.from_array(X, chunks=((50, 50, 100), 3)), da.from_array(partly, chunks=50)
    )
    assert_same(lazily, in_memory, X)
    empty = da.concatenate(
        [da.from_array(X[:100], chunks=(50, 3)), da.zeros((0, 3)), da.from_array(X[100:], chunks=(100, 3))]
    )
    assert_same(SafeSPNClassifier(network="blocks", random_state=0, max_iter=10).fit(empty, partly), in_memory, X)


def with_block(column, value):
    """A frame of three blocks, the last of which has other values in a column."""
    X, _, partly = blobs(90, n_columns=2)
    frames = [pd.DataFrame(X[start : start + 30], columns=["a", "b"]) for start in (0, 30, 60)]
    frames[2] = frames[2].assign(**{column: value})
    return dd.from_map(lambda number: frames[number], range(3), meta=frames[0].iloc[:0]), partly


def ten_by_two():
    return da.ones((20, 2), chunks=(10, 2))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda: with_block("b", np.inf), r"block 2, row 0, column 1 \('b'\): inf is not valid"),
        (lambda: with_block("b", "high"), r"column 'b' holds numbers in block 0 and categories in block 2"),
        (
            lambda: with_block("b", pd.Timestamp("2020-01-01")),
            r"column 'b' holds numbers in block 0 and dates in block 2",
        ),
        (lambda: (ten_by_two() + 1j, np.arange(20) % 2), r"block \d: Complex data not supported"),
        (lambda: with_block("b", 1j), r"block 2: column 'b' holds complex numbers"),
        (lambda: (ten_by_two(), np.full(20, -1)), r"y has no labelled row"),
        (lambda: (ten_by_two(), np.zeros(19)), r"X has 20 rows but y has 19 entries"),
        (
            lambda: (ten_by_two(), da.zeros(20, chunks=5)[da.ones(20, chunks=5) > 0]),
            r"2 blocks but y has 4",
        ),
        (lambda: (da.ones(20, chunks=10), np.zeros(20)), r"Dask array of 1 dimensions"),
        (lambda: (da.ones((0, 2), chunks=(10, 2)), np.zeros(0)), r"X has no rows"),
        (lambda: (ten_by_two(), None), r"requires y"),
    ],
)
def test_mistakes_are_named_with_their_block(change, message):
    X, y = change()
    classifier = SafeSPNClassifier(network="blocks")
    with pytest.raises(ValueError, match=message):
        classifier.fit(X, y)
    assert not hasattr(classifier, "classes_")


def test_types_are_decided_on_all_blocks():
    """Each block has two values of `level` and identifiers in order; all blocks together have more."""
    X, _, partly = blobs(90, n_columns=2)
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(
        level=np.repeat([0.0, 1.0, 2.0], 30) + np.arange(90) % 2, two=np.repeat([3, 5, 3], 30), patient_id=np.arange(90)
    )
    options = {"network": "blocks", "random_state": 0, "max_iter": 3}
    with pytest.warns(IgnoredColumnWarning):
        in_memory = SafeSPNClassifier(**options).fit(frame, partly)
    with pytest.warns(IgnoredColumnWarning):
        lazily = SafeSPNClassifier(**options).fit(dd.from_pandas(frame, npartitions=3), partly)
    assert in_memory.column_types_ == ["continuous", "continuous", "continuous", "categorical", "ignored"]
    assert lazily.column_types_ == in_memory.column_types_
    assert_same(lazily, in_memory, frame)


def test_lengths_that_differ_within_a_block_are_named():
    X, _, partly = blobs(100)
    blocks, labels = da.from_array(X, chunks=(50, 3)), da.from_array(partly, chunks=50)
    blocks = blocks[da.from_array(np.arange(100) != 70, chunks=50)]
    with pytest.raises(ValueError, match="block 1 has 49 rows but 50 labels"):
        SafeSPNClassifier(network="blocks").fit(blocks, labels)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"objective": "discriminative"}, "needs all rows in memory")],
)
def test_what_needs_all_rows_at_once_is_refused(options, message):
    X, _, partly = blobs(50)
    with pytest.raises(ValueError, match=message):
        SafeSPNClassifier(**{"network": "blocks", **options}).fit(da.from_array(X, chunks=(20, 3)), partly)


def test_mini_batches_of_partitions_are_repeatable_and_certified():
    X, _, partly = blobs(1000)
    blocks = da.from_array(X, chunks=(100, 3))
    first, second = (
        SafeSPNClassifier(network="blocks", random_state=0, batch_size=200, max_iter=10).fit(blocks, partly)
        for _ in range(2)
    )
    assert first.safety_.certified
    np.testing.assert_array_equal(first.joint_log_likelihood(X), second.joint_log_likelihood(X))


def test_saving_leaves_soft_labels_where_they_are(tmp_path):
    X, _, partly = blobs(100)
    fitted = SafeSPNClassifier(network="blocks", random_state=0, max_iter=5).fit(
        da.from_array(X, chunks=(30, 3)), partly
    )
    fitted.save(tmp_path / "model")
    loaded = SafeSPNClassifier.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(X), fitted.predict(X))
    assert loaded.soft_labels_.shape == (0, 2)


def test_many_labelled_rows_stay_in_their_partitions(monkeypatch):
    from safespn.rows import dask_rows

    X, _, partly = blobs(300, share=0.5)
    in_memory = SafeSPNClassifier(network="blocks", random_state=0, max_iter=5).fit(X, partly)
    monkeypatch.setattr(dask_rows, "LABELLED_IN_MEMORY", 10)
    lazily = SafeSPNClassifier(network="blocks", random_state=0, max_iter=5).fit(
        da.from_array(X, chunks=(70, 3)), partly
    )
    assert_same(lazily, in_memory, X)


def test_a_column_of_a_file_whose_partitions_dask_would_join(tmp_path):
    X, _, partly = blobs(400)
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=partly)
    frame.to_parquet(tmp_path / "table.parquet", row_group_size=20)
    table = dd.read_parquet(tmp_path / "table.parquet", split_row_groups=1)
    assert len(table["y"].to_delayed()) < table.npartitions == 20
    lazily = SafeSPNClassifier(network="blocks", random_state=0, max_iter=5).fit(table[["a", "b", "c"]], table["y"])
    in_memory = SafeSPNClassifier(network="blocks", random_state=0, max_iter=5).fit(frame[["a", "b", "c"]], partly)
    assert_same(lazily, in_memory, frame[["a", "b", "c"]])
    assert lazily.predict(table[["a", "b", "c"]]).compute().shape == (400,)
