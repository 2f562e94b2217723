"""No damage to a finished run, to chains or to a campaign changes what is read of it without an error.

Every reader says what is wrong with a StorageError that names a file, or in a campaign with a warning that
leaves out a fit, and with nothing else; or what it returns is what it returned before, because the damaged
file is not one that it reads.
"""

import hashlib
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest

import ibpdist as ibp
from ibpdist.base.errors import StorageError
from ibpdist.report.summary import summary
from ibpdist.runs.result import load

KINDS = ("run", "chains", "campaign")
FEW, MANY = 30, 1000


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A store, a fit with restarts and a score, chains, and a campaign."""
    made = tmp_path_factory.mktemp("sound")
    store = made / "store.zarr"
    ibp.synthesise("linear-gaussian", store, rows=48, columns=6, features=3, noise=0.2, seed=1, chunk_rows=16)
    ibp.fit(
        store, system="lg-vi-infinite", K=4, run=made / "run", restarts=2, steps=12, holdout=0.2, serial=True
    )
    ibp.evaluate(made / "run", serial=True)
    ibp.fit(store, system="lg-gibbs-infinite", K=3, run=made / "chains", chains=2, steps=12, serial=True)
    grid = {"data": str(store), "system": "lg-vi-finite", "truncation": [2, 3], "restarts": 2, "steps": 8}
    ibp.sweep({**grid, "holdout": 0.2}, made / "campaign", serial=True)
    return made


def told(result):
    """Everything that a result says, as one hash."""
    whole, digest = load(result), hashlib.sha256()
    for node in sorted(whole.subtree, key=lambda node: node.path):
        digest.update(repr((node.path, sorted(node.attrs.items(), key=str))).encode())
        for name, held in sorted(node.variables.items(), key=str):
            values = np.asarray(held.values)
            digest.update(repr((name, held.dims, values.dtype.str, values.tolist())).encode())
    return digest.hexdigest()


def of_a_run(path):
    new = np.linspace(-1, 1, 12).reshape(2, 6)
    yield "open_result", lambda: told(ibp.open_result(path))
    yield "show", lambda: summary(ibp.open_result(path))
    yield "transform", lambda: ibp.transform(path, new).z.values.tolist()
    yield "resume", lambda: told(ibp.resume(path, serial=True))


def of_a_campaign(path):
    yield "open_campaign", lambda: str(ibp.open_campaign(path).summary.drop_attrs().to_dict())
    yield "best", lambda: told(ibp.open_campaign(path).best())


READERS = {"run": of_a_run, "chains": of_a_run, "campaign": of_a_campaign}


def damage(files, rng):
    """Change one or two files in one of six ways; words for it."""
    file, other = (files[int(at)] for at in rng.integers(len(files), size=2))
    raw = bytearray(file.read_bytes())
    way = str(rng.choice(["flip", "truncate", "delete", "swap", "duplicate", "append"]))
    if way == "flip" and raw:
        raw[rng.integers(len(raw))] ^= 1 << int(rng.integers(8))
        file.write_bytes(raw)
    elif way == "truncate":
        file.write_bytes(raw[: rng.integers(max(len(raw), 1))])
    elif way == "delete":
        file.unlink()
    elif way == "swap":
        file.write_bytes(other.read_bytes())
        other.write_bytes(raw)
    elif way == "duplicate":
        other.write_bytes(raw)
    else:
        file.write_bytes(raw + rng.bytes(int(rng.integers(1, 40))))
    return f"{way} {file} {other if way in ('swap', 'duplicate') else ''}"


def outcome(read):
    """What a reader returns; None where it says that something is damaged."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            found = read()
        except StorageError as error:
            told_of_a_file = "/" in str(error)
            return None if told_of_a_file else f"names no file: {error}"
    return None if any("leaving out a damaged fit" in str(one.message) for one in told) else found


def corrupted(folder, tmp_path, kind, count, seed):
    """Readers that return something else than before, or raise something else, with what was damaged."""
    rng, wrong = np.random.default_rng(seed), []
    sound = {name: outcome(read) for name, read in READERS[kind](folder / kind)}
    assert None not in sound.values()
    for at in range(count):
        copy = tmp_path / kind / str(at)
        shutil.copytree(folder / kind, copy)
        what = damage(sorted(path for path in copy.rglob("*") if path.is_file()), rng)
        for name, read in READERS[kind](copy):
            try:
                found = outcome(read)
            except Exception as error:  # noqa: BLE001  (whatever it is, it is told)
                wrong.append(f"{what}: {name} raised {type(error).__name__}: {error}")
                continue
            before = str(sound[name]).replace(str(folder / kind), str(copy))
            if found is not None and str(found) != before:
                wrong.append(f"{what}: {name} returned something else")
        shutil.rmtree(copy)
    return wrong


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_no_damage_goes_unnoticed(folder, tmp_path, kind):
    assert corrupted(folder, tmp_path, kind, FEW, seed=1) == []


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_none_of_a_thousand_damages_goes_unnoticed(folder, tmp_path, kind):
    assert corrupted(folder, tmp_path, kind, MANY // len(KINDS) + 1, seed=2) == []


@pytest.mark.slow
def test_the_check_sees_a_silent_change(folder, tmp_path):
    """The negative control: without the hashes of files, swapped chunks go unnoticed."""
    copy = tmp_path / "run"
    shutil.copytree(folder / "run", copy)
    (copy / "result.json").unlink()
    (copy / "run.json").unlink()
    one, two = (copy / f"result.zarr/rows/z/c.{n}.0" for n in "01")
    a, b = one.read_bytes(), two.read_bytes()
    one.write_bytes(b)
    two.write_bytes(a)
    assert told(ibp.open_result(copy)) != told(ibp.open_result(folder / "run"))
    assert Path(one).exists()
