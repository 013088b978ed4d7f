"""Whom a TLS connection trusts."""

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ssl import SSLContext


def create_tls_context(env: Mapping[str, str]) -> "SSLContext":
    """Trust the certificates that variables name, or the system's."""
    import ssl

    file, directory = env.get("SSL_CERT_FILE"), env.get("SSL_CERT_DIR")
    if file or directory:
        return ssl.create_default_context(cafile=file or None, capath=directory or None)
    if sys.platform in ("darwin", "win32"):
        # There the system's certificates are not where OpenSSL looks for them.
        import truststore

        return truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return ssl.create_default_context()
