"""The certificates that TLS connections trust."""

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from handaxe.contract.faults import SetupError

if TYPE_CHECKING:
    from ssl import SSLContext


def create_tls_context(env: Mapping[str, str]) -> "SSLContext":
    """The certificates to trust: those that `SSL_CERT_*` variables name, or the system's."""
    import ssl

    file, directory = env.get("SSL_CERT_FILE"), env.get("SSL_CERT_DIR")
    if file or directory:
        try:
            return ssl.create_default_context(cafile=file or None, capath=directory or None)
        except OSError as error:
            named = " or ".join(name for name in ("SSL_CERT_FILE", "SSL_CERT_DIR") if env.get(name))
            raise SetupError(f"{named} names no certificates that can be read: {error}.") from error
    if sys.platform in ("darwin", "win32"):
        # There OpenSSL does not find the certificates of the system.
        import truststore

        return truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return ssl.create_default_context()
