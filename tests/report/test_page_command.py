"""`ibpdist report`: the page of a run, written from the command line."""

from pathlib import Path

import pytest

from tests.support.command import invoke
from tests.support.finished import images_and_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return images_and_run(tmp_path_factory.mktemp("command")) / "run"


def test_it_writes_into_the_run_and_says_where(run: Path) -> None:
    done = invoke("report", run)
    assert done.exit_code == 0
    assert done.output == f"{run / 'report.html'}\n"
    assert (run / "report.html").read_text("utf-8").startswith("<!DOCTYPE html>\n<html")
    assert not list(run.glob("*.partial"))


def test_it_writes_elsewhere_with_images_of_a_given_size(run: Path, tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    done = invoke("report", run, "--output", target, "--image", "4x9")
    assert done.exit_code == 0
    assert "images of 4 by 9" not in done.output
    assert "as an image of 4 by 9" in target.read_text("utf-8")


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--image", "6"], 2, "'6' is not HEIGHTxWIDTH, such as 28x28"),
        (["--image", "0x36"], 2, "is not HEIGHTxWIDTH"),
        (["--image", "5x5"], 2, "5 x 5 pixels expected, but rows have 36 columns"),
        (["--output", "."], 2, "is a directory"),
    ],
)
def test_what_cannot_be_done(run: Path, options: list[str], code: int, said: str) -> None:
    done = invoke("report", run, *options)
    assert done.exit_code == code
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_what_is_no_run(tmp_path: Path) -> None:
    done = invoke("report", tmp_path)
    assert done.exit_code == 4
    assert "is not a run" in done.stderr
