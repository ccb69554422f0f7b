"""`web` of a site file: what is refused when it is read."""

from __future__ import annotations

import pytest
from pydantic import TypeAdapter, ValidationError

from clusterctl.site.web import WebSettings

ROLES = {"admin": ["a"]}


def read(oidc: dict[str, object]) -> WebSettings:
    return TypeAdapter(WebSettings).validate_python({"oidc": {"client_id": "c", "roles": ROLES, **oidc}})


@pytest.mark.parametrize(
    "issuer",
    ["http://id.example.com", "ftp://id.example.com", "id.example.com", "https://", "https://u:p@id.example.com", "https://[", "https://id.example.com/?a=b"],
)  # fmt: skip
def test_issuers_that_are_refused(issuer: str) -> None:
    """Sign-ins pass over TLS, except on a loopback address."""
    with pytest.raises(ValidationError):
        read({"issuer": issuer})


def test_issuers_that_are_read() -> None:
    for issuer in ("https://id.example.com/realms/hpc", "http://localhost:9000", "http://127.0.0.1:9000"):
        found = read({"issuer": issuer}).oidc
        assert found is not None
        assert found.issuer == issuer


def test_the_client_s_secret_stands_elsewhere() -> None:
    """In the file itself it is refused, and the error does not repeat it."""
    with pytest.raises(ValidationError) as refused:
        read({"issuer": "https://id.example.com", "client_secret": "hunter2hunter2"})
    assert "hunter2" not in str(refused.value).replace("input_value", "")
