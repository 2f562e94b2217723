"""Files of counts: each format gives the same store, and what is wrong is told with its line."""

import gzip

import numpy as np
import pytest
from scipy import io, sparse

import ibpdist as ibp
from ibpdist.base.errors import InputError, UsageError
from ibpdist.data.count_sources import text


def counts(rows=30, columns=9, seed=0):
    x = np.random.default_rng(seed).poisson(0.7, (rows, columns))
    x[4], x[-1] = 0, 0
    return x


def docword(x):
    rows, columns = np.nonzero(x)
    lines = [f"{n + 1} {v + 1} {x[n, v]}" for n, v in zip(rows, columns, strict=True)]
    return "\n".join([*map(str, (*x.shape, len(lines))), *lines]) + "\n"


def lda_c(x):
    return "".join(
        " ".join([str((row > 0).sum()), *(f"{v}:{row[v]}" for v in np.flatnonzero(row))]) + "\n" for row in x
    )


def written(folder, x, kind):
    """A file of the counts."""
    if kind == "docword":
        (folder / "docword.txt").write_text(docword(x))
        return folder / "docword.txt"
    if kind == "docword.gz":
        (folder / "docword.txt.gz").write_bytes(gzip.compress(docword(x).encode()))
        return folder / "docword.txt.gz"
    if kind == "lda-c":
        (folder / "news.ldac").write_text(lda_c(x))
        return folder / "news.ldac"
    if kind == "npz":
        sparse.save_npz(folder / "x.npz", sparse.csr_matrix(x))
        return folder / "x.npz"
    held = sparse.coo_matrix(x if kind == "mtx" else x.T.copy())
    order = np.lexsort((held.col, held.row) if kind == "mtx" else (held.row, held.col))
    turned = sparse.coo_matrix((held.data[order], (held.row[order], held.col[order])), held.shape)
    io.mmwrite(folder / "x.mtx", turned, field="integer", symmetry="general")
    return folder / "x.mtx"


KINDS = ("docword", "docword.gz", "lda-c", "npz", "mtx", "mtx turned")


def values(path):
    data = ibp.open_dataset(path)
    return np.concatenate([data.read(index).x for index in range(data.chunks)])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("block", [40, 4 << 20])
def test_every_format_gives_the_same_store(tmp_path, monkeypatch, kind, block):
    monkeypatch.setattr(text, "BLOCK", block)
    x = counts()
    (tmp_path / "vocab.txt").write_text("".join(f"w{v}\n" for v in range(9)))
    turned = {"rows_in": "columns"} if kind == "mtx turned" else {}
    report = ibp.ingest(
        written(tmp_path, x, kind), tmp_path / "x.zarr", vocabulary=tmp_path / "vocab.txt", **turned
    )
    assert (report.rows, report.columns, report.missing) == (30, 9, 0)
    np.testing.assert_array_equal(values(tmp_path / "x.zarr"), x)
    data = ibp.open_dataset(tmp_path / "x.zarr")
    assert data.column_coords()["column"].tolist() == [f"w{v}" for v in range(9)]
    assert ibp.verify(tmp_path / "x.zarr") == []


def test_entries_of_one_cell_are_added_and_told(tmp_path):
    (tmp_path / "docword.txt").write_text("2\n3\n4\n1 3 2\n1 1 1\n1 3 5\n2 2 0\n")
    report = ibp.ingest(tmp_path / "docword.txt", tmp_path / "x.zarr")
    np.testing.assert_array_equal(values(tmp_path / "x.zarr"), [[1, 0, 7], [0, 0, 0]])
    assert any("1 entry of a cell that had one before" in note for note in report.warnings)


BAD = {
    "3\n2\n1\n1 1 -2\n": "line 4: is negative",
    "3\n2\n1\n1 1 1.5\n": "line 4: is no whole number: counts are whole",
    "3\n2\n1\n1 1 two\n": "line 4: is no whole number",
    "3\n2\n1\n1 3 1\n": "line 4: there is no such word: words are counted from 1 to 2",
    "3\n2\n1\n0 1 1\n": "line 4: there is no such document: documents are counted from 1 to 3",
    "3\n2\n2\n2 1 1\n1 1 1\n": "line 5: document 1 comes after a later one",
    "3\n2\n5\n1 1 1\n": "has 1 entries, its third line promises 5",
    "3\n2\n2\n1 1 1\n2 1\n": "line 5: holds 2 numbers, expected 3",
}


@pytest.mark.parametrize("content", BAD)
def test_what_is_wrong_in_docword_is_told_with_its_line(tmp_path, content):
    (tmp_path / "docword.txt").write_text(content)
    with pytest.raises(InputError) as error:
        ibp.ingest(tmp_path / "docword.txt", tmp_path / "x.zarr")
    assert BAD[content] in str(error.value)
    assert not (tmp_path / "x.zarr").exists()


