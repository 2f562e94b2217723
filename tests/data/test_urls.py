"""A URL in a place for data or results is refused in one sentence, never taken as a local folder."""

from pathlib import Path

import numpy as np
import pytest

import ibpdist as ibp
from ibpdist.base.errors import UsageError
from ibpdist.data.urls import refuse_urls
from ibpdist.report.plots import draw_strips
from tests.support.command import invoke
from tests.support.finished import images_and_run

URL = "s3://bucket/thing"
SENTENCE = (
    r"^s3://bucket/thing: is a URL, and data and results are on file systems only: "
    r"give a path on this machine or on a mounted disk$"
)
FIT = {"system": "lg-vi-finite", "K": 2, "steps": 2}
GRID = {"system": "lg-vi-finite", "truncation": 2, "steps": 2}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = images_and_run(tmp_path_factory.mktemp("made"))
    np.save(folder / "x.npy", np.eye(5))
    (folder / "grid.yaml").write_text(f"data: {URL}\nsystem: lg-vi-finite\ntruncation: 2\n")
    return folder


@pytest.fixture(autouse=True)
def empty(tmp_path, monkeypatch):
    """A working directory in which nothing may be made."""
    monkeypatch.chdir(tmp_path)
    yield
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "url",
    ["s3://b/run", "gs://b", "http://h:80/x.csv", "memory://run", "file:///srv/x", "simplecache::s3://b/run"],
)
def test_a_url_is_named_as_it_was_given(url):
    for given in (url, Path(url)):
        with pytest.raises(UsageError, match=r": is a URL, and data and results") as error:
            refuse_urls("run", 5, None, given)
        assert str(error.value).startswith(url if given == url else url.replace(":///", "://"))
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("path", ["run", "/a/b", "a:b", "2026-11-19 10:30/run", "c:/run"])
def test_a_path_is_none(path):
    refuse_urls(path, Path(path))


@pytest.mark.parametrize("as_type", [str, Path])
@pytest.mark.parametrize(
    "call",
    [
        lambda a, url: ibp.fit(url, **FIT),
        lambda a, url: ibp.fit(a / "images.zarr", run=url, **FIT),
        lambda a, url: ibp.fit(np.eye(4), run=url, **FIT),
        lambda a, url: ibp.fit(a / "images.zarr", start=url, **FIT),
        lambda a, url: ibp.resume(url),
        lambda a, url: ibp.verify(url),
        lambda a, url: ibp.open_dataset(url),
        lambda a, url: ibp.append(url, np.eye(4)),
        lambda a, url: ibp.ingest(a / "x.npy", url),
        lambda a, url: ibp.ingest(url, a / "b.zarr"),
        lambda a, url: ibp.synthesise("images", url, rows=20),
        lambda a, url: ibp.sweep({"data": str(url), **GRID}, a / "campaign"),
        lambda a, url: ibp.sweep({"data": str(a / "images.zarr"), **GRID}, url),
        lambda a, url: ibp.sweep(url, a / "campaign"),
        lambda a, url: ibp.open_campaign(url),
        lambda a, url: ibp.transform(a / "run", a / "images.zarr", url),
        lambda a, url: ibp.transform(a / "run", url),
        lambda a, url: ibp.transform(url, a / "images.zarr"),
        lambda a, url: ibp.evaluate(a / "run", url),
        lambda a, url: ibp.choose(url, K=2),
        lambda a, url: draw_strips(url, [], (2, 2)),
    ],
)
def test_every_door_of_the_library(made, call, as_type):
    with pytest.raises(UsageError, match=SENTENCE):
        call(made, as_type(URL))
    assert not (made / "b.zarr").exists()
    assert not (made / "campaign").exists()


@pytest.mark.parametrize(
    "command",
    [
        "fit {url} run --system lg-vi-finite -K 2",
        "fit {made}/images.zarr {url} --system lg-vi-finite -K 2",
        "fit {made}/images.zarr run --system lg-vi-finite -K 2 --from {url}",
        "ingest {made}/x.npy {url}",
        "synth images {url} --rows 20",
        "sweep {made}/grid.yaml run",
        "sweep {made}/grid.yaml {url}",
        "resume {url}",
        "show {url}",
        "verify {url}",
        "evaluate {made}/run {url}",
        "transform {made}/run {made}/images.zarr {url}",
        "export {made}/run {url}",
        "report {made}/run --output {url}",
        "choose {url} -K 2",
        "demo {url}",
    ],
)
def test_every_door_of_the_command_line(made, command):
    result = invoke(*command.format(made=made, url=URL).split())
    assert result.exit_code == UsageError.code
    assert result.stderr.startswith(f"ibpdist: {URL}: is a URL")
    assert result.stderr.count("\n") == 1


def test_the_address_of_a_scheduler_is_no_place(made):
    with pytest.raises(UsageError, match="without TLS"):
        ibp.fit(made / "images.zarr", run="run", scheduler="tcp://192.0.2.1:8786", **FIT)
