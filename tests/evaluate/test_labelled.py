"""Names of rows and columns in words, through a run on disk and everything that reads one."""

import csv
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ibpdist as ibp
from ibpdist.base.errors import InputError
from ibpdist.campaigns.verify import verify
from tests.support.command import invoke

COLUMNS = [f"gene {j}" for j in range(6)]


def table(rows, first=0):
    x = ibp.synthetic("linear-gaussian", rows=120, columns=6, features=3, seed=4, mass=2.0).x.values
    names = [f"cell {i}" for i in range(first, first + rows)]
    return pd.DataFrame(x[first : first + rows], index=names, columns=COLUMNS)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Runs `vi` and `gibbs` of a labelled table; `train.csv` and `test.csv`."""
    folder = tmp_path_factory.mktemp("labelled")
    table(100).to_csv(folder / "train.csv", index_label="cell")
    table(20, 100).to_csv(folder / "test.csv", index_label="cell")
    ibp.fit(table(100), system="lg-vi-infinite", K=4, steps=8, run=folder / "vi")
    ibp.fit(table(100), system="lg-gibbs-finite", K=4, steps=8, run=folder / "gibbs")
    return folder


@pytest.mark.parametrize("system", ["vi", "gibbs"])
def test_new_rows_are_scored_and_described(made, system):
    in_memory = ibp.open_result(made / system).load()
    for run in (made / system, str(made / system), in_memory):
        scored = ibp.evaluate(run, table(20, 100))
        assert np.isfinite(scored.score).all()
        found = ibp.transform(run, table(20, 100))
        assert found["row"].values.tolist() == table(20, 100).index.tolist()
        with pytest.raises(InputError, match="column 0: is gene 5 where the fit has gene 0"):
            ibp.transform(run, table(20, 100)[COLUMNS[::-1]])


def test_what_a_run_holds_goes_by_name(made):
    result = ibp.open_result(made / "vi")
    assert result["params"]["mean"].sel(column="gene 3").shape == (result["params"].sizes["feature"],)
    assert result["rows"]["z"].sel(row=["cell 7", "cell 3"]).sizes["row"] == 2
    assert verify(made / "vi") == verify(made / "gibbs") == []


def test_draws_of_a_sampler_keep_the_names(made):
    assert list(ibp.posterior.features(made / "gibbs")["column"].values) == COLUMNS
    assert list(ibp.posterior.rows(made / "gibbs")["row"].values) == table(100).index.tolist()
    together = ibp.posterior.cooccurrence(made / "gibbs", rows=[2, 5])
    assert together["row"].values.tolist() == ["cell 2", "cell 5"]
    assert float(ibp.posterior.number(made / "gibbs").sum()) == pytest.approx(1)


def test_from_a_table_to_its_features_on_the_command_line(made, tmp_path):
    def works(*args):
        done = invoke(*args)
        assert done.exit_code == 0, done.output
        return done.stdout

    for name in ("train", "test"):
        works("ingest", made / f"{name}.csv", tmp_path / f"{name}.zarr")
    run, new = tmp_path / "run", tmp_path / "test.zarr"
    works("fit", tmp_path / "train.zarr", run, "--system", "lg-vi-infinite", "-K", 4, "--serial", "-q")
    assert works("evaluate", run, new).startswith("held-out score: ")
    works("transform", run, new, tmp_path / "z.zarr")
    found = ibp.transform(run, new)
    assert found["row"].values.tolist() == table(20, 100).index.tolist()
    assert works("show", run)
    assert "no problems" in works("verify", run)
    works("export", run, tmp_path / "csv")
    lines = list(csv.reader((tmp_path / "csv/params/mean.csv").open()))
    assert lines[0] == ["feature", *(f"column {name}" for name in COLUMNS)]
    assert [line[0] for line in csv.reader((tmp_path / "csv/rows/z.csv").open())][1] == "cell 0"


def test_a_store_that_does_not_fit_is_named(made, tmp_path):
    def refused(frame):
        store = tmp_path / "new.zarr"
        ibp.ingest(frame, store, overwrite=True)
        sentences = []
        for act in (ibp.evaluate, ibp.transform):
            for data in (store, str(store), ibp.open_dataset(store)):
                with pytest.raises(InputError) as caught:
                    act(made / "vi", data)
                sentences.append(str(caught.value))
        (sentence,) = set(sentences)
        return sentence.removeprefix(f"{Path(store)}: ")

    frame = table(20, 100)
    assert refused(frame[COLUMNS[::-1]]).startswith("column 0: is gene 5 where the fit has gene 0: give")
    assert refused(frame[COLUMNS[:5]]).startswith("the data have 5 columns, the fit has 6: give rows")


def test_other_data_than_those_of_the_fit_are_named(tmp_path):
    ibp.ingest(table(100), tmp_path / "train.zarr")
    ibp.ingest(table(20, 100), tmp_path / "other.zarr")
    run = tmp_path / "run"
    ibp.fit(tmp_path / "train.zarr", system="lg-vi-finite", K=3, steps=3, holdout=0.3, run=run)
    with pytest.raises(InputError, match=r"other\.zarr: these are not the data of the fit"):
        ibp.evaluate(run, tmp_path / "other.zarr", visible="fitted")
