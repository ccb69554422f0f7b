"""`clusterctl discover --sweep`, as an operator runs it."""

from __future__ import annotations

import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from clusterctl.edges.site import load_site
from tests.cli.conftest import log_levels
from tests.edges.sweep.kit import PASSWORD, Bmc, Handler, Network, network
from tests.edges.sweep.shapes import ROOT, SHAPES, dell, hpe, supermicro
from tests.edges.sweep.site import invoke, sweep, write
from tests.faulty import hang

__all__ = ["log_levels"]

A, B, C, D = (f"127.77.0.{last}" for last in (1, 2, 3, 4))
HEADINGS = "name,bmc_address,serial,rack,unit\n"


def mac(last: int) -> str:
    return f"02:00:00:00:00:{last:02x}"


@pytest.fixture
def net(tmp_path: Path) -> Iterator[Network]:
    """One BMC of each vendor, at four addresses of a /29."""
    trees = {
        host: shape(host, f"SER{at}", mac(at))
        for at, (host, shape) in enumerate(zip((A, B, C, D), SHAPES.values(), strict=True), 1)
    }
    with network(tmp_path, trees) as made:
        yield made


def test_all_of_a_network(net: Network, tmp_path: Path) -> None:
    """Every BMC is identified, no other address is listed, and every session is closed."""
    site = write(tmp_path, net, None)
    code, document = sweep(site)
    assert code == 0
    assert [bmc["serial"] for bmc in document["bmcs"]] == ["SER1", "SER2", "SER3", "SER4"]
    assert [bmc["vendor"] for bmc in document["bmcs"]][:3] == ["Dell", "Supermicro", "HPE"]
    assert [bmc["bmc_mac"] for bmc in document["bmcs"]] == [mac(at) for at in range(1, 5)]
    assert (document["asked"], document["ports"]["open"], document["ports"]["closed"]) == (6, 4, 2)
    assert all(bmc["requests"] <= 8 for bmc in document["bmcs"])
    assert not any(bmc.sessions for bmc in net.bmcs.values())


def test_a_sheet_from_nothing(net: Network, tmp_path: Path) -> None:
    """`--write` begins the sheet, places from a MAC sheet; the site then reads it, and a second sweep changes nothing."""
    site = write(tmp_path, net, None)
    places = tmp_path / "macs.csv"
    places.write_text("MAC,Rack,U\n" + "".join(f"{mac(at).upper()},A01,{4 * at}\n" for at in range(1, 5)))
    words = ("--write", str(site / "bmcs.csv"), "--list", str(places))
    code, document = sweep(site, *words)
    assert code == 0
    assert len(document["written"]["changes"]) == 4
    nodes = load_site(site).nodes
    assert [(node.name, node.bmc, node.serial, node.rack, node.unit, node.bmc_mac) for node in nodes][1] == (
        "node002",
        B,
        "SER2",
        "A01",
        8,
        mac(2),
    )
    before = (site / "bmcs.csv").stat()
    assert sweep(site, *words)[1]["written"]["changes"] == []
    assert (site / "bmcs.csv").stat().st_ino == before.st_ino
    assert PASSWORD not in (site / "bmcs.csv").read_text()


def test_a_sheet_is_brought_up_to_date(net: Network, tmp_path: Path) -> None:
    """A machine whose address changed is found by its serial; an operator's columns, order and passwords stay."""
    sheet = (
        "Hostname,Service Tag,iDRAC_IP,Owner,bmc_password,rack,unit\n"
        f"gamma,ser3,127.77.0.6,hpc,{PASSWORD},B01,1\nalpha,SER1,{A},ops,,B01,3\n"
    )
    site = write(tmp_path, net, sheet)
    (site / "bmcs.csv").chmod(0o600)
    code, document = sweep(site, "--write", str(site / "bmcs.csv"))
    assert (code, document["conflicts"]) == (0, []), "what is written no longer lacks"
    lines = (site / "bmcs.csv").read_text().splitlines()
    assert lines[0] == "Hostname,Service Tag,iDRAC_IP,Owner,bmc_password,rack,unit,bmc_mac"
    assert lines[1] == f"gamma,ser3,{C},hpc,{PASSWORD},B01,1,{mac(3)}"
    assert lines[2] == f"alpha,SER1,{A},ops,,B01,3,{mac(1)}"
    assert lines[3] == f"node001,SER2,{B},,,,,{mac(2)}"
    assert stat.S_IMODE((site / "bmcs.csv").stat().st_mode) == 0o600
    assert PASSWORD not in str(document)


