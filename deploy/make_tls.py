"""Certificates for a Dask cluster, made by one command: python deploy/make_tls.py DIR

DIR gets an authority (`ca.pem`), a certificate and a key each for scheduler, worker and client, and
`dask.yaml`, which tells Dask where they are: set DASK_CONFIG=DIR/dask.yaml for every process. The key of
the authority is thrown away, so nobody can add a certificate later; who needs more makes all anew.
Whoever holds one of the keys may run code on the cluster, so they are readable by their owner only.
"""

from __future__ import annotations

import argparse
import datetime
import errno
import fcntl
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

ROLES = ("scheduler", "worker", "client")
MADE = {"ca.pem", "dask.yaml.partial", *(f"{role}{end}.pem" for role in ROLES for end in ("", "-key"))}
"""What a folder may hold that is not complete: it was left by a maker that was killed."""
MOST_DAYS = 36_500
EARLIER = datetime.timedelta(hours=1)
"""A certificate is valid from a little before it was made: clocks differ."""


def main(arguments: list[str] | None = None) -> int:
    """Make DIR, or say in one line why not."""
    parser = argparse.ArgumentParser(prog="make_tls.py", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", metavar="DIR", type=Path, help="the folder to make")
    parser.add_argument("--days", type=int, default=365, help="how long they are valid (365)")
    options = parser.parse_args(arguments)
    if not 1 <= options.days <= MOST_DAYS:
        parser.error(f"--days is {options.days}: expected 1 to {MOST_DAYS}")
    try:
        make(options.folder, options.days)
    except OSError as error:
        print(f"make_tls.py: {options.folder}: {error.strerror}", file=sys.stderr)
        return 4
    print(f"made {options.folder}; set DASK_CONFIG={options.folder.absolute() / 'dask.yaml'}")
    return 0


def make(folder: Path, days: int = 365) -> None:
    """Fill a folder that is new, empty, or was left half made. `dask.yaml` comes last and whole: a folder
    that has it is complete."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _alone(folder):
        _empty(folder)
        key = ec.generate_private_key(ec.SECP256R1())
        authority = _authority(key, days)
        _write(folder / "ca.pem", authority.public_bytes(serialization.Encoding.PEM))
        for role in ROLES:
            _role(folder, role, authority, key, days)
        written = folder / "dask.yaml.partial"
        _write(written, yaml.safe_dump(config(folder.absolute()), sort_keys=False).encode())
        written.rename(folder / "dask.yaml")


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One maker at a time; the lock of one that is killed is released."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _empty(folder: Path) -> None:
    """Remove what a killed maker left; anything else is kept and refused."""
    found = list(folder.iterdir())
    if any(file.name not in MADE for file in found):
        raise FileExistsError(errno.EEXIST, "holds something already; remove it or choose another folder")
    for file in found:
        file.unlink()


def config(folder: Path) -> dict[str, Any]:
    """What Dask's configuration says of certificates in a folder."""
    roles = {
        role: {"cert": str(folder / f"{role}.pem"), "key": str(folder / f"{role}-key.pem")} for role in ROLES
    }
    return {"distributed": {"comm": {"tls": {"ca-file": str(folder / "ca.pem"), **roles}}}}


def _authority(key: ec.EllipticCurvePrivateKey, days: int) -> x509.Certificate:
    name = _name("authority")
    made = _begun(name, name, key.public_key(), days).add_extension(
        x509.BasicConstraints(True, 0), critical=True
    )
    return made.add_extension(_usage(signs_others=True), critical=True).sign(key, hashes.SHA256())


def _role(
    folder: Path, role: str, authority: x509.Certificate, signer: ec.EllipticCurvePrivateKey, days: int
) -> None:
    """The certificate and key of a role: schedulers and workers listen and connect, clients connect."""
    key = ec.generate_private_key(ec.SECP256R1())
    purposes = [ExtendedKeyUsageOID.CLIENT_AUTH]
    if role != "client":
        purposes.append(ExtendedKeyUsageOID.SERVER_AUTH)
    made = _begun(_name(role), authority.subject, key.public_key(), days)
    made = made.add_extension(x509.BasicConstraints(False, None), critical=True)
    made = made.add_extension(_usage(signs_others=False), critical=True)
    made = made.add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
    made = made.add_extension(
        x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False
    )
    certificate = made.sign(signer, hashes.SHA256())
    _write(folder / f"{role}.pem", certificate.public_bytes(serialization.Encoding.PEM))
    form = serialization.PrivateFormat.PKCS8
    _write(
        folder / f"{role}-key.pem",
        key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()),
    )


def _begun(
    subject: x509.Name, issuer: x509.Name, public: ec.EllipticCurvePublicKey, days: int
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    made = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(public)
    made = made.serial_number(x509.random_serial_number())
    made = made.not_valid_before(now - EARLIER).not_valid_after(now + datetime.timedelta(days=days))
    return made.add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)


def _name(role: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"ibpdist {role}")])


def _usage(signs_others: bool) -> x509.KeyUsage:
    """What a key may do: sign certificates, or its own handshakes."""
    names = ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement")
    never = dict.fromkeys((*names, "crl_sign", "encipher_only", "decipher_only"), False)
    return x509.KeyUsage(digital_signature=not signs_others, key_cert_sign=signs_others, **never)


def _write(path: Path, content: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(content)


if __name__ == "__main__":
    sys.exit(main())
