"""The certificate of the web page: read, checked against its key, and the names that it is for."""

from __future__ import annotations

import ssl
from pathlib import Path

from cryptography import x509

from clusterctl.edges.site.secrets import private_text
from clusterctl.edges.site.textfile import read_text
from clusterctl.fleet.errors import UsageError


def server_context(certificate: Path, private_key: Path) -> ssl.SSLContext:
    """Return a context of TLS 1.2 and newer. Raises `UsageError` where the two files do not fit together."""
    private_text(private_key, "web.private_key")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, private_key, password=lambda: "")
    except (OSError, ssl.SSLError) as error:
        remedy = "name the PEM files of a certificate and of its key, the key without a passphrase"
        reason = getattr(error, "reason", None) or error.strerror or type(error).__name__
        raise UsageError(f"cannot be used: {reason}", where=str(certificate), remedy=remedy) from None
    return context


def certified_names(certificate: Path) -> tuple[str, ...]:
    """Return the host names and addresses that the certificate is for (RFC 6125: those of subjectAltName)."""
    text = read_text(certificate, "web.certificate")
    try:
        found = x509.load_pem_x509_certificate(text.encode())
        names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, x509.ExtensionNotFound):
        remedy = "use a certificate with subjectAltName, as browsers require"
        raise UsageError("names no host", where=str(certificate), remedy=remedy) from None
    addresses = [f"[{ip}]" if ":" in str(ip) else str(ip) for ip in names.get_values_for_type(x509.IPAddress)]
    return (*names.get_values_for_type(x509.DNSName), *addresses)
