"""MAAS gets the API key only when it has proven its identity, or where the site explicitly does not require it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import stamina

from clusterctl.edges.maas import MaasSettings
from clusterctl.edges.maas.api import MaasApi
from clusterctl.fleet.errors import ClusterctlError, EdgeError, UntrustedError, UsageError
from clusterctl.ports import Deadline
from tests.secrets.kit import Answer, Certified, Server, UtcClock, echo, redirect, serving

KEY = "consumer-of-test:token-of-test:secret+of/test"
PASSWORD = 'a "quoted" päss&word'


def works(body: object = ()) -> Answer:
    return lambda _: (200, {"Content-Type": "application/json"}, json.dumps(body).encode())


def api(server: Server, scheme: str = "https", host: str = "127.0.0.1", **trust: str) -> MaasApi:
    url = f"{scheme}://{host}:{server.port}/MAAS"
    return MaasApi(MaasSettings(url, KEY, "jammy", allow_plain_http=True, **trust), UtcClock())


def ask(maas: MaasApi) -> bytes:
    with stamina.set_testing(True, attempts=1):
        return maas.get("machines/", (), Deadline.after(60)).evidence.content


def test_pinned_or_vouched_for(tmp_path: Path) -> None:
    """Either is enough; and plain HTTP where the site allows it."""
    made = Certified.make(tmp_path)
    with serving(works(), made.context) as server:
        assert ask(api(server, tls_fingerprint=made.fingerprint)) == b"[]"
        assert ask(api(server, ca_file=str(made.pem))) == b"[]"
    with serving(works()) as server:
        assert ask(api(server, "http")) == b"[]"


def test_an_unproven_server_receives_nothing(tmp_path: Path) -> None:
    """Another certificate than the pinned one, one of another authority, one for another name: not a byte is sent."""
    made, other = Certified.make(tmp_path), Certified.make(tmp_path, "other")
    with serving(works(), made.context) as server:
        for maas in (
            api(server, tls_fingerprint=other.fingerprint),
            api(server, ca_file=str(other.pem)),
            api(server),
            api(server, host="localhost", ca_file=str(made.pem)),
        ):
            with pytest.raises(UntrustedError) as caught:
                ask(maas)
            assert caught.value.where.startswith("https://")
            assert "provisioning." in caught.value.remedy
        assert str(server.received) == ""


def test_tls_below_1_2_is_refused(tmp_path: Path) -> None:
    """Also with a pin."""
    made = Certified.make(tmp_path)
    with serving(works(), made.outdated) as server:
        assert made.uses_outdated_tls(server.port)
        for trust in ({"tls_fingerprint": made.fingerprint}, {"ca_file": str(made.pem)}):
            with pytest.raises(EdgeError, match="no TLS"):
                ask(api(server, **trust))
        assert str(server.received) == ""


def test_redirects_are_not_followed(tmp_path: Path) -> None:
    """The other place receives nothing, whatever its scheme."""
    made = Certified.make(tmp_path)
    with serving(works()) as other:
        for host in ("127.0.0.1", "localhost"):
            with serving(redirect(f"http://{host}:{other.port}/MAAS/api/2.0/machines/"), made.context) as server:
                with pytest.raises(EdgeError):
                    ask(api(server, tls_fingerprint=made.fingerprint))
                assert "Authorization" in str(server.received)
        assert str(other.received) == ""


def test_the_environment_changes_no_trust(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a bundle nor a proxy nor a netrc of the user who starts us."""
    made = Certified.make(tmp_path)
    with serving(works(), made.context) as server:
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(made.pem))
        monkeypatch.setenv("CURL_CA_BUNDLE", str(made.pem))
        with pytest.raises(UntrustedError):
            ask(api(server))
        monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
        assert ask(api(server, ca_file=str(made.pem))) == b"[]"


def test_plain_http_must_be_asked_for() -> None:
    """The key would be readable on the network."""
    with pytest.raises(UsageError, match="plain http"):
        MaasSettings("http://maas.example/MAAS", KEY, "jammy")


@pytest.mark.parametrize("status", [400, 401, 403, 409, 500, 502, 503])
@pytest.mark.parametrize("kind", ["text/plain", "application/json", "text/html"])
def test_what_maas_echoes_is_taken_out(tmp_path: Path, status: int, kind: str) -> None:
    """Key parts and BMC password, repeated by a refusal in any form, do not reach the error."""
    made = Certified.make(tmp_path)
    with serving(echo(status, kind), made.context) as server:
        maas = api(server, tls_fingerprint=made.fingerprint)
        with pytest.raises(ClusterctlError) as caught:
            maas.post("machines/", "", [("power_pass", PASSWORD)], Deadline.after(60), secrets=[PASSWORD])
        assert "secret%252Bof%252Ftest" in str(server.received)
    reported = f"{caught.value} {caught.value!r} {vars(caught.value)}"
    for part in (*KEY.split(":"), "secret%252Bof%252Ftest", PASSWORD, "a+%22quoted%22+p%C3%A4ss%26word"):
        assert part not in reported


def test_what_maas_echoes_is_no_evidence(tmp_path: Path) -> None:
    """A value that MAAS returns is kept as evidence without the key."""
    made = Certified.make(tmp_path)
    with serving(works([{"hint": KEY.split(":")[2]}]), made.context) as server:
        content = ask(api(server, tls_fingerprint=made.fingerprint))
    assert json.loads(content) == [{"hint": "(secret)"}]
