"""Certificates made by one command: who may read them, what they are for, and what is refused."""

import stat
import subprocess

import pytest
import yaml

from tests.support.tls import make_tls

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


def test_no_days(tmp_path):
    done = make_tls(tmp_path / "tls", "--days", 0)
    assert done.returncode == 2
    assert done.stderr.endswith("--days is 0: expected 1 or more\n")
    assert not (tmp_path / "tls").exists()
