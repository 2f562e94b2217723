"""Certificates of a client: found as Dask's configuration names them, or missed in one sentence."""

import ssl

import dask
import pytest

from ibpdist.base.errors import UsageError
from ibpdist.engine.cluster import attached
from ibpdist.engine.tls import security
from tests.support.tls import make_tls

ADDRESS = "tls://127.0.0.1:9"
NOTHING = {"ca-file": None, "client.cert": None, "client.key": None}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("made") / "tls"
    assert make_tls(made).returncode == 0
    return made


def configured(**named):
    """Dask's configuration with these files only."""
    given = NOTHING | {name.replace("_", "."): str(file) for name, file in named.items()}
    given["ca-file"] = given.pop("ca.file", given["ca-file"])
    return dask.config.set({f"distributed.comm.tls.{key}": value for key, value in given.items()})


def test_without_tls_there_is_nothing_to_find():
    assert security("tcp://127.0.0.1:9") is None


def test_the_certificates_are_found(folder):
    with configured(
        ca_file=folder / "ca.pem", client_cert=folder / "client.pem", client_key=folder / "client-key.pem"
    ):
        found = security(ADDRESS)
    context = found.get_connection_args("client")["ssl_context"]
    assert context.verify_mode == ssl.CERT_REQUIRED
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2


def test_a_key_may_stand_with_its_certificate(folder, tmp_path):
    both = tmp_path / "both.pem"
    both.write_bytes((folder / "client.pem").read_bytes() + (folder / "client-key.pem").read_bytes())
    with configured(ca_file=folder / "ca.pem", client_cert=both):
        assert security(ADDRESS).tls_client_key is None


def test_texts_instead_of_files(folder):
    names = {"ca_file": "ca.pem", "client_cert": "client.pem", "client_key": "client-key.pem"}
    texts = {name: (folder / file).read_text() for name, file in names.items()}
    with configured(**texts):
        assert security(ADDRESS).get_connection_args("client")["ssl_context"] is not None


def test_nothing_is_configured():
    with (
        configured(),
        pytest.raises(
            UsageError, match=r"tls\.ca-file \(DASK_DISTRIBUTED__COMM__TLS__CA_FILE\) is not set; .*make_tls"
        ),
        attached(ADDRESS),
    ):
        pass


def test_only_the_authority_is_configured(folder):
    with (
        configured(ca_file=folder / "ca.pem"),
        pytest.raises(UsageError, match=r"\(DASK_DISTRIBUTED__COMM__TLS__CLIENT__CERT\) is not set"),
    ):
        security(ADDRESS)


def test_a_file_that_is_not_there_is_named(folder):
    missing = folder / "nothing.pem"
    with (
        configured(ca_file=folder / "ca.pem", client_cert=missing, client_key=folder / "client-key.pem"),
        pytest.raises(UsageError, match=rf"client\.cert .* is {missing}, which cannot be read: No such file"),
    ):
        security(ADDRESS)


def test_a_key_of_another_certificate(folder):
    with (
        configured(
            ca_file=folder / "ca.pem", client_cert=folder / "client.pem", client_key=folder / "worker-key.pem"
        ),
        pytest.raises(UsageError, match=r"client\.pem and its key are not a certificate: "),
    ):
        security(ADDRESS)


def test_the_variables_it_names_are_those_of_dask():
    read = dask.config.collect_env(
        {"DASK_DISTRIBUTED__COMM__TLS__CA_FILE": "a", "DASK_DISTRIBUTED__COMM__TLS__CLIENT__CERT": "b"}
    )
    with dask.config.set(read):
        assert dask.config.get("distributed.comm.tls.ca-file") == "a"
        assert dask.config.get("distributed.comm.tls.client.cert") == "b"