def test_what_does_not_fit_is_named(tmp_path: Path) -> None:
    """Two addresses with one serial, another machine in a place, one that is missing: none of them is written."""
    trees = {A: hpe(A, "SAME", mac(1)), B: hpe(B, "SAME", mac(2)), C: hpe(C, "STRANGER", mac(3)), D: {ROOT: {}}}
    with network(tmp_path, trees) as net:
        sheet = f"{HEADINGS}n3,{C},SER3,A01,4\nn4,{D},SER4,A01,8\nn5,127.77.0.5,SER5,A01,12\nfar,10.0.0.9,SER9,A02,4\n"
        site = write(tmp_path, net, sheet)
        code, document = sweep(site, "--write", str(site / "bmcs.csv"))
    assert code == 1
    found = {conflict["kind"]: conflict for conflict in document["conflicts"]}
    assert set(found) == {"two_addresses", "other_machine", "no_redfish", "not_found", "unplanned"}
    assert "n5" in found["not_found"]["subjects"]
    assert "far" not in str(document["conflicts"])
    assert (site / "bmcs.csv").read_text() == sheet
    assert all(conflict["cause"] and conflict["remedy"] for conflict in document["conflicts"])


def test_factory_passwords_by_mac_before_anybody_logs_in(tmp_path: Path) -> None:
    """Each machine's own password is found by the MAC that DHCP saw at its address; one login each, none rejected."""
    with network(tmp_path, {A: supermicro(A, "S1", mac(1)), B: supermicro(B, "S2", mac(2))}) as net:
        for at, bmc in enumerate(net.bmcs.values(), 1):
            bmc.password = f"Unique-{at}-factory"
        site = write(tmp_path, net, None, bmc="  factory: secrets/factory.csv\n")
        factory = site / "secrets" / "factory.csv"
        (site / "secrets" / "second").write_text("Unique-2-factory\n")
        (site / "secrets" / "second").chmod(0o600)
        factory.write_text(
            "Serial Number,MAC Address,User,Password,Password Ref,Rack,U\n"
            f"S1,{mac(1)},root,Unique-1-factory,,A01,4\nS2,{mac(2).replace(':', '')},root,,file:secrets/second,A01,8\n"
        )
        factory.chmod(0o600)
        leases = tmp_path / "dnsmasq.leases"
        leases.write_text(f"1700000000 {mac(1)} {A} * *\n1700000000 {mac(2)} {B} bmc2 *\n")
        code, document = sweep(site, "--leases", str(leases), "--write", str(site / "bmcs.csv"))
        assert code == 0, document
        assert {bmc["login"] for bmc in document["bmcs"]} == {"bmc.factory"}
        assert [bmc.logins for bmc in net.bmcs.values()] == [1, 1]
        assert [(bmc["rack"], bmc["unit"]) for bmc in document["bmcs"]] == [("A01", 4), ("A01", 8)]
        assert load_site(site).bmc_address("node002").password == "Unique-2-factory"
    assert "Unique" not in (site / "bmcs.csv").read_text() + str(document)


def test_logins_by_vendor(tmp_path: Path) -> None:
    """The vendor that a BMC shows without a login chooses the login; the sheet keeps its name for the steps."""
    with network(tmp_path, {A: dell(A, "D1", mac(1)), B: supermicro(B, "S2", mac(2))}) as net:
        net.bmcs[B].password = "Another-password"
        extra = "  logins: [{name: smc, vendor: supermicro, user: root, password: {file: secrets/smc}}]\n"
        site = write(tmp_path, net, None, bmc=extra)
        (site / "secrets" / "smc").write_text("Another-password")
        (site / "secrets" / "smc").chmod(0o600)
        code, document = sweep(site, "--write", str(site / "bmcs.csv"))
        assert code == 0, document
        assert [bmc["login"] for bmc in document["bmcs"]] == ["bmc.password", "smc"]
        loaded = load_site(site)
        assert [loaded.bmc_address(node.name).password for node in loaded.nodes] == [PASSWORD, "Another-password"]


def test_without_a_site_there_is_no_login(net: Network, tmp_path: Path) -> None:
    """`--no-login` needs no site: the first look at a rack, with what BMCs show without a login. Nothing is sent."""
    words = ("--sweep", "127.77.0.0/29", "--no-login", "--dry-run", "--site", str(tmp_path / "none"))
    result, code = invoke("discover", *words)
    assert (code, result.stdout) == (0, "ask 6 addresses on port 443, no login\n\nNothing was changed.\n")
    site = write(tmp_path, net, None)
    code, document = sweep(site, "--no-login")
    assert code == 0
    assert {bmc["outcome"] for bmc in document["bmcs"]} == {"no_login"}
    assert not any(bmc.posted for bmc in net.bmcs.values())