def test_a_vocabulary_of_another_length_is_refused(tmp_path):
    (tmp_path / "vocab.txt").write_text("one\ntwo\n")
    with pytest.raises(InputError, match="has 9 words, the vocabulary 2"):
        ibp.ingest(
            written(tmp_path, counts(), "docword"), tmp_path / "x.zarr", vocabulary=tmp_path / "vocab.txt"
        )


@pytest.mark.parametrize("name", ["center", "scale", "log1p"])
def test_counts_stay_counts(tmp_path, name):
    with pytest.raises(UsageError, match=f"{name}: counts stay counts"):
        ibp.ingest(written(tmp_path, counts(), "npz"), tmp_path / "x.zarr", **{name: True})


@pytest.mark.parametrize(
    ("first", "words"),
    [
        ("%%MatrixMarket matrix coordinate integer symmetric", "is symmetric"),
        ("%%MatrixMarket matrix coordinate complex general", "complex numbers, which are no counts"),
        ("%%MatrixMarket matrix array integer general", "is array: expected coordinate"),
    ],
)
def test_other_matrices_are_refused(tmp_path, first, words):
    (tmp_path / "x.mtx").write_text(f"{first}\n2 2 1\n1 1 1\n")
    with pytest.raises(InputError, match=words):
        ibp.ingest(tmp_path / "x.mtx", tmp_path / "x.zarr")


def test_a_pattern_is_ones(tmp_path):
    (tmp_path / "x.mtx").write_text("%%MatrixMarket matrix coordinate pattern general\n2 2 2\n1 2\n2 1\n")
    ibp.ingest(tmp_path / "x.mtx", tmp_path / "x.zarr")
    np.testing.assert_array_equal(values(tmp_path / "x.zarr"), [[0, 1], [1, 0]])


def test_other_compressed_formats_are_named(tmp_path):
    sparse.save_npz(tmp_path / "x.npz", sparse.csc_matrix(counts()))
    with pytest.raises(UsageError, match="is in the format csc: save it as csr"):
        ibp.ingest(tmp_path / "x.npz", tmp_path / "x.zarr")


def test_fits_of_both_kinds_of_stores_are_the_same(tmp_path):
    x = counts(60)
    np.save(tmp_path / "x.npy", x.astype(np.float32))
    ibp.ingest(tmp_path / "x.npy", tmp_path / "dense.zarr")
    ibp.ingest(written(tmp_path, x, "npz"), tmp_path / "sparse.zarr")
    found = [
        ibp.fit(tmp_path / name, system="counts-finite", K=3, seed=1, steps=15)
        for name in ("dense.zarr", "sparse.zarr")
    ]
    np.testing.assert_array_equal(found[0]["params"]["mean"], found[1]["params"]["mean"])
    np.testing.assert_array_equal(found[0]["trace"]["objective"], found[1]["trace"]["objective"])


def test_sparse_matrices_in_memory_stay_sparse(tmp_path):
    x = counts(60)
    dense = ibp.fit(x.astype(np.float32), system="counts-finite", K=3, seed=1, steps=15)
    held = sparse.csr_matrix(x)
    for run in (None, tmp_path / "run"):
        found = ibp.fit(held, system="counts-finite", K=3, seed=1, steps=15, run=run)
        np.testing.assert_array_equal(found["params"]["mean"], dense["params"]["mean"])
    assert ibp.open_dataset(tmp_path / "run" / "data.zarr").attributes["layout"] == "counts"
    scores = [ibp.evaluate(dense, data).score for data in (held, x)]
    np.testing.assert_array_equal(*scores)
    new = [ibp.transform(dense, data).z for data in (held, x)]
    np.testing.assert_allclose(*new, rtol=1e-5)
    held.data = held.data.astype(float)
    held.data[3] = 0.5
    with pytest.raises(InputError, match="is no count"):
        ibp.fit(held, system="counts-finite", K=3)


