"""A campaign on disk: the frozen manifest, who may write, what a kill leaves behind."""

import json

import pytest

import ibpdist as ibp
from ibpdist.campaign_spec import CampaignSpec
from ibpdist.errors import OutputInUse, StorageError
from ibpdist.runs import sealed
from ibpdist.runs.campaign import (
    CampaignDirectory,
    Manifest,
    failure,
    fit_folder,
    is_campaign,
    is_finished,
)
from ibpdist.runs.verify import verify
from tests.support.grids import grid, small_store, told


def spec_of(**keys):
    return CampaignSpec.make(**grid("d.zarr", **keys))


def begun(path, fingerprint="f", **keys):
    directory = CampaignDirectory(path)
    manifest = directory.begin(spec_of(**keys), fingerprint)
    directory.close()
    return manifest


def test_a_manifest_is_read_as_it_was_written(tmp_path):
    made = begun(tmp_path / "run", truncation=["auto", 4], set={"mass": [1, 2.5], "moves": False})
    assert Manifest.read(tmp_path / "run") == made
    assert [fit.id for fit in made.fits] == [fit.spec.id("f") for fit in made.fits]
    assert CampaignSpec.read(tmp_path / "run" / "campaign.yaml") == made.spec
    assert is_campaign(tmp_path / "run")


def test_other_data_have_other_ids():
    one, other = (Manifest.of(spec_of(), fingerprint) for fingerprint in "fg")
    assert not {fit.id for fit in one.fits} & {fit.id for fit in other.fits}


def test_a_manifest_changes_only_with_the_grid(tmp_path):
    path = tmp_path / "run" / "manifest.json"
    begun(tmp_path / "run")
    before = path.stat().st_mtime_ns
    begun(tmp_path / "run")
    assert path.stat().st_mtime_ns == before
    begun(tmp_path / "run", truncation=[3, 4, 5])
    assert path.stat().st_mtime_ns > before
    assert [(e["fits"], e["new"]) for e in told(tmp_path / "run", "manifest")] == [(4, 4), (6, 2)]


def test_other_data_are_refused(tmp_path):
    begun(tmp_path / "run")
    with pytest.raises(StorageError, match=r"d\.zarr: has changed since"):
        begun(tmp_path / "run", fingerprint="other")


def test_a_changed_manifest_is_refused(tmp_path):
    begun(tmp_path / "run")
    path = tmp_path / "run" / "manifest.json"
    path.write_text(path.read_text().replace('"truncation": 3', '"truncation": 5'))
    with pytest.raises(StorageError, match=r"manifest\.json: damaged"):
        Manifest.read(tmp_path / "run")


def test_a_newer_schema_and_no_campaign_are_refused(tmp_path):
    begun(tmp_path / "run")
    path = tmp_path / "run" / "manifest.json"
    sealed.write(path, json.loads(path.read_text())["body"] | {"schema": 2})
    with pytest.raises(StorageError, match="newer version"):
        Manifest.read(tmp_path / "run")
    with pytest.raises(StorageError, match="is not a campaign"):
        Manifest.read(tmp_path)


def test_one_writer_at_a_time(tmp_path):
    first = CampaignDirectory(tmp_path / "run")
    with pytest.raises(OutputInUse) as caught:
        CampaignDirectory(tmp_path / "run")
    assert caught.value.code == 6
    first.close()
    CampaignDirectory(tmp_path / "run").close()
    assert not (tmp_path / "run" / "lock").exists()


def test_what_a_kill_left_is_taken_over_and_removed(tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    (run / "lock").write_text("{}")
    (run / "campaign.yaml").write_text("half")
    (run / "summary.partial").mkdir()
    (run / "fits" / "x").mkdir(parents=True)
    (run / "fits" / "x" / "failed.json.123.partial").write_text("half")
    with pytest.raises(OutputInUse, match="not a campaign"):
        CampaignDirectory(run)
    (run / "fits" / "x" / "failed.json.123.partial").unlink()
    (run / "fits" / "x").rmdir()
    (run / "fits").rmdir()
    begun(run)
    (run / "fits" / "x").mkdir(parents=True)
    (run / "fits" / "x" / "failed.json.123.partial").write_text("half")
    begun(run)
    assert not list(run.rglob("*.partial"))


def test_a_failure_is_kept_until_it_is_forgotten(tmp_path):
    directory = CampaignDirectory(tmp_path / "run")
    fit = directory.begin(spec_of(), "f").fits[0]
    assert failure(tmp_path / "run", fit.id) is None
    directory.fail(fit, "it is too large", 2)
    assert failure(tmp_path / "run", fit.id) == {"reason": "it is too large", "code": 2}
    assert not is_finished(tmp_path / "run", fit.id)
    assert verify(tmp_path / "run") == []
    directory.forget_failure(fit)
    directory.forget_failure(fit)
    assert failure(tmp_path / "run", fit.id) is None
    directory.close()


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("swept")
    ibp.sweep(grid(small_store(folder), truncation=3), folder / "run")
    return folder / "run"


def test_a_finished_campaign_has_no_problems(swept):
    assert verify(swept) == []


@pytest.mark.parametrize("name", ["manifest.json", "events.jsonl"])
def test_damage_to_the_campaign_is_found(swept, name):
    path = swept / name
    whole = path.read_bytes()
    path.write_bytes(whole[:50] + b"#" + whole[51:])
    try:
        assert any(name in problem for problem in verify(swept))
    finally:
        path.write_bytes(whole)


@pytest.mark.parametrize("where", ["fits/*/result.zarr", "summary", "groups/*"])
def test_damage_to_a_file_below_is_found(swept, where):
    folder = next(iter(sorted(swept.glob(where))))
    files = [file for file in sorted(folder.rglob("*")) if file.is_file() and file.stat().st_size > 4]
    path = next(
        file for file in files if (file.suffix != ".yaml" and "/c" in str(file)) or "events" in file.name
    )
    whole = path.read_bytes()
    path.write_bytes(whole[:-3] + bytes([whole[-3] ^ 1]) + whole[-2:])
    try:
        assert verify(swept) != []
    finally:
        path.write_bytes(whole)
    assert verify(swept) == []


def test_litter_is_named(swept):
    (swept / "summary.partial").mkdir()
    try:
        assert verify(swept) == [
            f"{swept / 'summary.partial'}: was left by a process that was killed; sweep removes it"
        ]
    finally:
        (swept / "summary.partial").rmdir()


@pytest.mark.parametrize("where", ["groups", "fits"])
def test_what_was_begun_when_a_kill_came_is_named(swept, where):
    begun = swept / where / "begun"
    begun.mkdir()
    assert verify(swept) == [], "an empty folder is nothing"
    (begun / "spec.yaml").write_text("half")
    assert verify(swept) == [f"{begun}: was left by a process that was killed; sweep removes it"]
    directory = CampaignDirectory(swept)
    assert verify(swept) == [], "it may be at work"
    directory.close()
    (begun / "spec.yaml").unlink()
    begun.rmdir()


def test_a_fit_of_a_campaign_is_a_run(swept):
    manifest = Manifest.read(swept)
    for fit in manifest.fits:
        folder = fit_folder(swept, fit.id)
        assert verify(folder) == []
        assert ibp.open_result(folder).attrs["seed"] == str(fit.spec.seed)
        assert ibp.resume(folder).attrs["steps"] == 6
