"""`clusterctl bmc certificates check|renew`, as an operator types it, against a BMC that makes keys and uses TLS."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from clusterctl.edges.certificate_authority import issued_by
from clusterctl.edges.redfish.pins import presented_der
from clusterctl.fleet.acts import Act
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.event import NewEvent, Stream
from clusterctl.fleet.payloads.decisions import NodeRetired
from clusterctl.operations.context import open_site
from clusterctl.ports import BmcAddress, Deadline
from clusterctl.steps import bmc_certificates as step
from tests.cli.site_of_three import run
from tests.edges.certifying import GENERATE, REPLACE, Authority, Certifying, pem_of, with_certificates
from tests.edges.redfish.replay import PASSWORD, Bmc, serve
from tests.edges.redfish.test_services import with_services
from tests.edges.redfish.trees import small
from tests.edges.site.ready import write_ready_site
from tests.steps.fakes import identified

SUBJECT = "subject: {organization: Example, unit: HPC, city: Bonn, state: NRW, country: DE}"
RULE = f"  certificates: {{ca: ours.pem, key: {{file: secrets/ours.key}}, domain: bmc.example, {SUBJECT}}}"


@dataclass
class Place:
    site: Path
    server: Bmc
    bmc: Certifying
    authority: Authority
    address: BmcAddress

    @property
    def shown(self) -> x509.Certificate:
        return x509.load_der_x509_certificate(presented_der(self.address, Deadline.after(60)))

    def acts(self) -> list[tuple[str, str]]:
        journal = open_site(self.site).journal
        try:
            (node,) = journal.states()
            return [(act.act.value, act.result.value if act.result else "open") for act in node.intents]
        finally:
            journal.close()

    def json(self, *words: str) -> tuple[int, Any]:
        done = run(self.site, *words, "--json")
        return done.return_value, json.loads(done.stdout)

    def renew(self, *words: str) -> tuple[int, Any]:
        return self.json("bmc", "certificates", "renew", "n1", "--yes", *words)


@pytest.fixture(params=["by authority", "by pin"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """A site with n1, whose BMC has a certificate of its own; it is trusted by `ca_file`, or by a pin of first use."""
    monkeypatch.setattr(step, "POLL_S", 0.05)
    with serve(with_certificates(with_services(small())), tmp_path) as (server, address):
        site, authority = write_ready_site(tmp_path / "site"), Authority()
        (site / "bmcs.csv").write_text("name,bmc_address,serial\nn1,127.0.0.1,EX00042\n")
        (site / "secrets" / "bmc-password").write_text(PASSWORD)
        (site / "ours.pem").write_text(authority.pem)
        (site / "secrets" / "ours.key").write_text(pem_of(authority.key))
        (site / "secrets" / "ours.key").chmod(0o600)
        (site / "trusted.pem").write_text(Path(address.ca_file).read_text() + authority.pem)
        trust = "ca_file: trusted.pem" if request.param == "by authority" else "first_use: pin"
        text = (site / "site.yml").read_text()
        text = text.replace("  ca_file: bmc-ca.pem", f"  {trust}\n  port: {address.port}\n{RULE}")
        (site / "site.yml").write_text(text)
        journal = open_site(site).journal
        identified(journal, "n1", "EX00042", "gold")
        journal.close()
        server.manner = bmc = Certifying(server.context, tmp_path)
        yield Place(site, server, bmc, authority, address)


def test_checked_renewed_checked(place: Place) -> None:
    """A gold node, too. The certificate names what the site wants and nothing that the BMC asked for."""
    code, found = place.json("bmc", "certificates", "check")
    assert code == 1
    assert "did not sign it" in found["nodes"][0]["error"]["message"]
    assert "new key" in run(place.site, "bmc", "certificates", "renew", "n1", "--dry-run").stdout
    assert place.bmc.asked == []

    code, found = place.renew()
    assert (code, found["nodes"][0]["changed"]) == (0, True)
    assert [path for path, _ in place.bmc.asked] == [GENERATE, REPLACE]
    shown = place.shown
    assert issued_by(shown, place.authority.certificate)
    names = shown.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(name.value) for name in names] == ["n1.bmc.example", "127.0.0.1"]
    assert not shown.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert place.acts() == [(Act.BMC_CERTIFICATE.value, "done")]

    assert place.json("bmc", "certificates", "check")[0] == 0
    assert run(place.site, "power", "status", "n1").return_value == 0  # the trust has moved, too
    assert place.renew()[1]["nodes"][0]["changed"] is False  # nothing is due any more
    assert place.renew("--force")[1]["nodes"][0]["changed"] is True
    assert 'clusterctl_bmc_certificate_due{node="n1"} 0.0' in run(place.site, "metrics").stdout


def doctor_line(site: Path) -> tuple[str, str]:
    """Verdict and text of the certificates in `doctor`."""
    found = json.loads(run(site, "doctor", "--json").stdout)["checks"]
    (line,) = [check for check in found if check["name"] == "bmc_certificates"]
    return line["verdict"], line["found"]


def test_doctor_and_the_metrics_know_what_was_last_read(place: Place) -> None:
    """Never read, due, renewed; a retired node is not asked for any more."""
    assert doctor_line(place.site) == ("not_measured", "1 of 1 were not read for 8 days: n1")
    place.json("bmc", "certificates", "check")
    verdict, text = doctor_line(place.site)
    assert (verdict, text[:20]) == ("warn", "to be renewed: n1, t")
    assert place.renew()[0] == 0
    assert doctor_line(place.site)[0] == "ok"

    journal = open_site(place.site).journal
    journal.append([NewEvent(Stream.NODE, "id-n1", NodeRetired(reason="sold"))])
    journal.close()
    place.json("bmc", "certificates", "check")
    assert 'node="n1"' not in run(place.site, "metrics").stdout


def test_bmc_check_names_it_too(place: Place) -> None:
    """By a handshake alone; the services that are right do not hide it."""
    text = (place.site / "site.yml").read_text().replace(RULE, f"{RULE}\n  services: {{ntp: [10.0.0.1]}}")
    (place.site / "site.yml").write_text(text)
    assert run(place.site, "bmc", "apply", "n1", "--yes").return_value == 0
    code, found = place.json("bmc", "check")
    assert (code, found["nodes"][0]["error"]["message"][:12]) == (1, "certificate:")
    assert place.renew()[0] == 0
    assert place.json("bmc", "check")[0] == 0


class Killed(BaseException):
    """The process ends here."""


KILLS: list[tuple[str, int]] = [("request", 1), ("issue", 1), ("replace", 1), ("_appeared", 0), ("move_pin", 0)]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(("call", "again"), KILLS)
def test_killed_between_any_two_steps(
    place: Place, call: str, again: int, after: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next order finishes: one more key where the BMC does not present what was issued, none where it does."""
    from clusterctl.edges.certificate_authority import SiteAuthority
    from clusterctl.edges.redfish.client import RedfishBmcs, _RedfishClient

    owner = {
        "request": _RedfishClient, "replace": _RedfishClient, "issue": SiteAuthority, "_appeared": step._Renewal,
        "move_pin": RedfishBmcs,
    }[call]  # fmt: skip
    with monkeypatch.context() as patched:
        patched.setattr(owner, call, struck(getattr(owner, call), after=after))
        with pytest.raises(Killed):
            place.renew()
    keys = [path for path, _ in place.bmc.asked].count(GENERATE)
    taken = [path for path, _ in place.bmc.asked].count(REPLACE)
    code, _ = place.renew()
    assert code == 0
    more = [path for path, _ in place.bmc.asked].count(GENERATE) - keys
    assert more == (0 if taken else 1)
    assert place.acts() == [(Act.BMC_CERTIFICATE.value, "done")]
    assert issued_by(place.shown, place.authority.certificate)
    assert run(place.site, "power", "status", "n1").return_value == 0


