"""`web` of a site file: what is refused when it is read."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import TypeAdapter, ValidationError

from clusterctl.edges.site import load_site
from clusterctl.fleet.errors import UsageError
from clusterctl.site.web import WebSettings
from tests.cli.site_of_three import write

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


def test_the_client_s_secret_stands_elsewhere(tmp_path: Path) -> None:
    """In the site file itself it is refused, and the error does not repeat it."""
    site = write(tmp_path)
    oidc = "{issuer: https://id.example.com, client_id: c, client_secret: hunter2hunter2, roles: {admin: [a]}}"
    with (site / "site.yml").open("a") as file:
        file.write(f"\nweb: {{oidc: {oidc}}}\n")
    with pytest.raises(UsageError) as refused:
        load_site(site)
    assert "hunter2" not in str(refused.value)
    assert "client_secret" in str(refused.value)