def h5ad(path, x, kind="csr_matrix", layer=False):
    """A file as AnnData writes it."""
    h5py = pytest.importorskip("h5py")
    held = sparse.csr_matrix(x) if kind == "csr_matrix" else sparse.csc_matrix(x)
    with h5py.File(path, "w") as file:
        names = ["layers/raw"] if layer else ["X"]
        for name in names:
            group = file.create_group(name)
            group.attrs["encoding-type"], group.attrs["shape"] = kind, x.shape
            for part in ("data", "indices", "indptr"):
                group[part] = getattr(held, part)
        if layer:
            file["X"] = x
        for frame, size in (("obs", x.shape[0]), ("var", x.shape[1])):
            group = file.create_group(frame)
            group.attrs["_index"] = "_index"
            group["_index"] = [f"{frame}{at}" for at in range(size)]
        file["obs"]["depth"], file["obs"]["batch"] = np.arange(len(x)), [f"b{at % 3}" for at in range(len(x))]
        kinds = file["obs"].create_group("kind")
        kinds.attrs["encoding-type"] = "categorical"
        kinds["categories"], kinds["codes"] = ["T cell", "B cell"], np.arange(len(x)) % 3 - 1
    return path


def test_anndata_comes_with_its_names(tmp_path):
    x = counts()
    ibp.ingest(h5ad(tmp_path / "x.h5ad", x), tmp_path / "x.zarr")
    np.testing.assert_array_equal(values(tmp_path / "x.zarr"), x)
    data = ibp.open_dataset(tmp_path / "x.zarr")
    assert data.column_coords()["column"][2] == "var2"
    assert data.row_coords(0)["row"][29] == "obs29"


def test_columns_of_obs_are_covariates(tmp_path):
    x = counts()
    ibp.ingest(h5ad(tmp_path / "x.h5ad", x), tmp_path / "x.zarr", covariates=["depth", "batch", "kind"])
    found = ibp.open_dataset(tmp_path / "x.zarr").row_coords(0)
    assert found["depth"][:3].tolist() == [0, 1, 2]
    assert found["batch"][:4].tolist() == ["b0", "b1", "b2", "b0"]
    assert found["kind"][:3].tolist() == ["", "T cell", "B cell"]
    with pytest.raises(UsageError, match="obs has no column age: choose one of batch, depth, kind"):
        ibp.ingest(tmp_path / "x.h5ad", tmp_path / "y.zarr", covariates=["age"])
    with pytest.raises(UsageError, match="has no use for vocabulary"):
        ibp.ingest(tmp_path / "x.h5ad", tmp_path / "y.zarr", vocabulary="words.txt")


def test_sparse_matrices_and_stores_of_counts_are_ingested_as_they_are(tmp_path):
    x = counts()
    ibp.ingest(sparse.csc_array(x), tmp_path / "x.zarr")
    first = ibp.open_dataset(tmp_path / "x.zarr")
    assert first.manifest.of_counts
    ibp.ingest(tmp_path / "x.zarr", tmp_path / "y.zarr")
    assert ibp.open_dataset(tmp_path / "y.zarr").fingerprint == first.fingerprint
    ibp.ingest(sparse.csc_array(x), tmp_path / "turned.zarr", rows_in="columns")
    np.testing.assert_array_equal(values(tmp_path / "turned.zarr"), x.T)
    with pytest.raises(UsageError, match="columns of counts cannot be taken as rows"):
        ibp.ingest(tmp_path / "x.zarr", tmp_path / "z.zarr", rows_in="columns")


@pytest.mark.parametrize("wrong", [[0, 2, 1], [1, 2, 3], [0, 1, 2], [0, 2, 9], [0, 3]])
def test_starts_that_do_not_fit_are_found(tmp_path, wrong):
    parts = {"indices": [0, 1, 0], "data": [1, 1, 1], "indptr": wrong, "shape": [2, 2], "format": b"csr"}
    np.savez(tmp_path / "x.npz", **{name: np.array(part) for name, part in parts.items()})
    with pytest.raises(InputError, match="is damaged: its starts do not fit its entries"):
        ibp.ingest(tmp_path / "x.npz", tmp_path / "x.zarr")
    assert not (tmp_path / "x.zarr").exists()


def test_other_matrices_of_anndata_are_named(tmp_path):
    x = counts()
    with pytest.raises(UsageError, match="X is csc_matrix: save it as csr"):
        ibp.ingest(h5ad(tmp_path / "x.h5ad", x, "csc_matrix"), tmp_path / "x.zarr")
    h5ad(tmp_path / "y.h5ad", x, layer=True)
    with pytest.raises(UsageError, match=r"X is dense: .* or name a layer with key=layers/raw"):
        ibp.ingest(tmp_path / "y.h5ad", tmp_path / "y.zarr")
    ibp.ingest(tmp_path / "y.h5ad", tmp_path / "y.zarr", key="layers/raw")
    np.testing.assert_array_equal(values(tmp_path / "y.zarr"), x)
    with pytest.raises(UsageError, match="has no layers/norm: choose one of X, layers/raw"):
        ibp.ingest(tmp_path / "y.h5ad", tmp_path / "z.zarr", key="layers/norm")
