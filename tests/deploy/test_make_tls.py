"""Certificates made by one command: who may read them, what they are for, and what is refused."""

import runpy
import stat
import subprocess

import pytest
import yaml

from tests.support.tls import MAKE, make_tls

ROLES = ("scheduler", "worker", "client")
FILES = {"ca.pem", "dask.yaml", *(f"{role}{end}.pem" for role in ROLES for end in ("", "-key"))}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("made") / "tls"
    done = make_tls(made)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"made {made}; set DASK_CONFIG={made / 'dask.yaml'}\n"
    return made


def openssl(*arguments):
    try:
        return subprocess.run(["openssl", *map(str, arguments)], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("openssl is not installed")


def test_all_files_are_there_and_their_owner_alone_reads_them(folder):
    assert {file.name for file in folder.iterdir()} == FILES, "the key of the authority is thrown away"
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_the_configuration_names_every_file(folder):
    tls = yaml.safe_load((folder / "dask.yaml").read_text())["distributed"]["comm"]["tls"]
    named = {tls["ca-file"], *(tls[role][what] for role in ROLES for what in ("cert", "key"))}
    assert named == {str(folder / name) for name in FILES - {"dask.yaml"}}


@pytest.mark.parametrize(
    ("role", "purpose", "answer"),
    [
        ("scheduler", "sslserver", 0),
        ("scheduler", "sslclient", 0),
        ("worker", "sslserver", 0),
        ("worker", "sslclient", 0),
        ("client", "sslclient", 0),
        ("client", "sslserver", 2),
    ],
)
def test_what_a_certificate_is_for(folder, role, purpose, answer):
    arguments = ["-x509_strict", "-purpose", purpose, "-CAfile", folder / "ca.pem", folder / f"{role}.pem"]
    assert openssl("verify", *arguments).returncode == answer


def test_a_certificate_of_another_authority_is_none_here(folder, tmp_path):
    assert make_tls(tmp_path / "other").returncode == 0
    done = openssl("verify", "-CAfile", folder / "ca.pem", tmp_path / "other" / "worker.pem")
    assert done.returncode != 0


def test_how_long_they_are_valid(tmp_path):
    assert make_tls(tmp_path / "tls", "--days", 30).returncode == 0
    certificate = tmp_path / "tls" / "worker.pem"
    assert openssl("x509", "-checkend", 29 * 86400, "-noout", "-in", certificate).returncode == 0
    assert openssl("x509", "-checkend", 31 * 86400, "-noout", "-in", certificate).returncode == 1


def test_an_empty_folder_is_filled(tmp_path):
    assert make_tls(tmp_path).returncode == 0
    assert {file.name for file in tmp_path.iterdir()} == FILES


def test_what_is_there_is_not_replaced(folder):
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    done = make_tls(folder)
    assert done.returncode == 4
    assert (
        done.stderr == f"make_tls.py: {folder}: holds something already; remove it or choose another folder\n"
    )
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before


def test_a_place_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    done = make_tls(tmp_path / "file" / "tls")
    assert (done.returncode, done.stderr) == (4, f"make_tls.py: {tmp_path}/file/tls: Not a directory\n")


@pytest.mark.parametrize("days", [-1, 0, 36_501, 100_000_000, 10**30])
def test_days_that_no_certificate_has(tmp_path, days):
    done = make_tls(tmp_path / "tls", "--days", days)
    assert done.returncode == 2
    assert done.stderr.endswith(f"--days is {days}: expected 1 to 36500\n")
    assert not (tmp_path / "tls").exists()


def test_the_longest_time(tmp_path):
    assert make_tls(tmp_path / "tls", "--days", 36_500).returncode == 0


@pytest.mark.parametrize("last", ["ca.pem", "worker-key.pem", "dask.yaml.partial"])
def test_what_was_left_half_made_is_made_anew(folder, tmp_path, last):
    half = tmp_path / "half"
    half.mkdir()
    for name in ("ca.pem", "scheduler.pem", last):
        (half / name).write_text("hal")
    assert make_tls(half).returncode == 0
    assert {file.name for file in half.iterdir()} == FILES
    arguments = ["-CAfile", half / "ca.pem", half / "worker.pem"]
    assert openssl("verify", *arguments).returncode == 0


def test_a_maker_that_is_killed_at_any_file_leaves_what_the_next_one_completes(tmp_path, monkeypatch):
    """It stops at each of its files in turn, the last one being half written."""
    module = runpy.run_path(str(MAKE))
    make, write = module["make"], module["_write"]
    for stops in range(8):
        left = []

        def killed(path, content, left=left, stops=stops):
            if len(left) == stops:
                path.write_bytes(content[: len(content) // 2])
                raise KeyboardInterrupt
            left.append(path)
            write(path, content)

        half = tmp_path / f"half-{stops}"
        monkeypatch.setitem(make.__globals__, "_write", killed)
        with pytest.raises(KeyboardInterrupt):
            make(half)
        assert not (half / "dask.yaml").exists()
        monkeypatch.setitem(make.__globals__, "_write", write)
        make(half)
        assert {file.name for file in half.iterdir()} == FILES


def test_a_file_of_somebody_else_among_the_left_ones_is_kept(tmp_path):
    for name in ("ca.pem", "notes.txt"):
        (tmp_path / name).write_text("mine")
    done = make_tls(tmp_path)
    assert (done.returncode, "holds something already" in done.stderr) == (4, True)
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == {
        "ca.pem": "mine",
        "notes.txt": "mine",
    }
