"""Where a page may lie: a page of ours gives way to a new one, other files when asked, runs never."""

import shutil
from pathlib import Path

import pytest
from click.testing import Result

import ibpdist as ibp
from ibpdist.base.errors import IbpError, OutputInUse, UsageError
from ibpdist.report.place import is_page
from tests.support.command import invoke
from tests.support.finished import images_and_run


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = images_and_run(tmp_path_factory.mktemp("place"))
    ibp.sweep(
        {"data": str(folder / "images.zarr"), "system": "lg-vi-finite", "truncation": 2, "steps": 2},
        folder / "all",
    )
    return folder


def written(run: Path, *options: object) -> Result:
    return invoke("report", run, *options)


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_a_file_that_is_there_is_kept_unless_asked(made: Path, tmp_path: Path) -> None:
    table = tmp_path / "x.csv"
    table.write_text("a,b\n1,2\n")
    refused = written(made / "run", "--output", table)
    assert (refused.exit_code, table.read_text()) == (6, "a,b\n1,2\n")
    assert refused.stderr == (
        f"ibpdist: {table}: exists and is not a report: choose another name or pass --overwrite "
        "(in Python: overwrite=True)\n"
    )
    assert written(made / "run", "--output", table, "--overwrite").exit_code == 0
    assert is_page(table)


def test_a_page_of_ours_is_written_again(made: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    for _ in range(2):
        assert ibp.report(made / "run", page) == page
        assert ibp.report(made / "run") == made / "run" / "report.html"
    (made / "run" / "report.html").write_text("half a pa")
    assert ibp.report(made / "run") == made / "run" / "report.html"
    assert page.read_bytes() == (made / "run" / "report.html").read_bytes()


@pytest.mark.parametrize(
    "name",
    [
        *("run/spec.yaml", "run/new.json", "run/result.zarr/zarr.json", "run/result.zarr/page.html"),
        *(
            "images.zarr/manifest.json",
            "images.zarr/page.html",
            "all/campaign.yaml",
            "all/fits/manifest.json",
        ),
    ],
)
@pytest.mark.parametrize("overwrite", [False, True])
def test_nothing_of_a_run_or_dataset_is_touched(made: Path, name: str, overwrite: bool) -> None:
    before = contents(made)
    with pytest.raises(UsageError, match="choose a place outside it"):
        ibp.report(made / "run", made / name, overwrite=overwrite)
    assert contents(made) == before


def test_a_run_may_have_another_page_of_ours(made: Path) -> None:
    page = made / "run" / "other.html"
    assert ibp.report(made / "run", page) == page
    assert ibp.verify(made / "run") == []
    page.write_text("notes")
    with pytest.raises(UsageError, match="inside the run"):
        ibp.report(made / "run", page, overwrite=True)
    page.unlink()


def test_a_directory_is_no_file(made: Path, tmp_path: Path) -> None:
    done = written(made / "run", "--output", tmp_path, "--overwrite")
    assert done.exit_code == 2
    assert (
        f"{tmp_path}: is a directory; name the file to write, such as {tmp_path}/report.html" in done.stderr
    )


def test_what_is_no_file_is_not_replaced(made: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "gone")
    for overwrite in (False, True):
        with pytest.raises(OutputInUse):
            ibp.report(made / "run", link, overwrite=overwrite)
    assert link.is_symlink()


def test_the_page_of_a_result_lies_in_its_run_and_in_no_store(made: Path, tmp_path: Path) -> None:
    assert ibp.report(made / "run" / "result.zarr") == made / "run" / "report.html"
    copy = shutil.copytree(made / "run" / "result.zarr", tmp_path / "copy.zarr")
    with pytest.raises(IbpError, match="lies inside the store"):
        ibp.report(copy)
    assert ibp.report(copy, tmp_path / "copy.html").is_file()