def struck(function: Callable[..., Any], *, after: bool) -> Callable[..., Any]:
    def call(*words: Any, **more: Any) -> Any:
        if after:
            function(*words, **more)
        raise Killed

    return call


def test_a_lost_answer_is_no_failure(place: Place) -> None:
    """The web server restarts while it answers: the handshake decides."""
    place.bmc.drops = True
    assert place.renew()[0] == 0
    assert place.acts() == [(Act.BMC_CERTIFICATE.value, "done")]


def test_a_bmc_that_goes_on_as_before(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is still trusted by its former certificate; the outcome is unknown until it presents the new one."""
    monkeypatch.setattr(step, "APPEAR_S", 0.3)
    place.bmc.stubborn = True
    code, found = place.renew()
    assert (code, place.acts()) == (1, [(Act.BMC_CERTIFICATE.value, "unknown")])
    assert "restart the BMC" in found["nodes"][0]["error"]["remedy"]
    assert run(place.site, "power", "status", "n1").return_value == 0


def test_a_weak_key_is_not_signed(place: Place) -> None:
    """1024 bits: nothing is given to the BMC."""
    place.bmc.bits = 1024
    code, found = place.renew()
    assert code == 1
    assert "too weak (1024 bits)" in found["nodes"][0]["error"]["message"]
    assert [path for path, _ in place.bmc.asked] == [GENERATE]


def test_a_bmc_without_generatecsr_is_named(place: Place) -> None:
    """By check and by renew; nothing is intended."""
    del place.server.tree["/redfish/v1"]["CertificateService"]
    for words in (("check", "n1"), ("renew", "n1", "--yes")):
        code, found = place.json("bmc", "certificates", *words)
        assert code == 1
        assert "makes no certificate request" in found["nodes"][0]["error"]["message"]
    assert place.acts() == []


def test_a_refusal_is_recorded(place: Place) -> None:
    """After both forms of the request were refused."""
    place.bmc.refuses = 400
    assert place.renew()[0] == 1
    assert [path for path, _ in place.bmc.asked] == [GENERATE, GENERATE]
    assert place.acts() == [(Act.BMC_CERTIFICATE.value, "failed")]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("{file: secrets/ours.key}", "{file: secrets/bmc-password}", "is no private key"),
        ("ca: ours.pem", "ca: site.yml", "is no certificate"),
        ("ca: ours.pem", "ca: missing.pem", "cannot be read"),
        ("country: DE", "country: Germany", "two letters"),
        ("domain: bmc.example", "domain: bmc example", "must be a domain"),
        ("key: {file: secrets/ours.key}, ", "", "give key or signer"),
    ],
)
def test_a_wrong_rule_is_wrong_usage(place: Place, old: str, new: str, words: str) -> None:
    """Nothing is asked of a BMC."""
    text = (place.site / "site.yml").read_text()
    (place.site / "site.yml").write_text(text.replace(old, new))
    with pytest.raises(UsageError) as error:
        run(place.site, "bmc", "certificates", "renew", "n1", "--yes")
    assert words in str(error.value)
    assert place.bmc.asked == []


def test_an_authority_that_would_lock_the_site_out(place: Place) -> None:
    """`ca_file` must hold it before a BMC gets a certificate of it; a pin in the sheet cannot move."""
    text = (place.site / "site.yml").read_text()
    if "trusted.pem" in text:
        (place.site / "trusted.pem").write_text(Path(place.address.ca_file).read_text())
        expected = "bmc.ca_file does not hold ours.pem"
    else:
        fingerprint = ":".join(["ab"] * 32)
        (place.site / "bmcs.csv").write_text(
            f"name,bmc_address,serial,tls_fingerprint\nn1,127.0.0.1,EX00042,{fingerprint}\n"
        )
        expected = "the sheet pins the certificate"
    with pytest.raises(UsageError, match=expected):
        run(place.site, "bmc", "certificates", "renew", "n1", "--yes")


def test_a_program_signs_instead(place: Place, tmp_path: Path) -> None:
    """It gets the request on its standard input; what it signs for another key is not used."""
    signer = tmp_path / "sign"
    key = tmp_path / "ours.key"
    key.write_text(pem_of(place.authority.key))
    signer.write_text(
        "#!/bin/sh\nprintf 'subjectAltName=DNS:%s,IP:%s\\nbasicConstraints=critical,CA:FALSE\\n'"
        f' "$BMC_NAMES" "$BMC_ADDRESSES" > {tmp_path}/ext\n'
        f"exec openssl x509 -req -days 90 -CA {place.site}/ours.pem -CAkey {key} -extfile {tmp_path}/ext 2>/dev/null\n"
    )
    signer.chmod(0o755)
    text = (place.site / "site.yml").read_text()
    text = text.replace("key: {file: secrets/ours.key}", f"signer: [{signer}]").replace("domain:", "days: 90, domain:")
    (place.site / "site.yml").write_text(text)
    assert place.renew()[0] == 0
    signer.write_text(f"#!/bin/sh\ncat {place.site}/ours.pem\n")
    code, found = place.renew("--force")
    assert (code, "for another key" in found["nodes"][0]["error"]["message"]) == (1, True)