def test_the_table(net: Network, tmp_path: Path) -> None:
    """A line for each BMC, what does not fit with its remedy, and the counts; wrong credentials are reported once each."""
    net.bmcs[A].password = "changed by an operator"
    site = write(tmp_path, net, f"{HEADINGS}n9,127.77.0.6,SER9,A01,4\n")
    result, code = invoke("discover", "--sweep", "127.77.0.0/29", "--site", str(site))
    assert code == 1
    assert "6 addresses asked, 4 answer: 3 identified, 1 login rejected" in result.stdout
    assert f"{A}: login rejected" in result.stdout
    assert "not found: n9" in result.stdout
    assert net.bmcs[A].logins == 1
    assert PASSWORD not in result.output


@pytest.mark.parametrize(
    ("words", "where", "what"),
    [
        (["--sweep", "10.0.0.0/33"], "--sweep", "10.0.0.0/33"),
        (["--sweep", "10.0.0.1/24"], "--sweep", "host bits"),
        (["--sweep", "ten"], "--sweep", "ten"),
        (["--sweep", "10.0.0.0/15"], "--sweep", "131,072"),
        (["--sweep", "fd00::/64"], "--sweep", "more than"),
        (["--sweep", "8.8.8.0/24"], "--sweep", "Internet"),
        (["--sweep", "10.0.0.0/8", "--limit-hosts", "100"], "--sweep", "more than 100"),
        (["--sweep", "224.0.0.0/24", "--yes"], "--sweep", "machines"),
        (["--sweep", "10.0.0.0/24", "--exclude", "10.0.0.0/16"], "--exclude", "nothing"),
        (["--sweep", "10.0.0.0/24", "--exclude", "unknown"], "--exclude", "unknown"),
        (["--sweep", "10.0.0.0/24", "--limit", "n1"], "--limit", "nodes"),
        (["--sweep", "10.0.0.0/24", "--no-login", "--write", "x.csv"], "--write", "login"),
        (["--exclude", "10.0.0.0/24"], "--exclude", "--sweep"),
        (["10.0.0.0/24"], "CIDR", "--sweep"),
        (["--no-login"], "--no-login", "--sweep"),
    ],
)
def test_wrong_words(net: Network, tmp_path: Path, words: list[str], where: str, what: str) -> None:
    """Exit code 2, what is wrong and what to do, before a single packet is sent."""
    site = write(tmp_path, net, None)
    result, code = invoke("discover", *words, "--site", str(site))
    assert code == 2
    assert f"error: {where}" in result.stderr
    assert what in result.stderr
    assert "→" in result.stderr
    assert not any(bmc.asked for bmc in net.bmcs.values())


def test_a_list_with_passwords_is_refused(net: Network, tmp_path: Path) -> None:
    """Secrets are named in site.yml only; the list's one is not repeated."""
    site = write(tmp_path, net, None)
    file = tmp_path / "vendor.csv"
    file.write_text("serial,password\nS1,hunter2-hunter2\n")
    result, code = invoke("discover", "--sweep", "127.77.0.0/29", "--site", str(site), "--list", str(file))
    assert code == 2
    assert "bmc.factory" in result.stderr
    assert "hunter2" not in result.output


def test_dry_run_sends_nothing(net: Network, tmp_path: Path) -> None:
    """It prints how many addresses, and whether it logs in anywhere."""
    site = write(tmp_path, net, None)
    result, code = invoke("discover", "--sweep", "127.77.0.0/29", "--site", str(site), "--dry-run")
    assert (code, "6 addresses" in result.stdout) == (0, True)
    assert not any(bmc.asked for bmc in net.bmcs.values())


def _is_over(bmc: Bmc) -> bool:
    """Return whether its session was opened and closed."""
    return any(command == "DELETE" for command, _ in bmc.asked) and not bmc.sessions


def test_ctrl_c(net: Network, tmp_path: Path) -> None:
    """In the middle of a BMC that hangs: exit code 130, every session closed, no sheet written. It arrives also where
    these tests run in the background of a shell, which ignores it.
    """
    reached = threading.Event()

    def stuck(handler: Handler) -> None:
        reached.set()
        hang(handler)

    net.bmcs[C].faults = {("GET", f"{ROOT}/Systems/1"): [stuck]}
    site = write(tmp_path, net, None)
    words = ["discover", "--sweep", "127.77.0.0/29", "--site", str(site), "--write", str(site / "bmcs.csv")]
    argv = ["env", "--default-signal=INT", sys.executable, "-m", "clusterctl_cli.main", *words]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert reached.wait(600)
        process.send_signal(signal.SIGINT)
        out, reported = process.communicate(timeout=600)
    assert process.returncode == 130, reported
    assert "Traceback" not in reported
    assert not any(bmc.sessions for bmc in net.bmcs.values())
    assert not (site / "bmcs.csv").exists()
    assert out == ""
