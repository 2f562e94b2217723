"""The certificates with which a client meets a `tls://` scheduler: those that Dask's configuration names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from distributed.security import Security

from ibpdist.base.errors import UsageError

NAMES = {"tls_ca_file": "ca-file", "tls_client_cert": "client.cert", "tls_client_key": "client.key"}
"""What Dask calls a file, and its key under `distributed.comm.tls`."""
_WITHOUT = {"tls_client_key"}
"""May be missing: the key may stand in the file of the certificate."""
_make: Any = Security


def security(address: str) -> Any:
    """Dask's `Security` for an address, None without TLS; refuses files that are missing."""
    if not address.startswith("tls://"):
        return None
    certificates = _make()
    for name in NAMES:
        file = getattr(certificates, name)
        if file is None and name not in _WITHOUT:
            raise UsageError(
                f"scheduler {address}: {_words(name)} is not set; make certificates with deploy/make_tls.py "
                "and set DASK_CONFIG to the dask.yaml that it wrote"
            )
        if file is not None:
            _refuse_unreadable(address, name, file)
    try:
        certificates.get_connection_args("client")
    except OSError as error:  # SSLError is one
        raise UsageError(
            f"scheduler {address}: {certificates.tls_client_cert} and its key are not a certificate: {error}"
        ) from None
    return certificates


def _refuse_unreadable(address: str, name: str, file: str) -> None:
    try:
        if "-----BEGIN " in file:  # Dask takes the text itself, too
            return
        with Path(file).open("rb"):
            return
    except OSError as error:
        raise UsageError(
            f"scheduler {address}: {_words(name)} is {file}, which cannot be read: {error.strerror}"
        ) from None


def _words(name: str) -> str:
    """A setting as configuration files and as the environment have it."""
    key = NAMES[name]
    variable = f"tls.{key}".replace(".", "__").replace("-", "_").upper()
    return f"distributed.comm.tls.{key} (DASK_DISTRIBUTED__COMM__{variable})"
