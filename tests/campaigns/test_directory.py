"""A campaign on disk: the frozen manifest, who may write, what a kill leaves behind."""

import json
import shutil
from pathlib import Path

import pytest

import ibpdist as ibp
from ibpdist.base.errors import OutputInUse, StorageError
from ibpdist.campaigns.directory import (
    CampaignDirectory,
    Manifest,
    failure,
    fit_folder,
    is_campaign,
    is_finished,
    sealed_grid,
)
from ibpdist.campaigns.spec import CampaignSpec
from ibpdist.campaigns.verify import verify
from ibpdist.storage import sealed
from tests.support.grids import grid, small_store
from tests.support.logs import events_of_kind


def spec_of(**keys):
    return CampaignSpec.make(**grid("d.zarr", **keys))


def begun(path, fingerprint="f", **keys):
    directory = CampaignDirectory(path)
    try:
        return directory.begin(spec_of(**keys), fingerprint)
    finally:
        directory.close()


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
    assert [(e["fits"], e["new"]) for e in events_of_kind(tmp_path / "run", "manifest")] == [(4, 4), (6, 2)]


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


def problems(run, change):
    """What verification says of a campaign while something in it is changed."""
    kept = shutil.copytree(run, run.with_name("kept"))
    try:
        change()
        return verify(run)
    finally:
        shutil.rmtree(run)
        kept.rename(run)


def test_every_damage_to_the_summary_is_named(swept):
    store = swept / "summary"
    names = sorted(file for file in store.rglob("*") if file.is_file())
    assert len(names) > 20
    for file in names[::5]:
        raw = file.read_bytes()
        file.unlink()
        assert verify(swept) == [f"{file}: is missing; sweep writes it again"]
        file.write_bytes(raw[:-1] + bytes([raw[-1] ^ 1]))
        (problem,) = verify(swept)
        assert problem == f"{file}: damaged: it does not match its hash; sweep writes it again"
        file.write_bytes(raw)
    more = store / "more"
    assert problems(swept, lambda: more.write_text("x")) == [
        f"{more}: does not belong to the summary; sweep writes it again"
    ]
    gone = problems(swept, lambda: shutil.rmtree(store))
    assert gone == [f"{store}: is missing; sweep writes it again"]


def test_a_summary_without_its_hashes_cannot_be_checked(swept):
    seal = swept / "summary.json"
    for change in (seal.unlink, lambda: seal.write_text("half")):
        (problem,) = problems(swept, change)
        assert problem.startswith(f"{seal}: ")
        assert problem.endswith("; so the summary cannot be checked; sweep writes it again")


def test_a_summary_that_is_being_written_has_no_problems(swept):
    def written():
        shutil.rmtree(swept / "summary")
        (swept / "summary.partial").mkdir()

    (problem,) = problems(swept, written)
    assert problem.startswith(f"{swept / 'summary.partial'}: was left")

    def at_work():
        nonlocal held
        held = CampaignDirectory(swept)
        shutil.rmtree(swept / "summary")

    held = None
    assert problems(swept, at_work) == []
    held.close()


@pytest.mark.parametrize("text", ["", "#", "half: [", None])
def test_a_grid_that_is_not_the_one_that_is_sealed_is_named(swept, text):
    file = swept / "campaign.yaml"
    edited = file.read_text().replace("restarts: 2", "restarts: 3") if text is None else text
    assert edited != file.read_text()
    (problem,) = problems(swept, lambda: file.write_text(edited))
    assert (
        problem == f"{file}: is not the grid that manifest.json seals; remove it, and resume writes it again"
    )
    assert problems(swept, file.unlink) == [f"{file}: is missing; resume writes it again"]


def test_a_lost_manifest_is_named(swept):
    lost = swept / "manifest.json"
    said = f"{lost}: is missing; take it from a copy, or sweep the grid in another place"
    assert problems(swept, lost.unlink) == [said]

    def with_grid():
        lost.unlink()
        (swept / "campaign.yaml").unlink()

    assert problems(swept, with_grid) == [said]


def test_all_that_is_damaged_is_named(swept):
    """Not only the first of what is sealed."""

    def damage():
        for name in ("manifest.json", "events.jsonl", "summary.json"):
            (swept / name).write_text("#\n")
        (fit,) = [*(swept / "fits").iterdir()][:1]
        (fit / "failed.json").write_text("#")

    said = problems(swept, damage)
    assert [Path(one.split(": ")[0]).name for one in said] == [
        "manifest.json",
        "events.jsonl",
        "failed.json",
        "summary.json",
    ]


def test_a_grid_is_written_after_what_is_sealed(tmp_path, monkeypatch):
    """A kill between the two leaves no file that says something else."""

    def killed(path, parts):
        raise KeyboardInterrupt

    run = tmp_path / "run"
    old = begun(run)
    with monkeypatch.context() as patched:
        patched.setattr("ibpdist.campaigns.directory.records.replace_file", killed)
        with pytest.raises(KeyboardInterrupt):
            begun(run, truncation=[3, 4, 5])
    assert not (run / "campaign.yaml").exists()
    assert sealed_grid(run) == old.spec
    made = begun(run, truncation=[3, 4, 5])
    assert sealed_grid(run) == made.spec
    assert made.matches_grid(run)


def test_a_failure_that_cannot_be_read(tmp_path):
    directory = CampaignDirectory(tmp_path / "run")
    fit = directory.begin(spec_of(), "f").fits[0]
    directory.fail(fit, "it is too large", 2)
    directory.close()
    path = fit_folder(tmp_path / "run", fit.id) / "failed.json"
    path.write_text("half")
    said = f"{path}: damaged: it does not match its hash; sweep tries the fit again"
    assert failure(tmp_path / "run", fit.id) == {"reason": said, "code": StorageError.code}


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
