"""What the site trusts without proof must be written explicitly in the site file, and is reported each time."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from clusterctl.edges.disk import write_once
from clusterctl.edges.redaction import KNOWN
from clusterctl.edges.site import load_site
from clusterctl.edges.site.roles import write_site
from clusterctl.fleet.diagnosis import Health
from clusterctl.fleet.errors import ClusterctlError, EnvironmentBrokenError, UsageError
from clusterctl.operations.context import open_site
from clusterctl.operations.site_facts import known_bmcs
from clusterctl.operations.trust import diagnosis, notices
from clusterctl_cli.main import cli
from tests.edges.site.ready import lean

PIN = "AB:" * 31 + "AB"
SHEET = f"name,bmc_address,tls_fingerprint\nn1,10.0.0.1,\nn2,10.0.0.2,{PIN}\nn3,10.0.0.3,\n"
HTTPS, CA = "url: https://maas.example:5443/MAAS", "  ca_file: bmc-ca.pem"
KEY = "  ca_file: maas-ca.pem"
PLAIN_MAAS = [(HTTPS, "url: http://maas.example:5240/MAAS\n  allow_plain_http: true"), (KEY, "")]
PLAIN_BMC = [(CA, "  scheme: http\n  allow_plain_http: true\n#")]
FIRST_USE = [(CA, "  first_use: pin\n#")]
Changes = list[tuple[str, str]]


def site(folder: Path, *changes: tuple[str, str]) -> Path:
    """Three machines, n2's certificate pinned."""
    write_site(folder)
    (folder / "bmcs.csv").write_text(SHEET)
    for name, text in {"bmc": "the-password-of-test", "maas-api-key": "aaaa:bbbb:cccc"}.items():
        (folder / "secrets" / name).touch(0o600)
        (folder / "secrets" / name).write_text(text)
    from tests.edges.ansible.support import key_pair

    (folder / "secrets/ssh_ed25519").touch(0o600)
    (folder / "secrets/ssh_ed25519").write_text(key_pair()[0])
    for name in ("bmc-ca.pem", "maas-ca.pem"):
        from tests.secrets.kit import Certified

        (folder / name).write_bytes(Certified.make(folder / "secrets", name).pem.read_bytes())
    text = lean((folder / "site.yml").read_text())
    for old, new in (("{env: CLUSTERCTL_BMC_PASSWORD}", "{file: secrets/bmc}"), *changes):
        assert old in text
        text = text.replace(old, new)
    (folder / "site.yml").write_text(text)
    return folder


def run(folder: Path, *words: str) -> Result:
    return CliRunner().invoke(cli, [*words, "--site", str(folder)], catch_exceptions=False)


def test_a_site_that_proves_all_has_no_notice(tmp_path: Path) -> None:
    """As `init` writes it."""
    loaded = load_site(site(tmp_path / "s"))
    assert notices(loaded) == ()
    assert diagnosis(loaded).health is Health.OK


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (PLAIN_MAAS, ["MAAS is reached over plain HTTP", "http://maas.example:5240/MAAS"]),
        (PLAIN_BMC, ["3 BMCs are reached over plain HTTP", "passwords"]),
        (FIRST_USE, ["2 BMCs are not known yet (n1 …)", "believed and pinned"]),
    ],
)
def test_run_plan_report_and_doctor_have_the_notice(tmp_path: Path, changes: Changes, words: list[str]) -> None:
    """On stderr, and in what is kept: the plan's JSON, the report and its JSON."""
    folder = site(tmp_path / "s", *changes)
    open_site(folder).journal.close()
    output = {
        "run": run(folder, "bootstrap", "--dry-run").stderr,
        "plan": run(folder, "plan").stderr,
        "plan's JSON": json.loads(run(folder, "plan", "--json").stdout)["warnings"][0],
        "doctor": diagnosis(load_site(folder)).found,
        "report": run(folder, "report").stdout,
        "report's JSON": json.loads(run(folder, "report", "--json").stdout)["warnings"][0],
    }
    assert not [(place, word) for place, text in output.items() for word in words if word not in text]


@pytest.mark.parametrize(
    ("url", "proven"),
    [
        ("sqlite:///state/journal.db", True),
        ("postgresql+psycopg://u@/d?host=/run/postgresql", True),
        ("postgresql+psycopg://u@127.0.0.1/d", True),
        ("postgresql+psycopg://u@db.example/d?sslmode=verify-full&sslrootcert=ca.pem", True),
        ("postgresql+psycopg://u@db.example/d?sslmode=require", False),
        ("postgresql+psycopg://u@192.0.2.7/d", False),
    ],
)
def test_a_database_elsewhere_must_prove_itself(tmp_path: Path, url: str, proven: bool) -> None:
    """The database's library encrypts where it can and verifies nothing by default: reported as the rest is."""
    folder = site(tmp_path / "s")
    with (folder / "site.yml").open("a") as stream:
        stream.write(f"\njournal: {url}\n")
    assert bool(notices(load_site(folder))) is not proven


