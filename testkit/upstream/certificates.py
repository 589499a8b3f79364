"""Servers with certificates that only a test's own authority vouches for."""

import ssl
from pathlib import Path

import trustme


def server_side(authority: trustme.CA) -> ssl.SSLContext:
    """Return what a server shows: a certificate for this machine and for a name."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1", "model.test").configure_cert(context)
    return context


def bundle_of(authority: trustme.CA, path: Path) -> str:
    """Write the authority's own certificate to a file and return its path."""
    authority.cert_pem.write_to_path(str(path))
    return str(path)