def test_a_bmc_that_is_pinned_needs_no_belief(tmp_path: Path) -> None:
    """By the sheet or by an earlier first use."""
    loaded = load_site(site(tmp_path / "s", *FIRST_USE))
    for host in ("10.0.0.1", "10.0.0.3"):
        write_once(known_bmcs(loaded).file(host), PIN.encode())
    assert notices(loaded) == ()
    assert loaded.bmc_address("n2").fingerprint == "ab" * 32


def test_each_bmc_gets_the_trust_of_the_site(tmp_path: Path) -> None:
    """Authority, pin, scheme and port go to the edge as they were written."""
    strict = load_site(site(tmp_path / "a"))
    assert strict.bmc_address("n1").ca_file == str(tmp_path / "a/bmc-ca.pem")
    assert (strict.bmc_address("n1").port, strict.bmc_address("n1").plain_http) == (443, False)
    plain = load_site(site(tmp_path / "b", *PLAIN_BMC)).bmc_address("n1")
    assert (plain.port, plain.plain_http) == (80, True)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ([(CA, "  scheme: http")], "allow_plain_http"),
        ([(CA, "  first_use: pin\n  ca_file: bmc-ca.pem")], "not both"),
        ([(CA, "  first_use: always")], "first_use"),
        ([(CA, "  verify: false")], r"verify.*no such field"),
        ([(HTTPS, "url: http://maas.example:5240/MAAS")], "plain http"),
        ([(KEY, f"  ca_file: maas-ca.pem\n  tls_fingerprint: '{PIN}'")], "not both"),
        ([(KEY, "  tls_fingerprint: 'AB:CD'")], "SHA-256"),
    ],
)
def test_settings_that_a_site_may_not_have(tmp_path: Path, changes: Changes, message: str) -> None:
    """Contradictions and incomplete settings are the operator's errors, named with file, line and field."""
    with pytest.raises(UsageError, match=message) as caught:
        load_site(site(tmp_path / "s", *changes))
    assert "site.yml:" in caught.value.where


def test_a_wrong_pin_in_the_sheet(tmp_path: Path) -> None:
    """Names line and column, and how to print the right one."""
    folder = site(tmp_path / "s")
    (folder / "bmcs.csv").write_text(SHEET.replace(PIN, "12:34"))
    with pytest.raises(UsageError, match=r"bmcs\.csv:3 tls_fingerprint: .*64 hexadecimal digits") as caught:
        load_site(folder)
    assert "openssl x509" in caught.value.remedy


def test_a_journals_password_is_not_repeated(tmp_path: Path) -> None:
    """A database that does not answer is named without the password that its URL holds, which the log now knows."""
    password = "s%2Fcret-of-database"
    folder = site(tmp_path / "s")
    (folder / "secrets/journal").touch(0o600)
    (folder / "secrets/journal").write_text(f"postgresql+psycopg://u:{password}@127.0.0.1:9/d?connect_timeout=2")
    with (folder / "site.yml").open("a") as stream:
        stream.write("\njournal: {file: secrets/journal}\n")
    with pytest.raises(ClusterctlError) as caught:
        open_site(folder)
    assert isinstance(caught.value, EnvironmentBrokenError)
    reported = f"{caught.value} {caught.value!r} {caught.value.__cause__}"
    assert "127.0.0.1" in reported
    assert "cret-of-database" not in reported
    assert KNOWN("s/cret-of-database") == "(secret)"


def test_the_fabrics_tools_inherit_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What reads the fabric gets a path and a home, not the variables that may hold the site's secrets."""
    from clusterctl.edges.infiniband import IbnetdiscoverReader
    from clusterctl.fleet.finding import Origin
    from clusterctl.ports import Deadline
    from tests.secrets.kit import UtcClock

    monkeypatch.setenv("CLUSTERCTL_BMC_PASSWORD", "secret-of-the-environment")
    reader = IbnetdiscoverReader(UtcClock(), Origin.SIMULATED, command=("env",))
    reported = reader.ibnetdiscover(Deadline.after(60)).value
    assert f"PATH={os.environ['PATH']}" in reported
    assert "secret-of-the-environment" not in reported
