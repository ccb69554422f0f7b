"""`clusterctl cable disable` and `cable enable` as an operator types them, the tools being small scripts."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from clusterctl.fleet.acts import Act
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.event import Stream
from clusterctl.fleet.fabric.port_acts import DisabledPort, disabled_ports, intended
from clusterctl.fleet.fabric.topology import Fabric
from clusterctl.operations.context import open_site
from clusterctl_burnin.package_data import text_of
from clusterctl_cli.commands.cable_disable import disable
from clusterctl_cli.commands.cable_enable import enable
from tests.cli import site_of_three
from tests.formats.infiniband import printers

FABRIC = printers.two_switches()
UPLINK, RAIL = FABRIC.links[-1], FABRIC.links[0]
PLAN = """source_device,source_port,destination_device,destination_port
node001,mlx5_0,leaf-1,1
leaf-1,3,leaf-2,3
leaf-1,5,leaf-2,5
"""
IBPORTSTATE = """#!/bin/sh
case $4 in disable) touch {0}/out;; enable) rm -f {0}/out;; esac
if test -e {0}/out; then physical=Disabled; else physical=LinkUp; fi
printf 'Switch PortInfo:\\n# Port info: Lid %s port %s\\nLinkState:..Active\\nPhysLinkState:..%s\\n' "$2" "$3" "$physical"
"""
IBNETDISCOVER = "#!/bin/sh\nif test -e {0}/out; then cat {0}/cut; else cat {0}/fabric; fi\n"
COUNTERS = "#!/bin/sh\nif test -e {0}/ill; then cat {0}/ill; else cat {0}/quiet; fi\nif test -e {0}/next; then mv {0}/next {0}/ill; fi\n"
SMPQUERY = "#!/bin/sh\nprintf 'Guid:...........0x%s\\n' $(printf '%016x' $((160 + $2)))\n"


def finding(*ends: tuple[str, str]) -> dict[str, object]:
    ports = [{"device": device, "port": port} for device, port in ends]
    return {"kind": "bit_errors", "verdict": "fail", "cause": "90 errors", "action": "clean it", "ports": ports}


@pytest.fixture
def site(tmp_path: Path) -> Path:
    made = site_of_three.write(tmp_path)
    scripts = {
        "ibqueryerrors": COUNTERS,
        "ibportstate": IBPORTSTATE,
        "ibnetdiscover": IBNETDISCOVER,
        "smpquery": SMPQUERY,
    }
    for name, text in scripts.items():
        (tmp_path / name).write_text(text.format(tmp_path) if "{0}" in text else text)
        (tmp_path / name).chmod(0o755)
    (tmp_path / "fabric").write_text(printers.ibnetdiscover(FABRIC))
    (tmp_path / "cut").write_text(printers.ibnetdiscover(Fabric(FABRIC.devices, FABRIC.links[:-1])))
    (tmp_path / "quiet").write_text(printers.ibqueryerrors(FABRIC, {}))
    limits = yaml.safe_load(text_of("limits/fabric/ndr.yml"))
    for level in ("max", "goal"):
        limits["limits"][f"symbol_ber_{level}"]["value"] = 1e-10
    (tmp_path / "quick.yml").write_text(yaml.safe_dump(limits))
    settings = yaml.safe_load((made / "site.yml").read_text())
    settings["fabric"] |= {name: [str(tmp_path / name)] for name in scripts} | {"sminfo": []}
    (made / "site.yml").write_text(yaml.safe_dump(settings))
    ends = (("leaf-1", "5"), ("leaf-2", "5"))
    rail = (("node001", "mlx5_0"), ("leaf-1", "1"))
    texts = {
        "findings": {"links": 100, "bad": 2, "findings": [finding(*ends), finding(*rail)]},
        "broken": {"links": 100, "bad": 11, "findings": [finding(*ends)]},
    }
    for name, document in texts.items():
        (tmp_path / name).write_text(json.dumps(document))
    return made


def run(site: Path, *words: str):
    args = ["--fabric", str(site.parent / "fabric"), "--reason", "bit errors", "--site", str(site), *words]
    return CliRunner().invoke(disable, args, standalone_mode=False)


def test_a_dry_run_changes_nothing(site):
    """It previews what it would do, and names the host whose rail it would not touch."""
    result = run(site, "--from", str(site.parent / "findings"), "--dry-run")
    assert result.return_value == 1, result.exception
    assert re.search(r"leaf-\d port 5: disable in rack", result.output)
    assert "clusterctl quarantine node001" in result.output
    assert not (site.parent / "out").exists()


def test_disabled(site):
    """The port is out, with the repair request; once more, it has nothing to do; a dry run of enable names it."""
    result = run(site, "--port", "leaf-1:5", "--yes")
    assert result.return_value == 0, result.exception
    assert "repair: check the cable" in result.output
    assert (site.parent / "out").exists()
    assert "0 disabled" in run(site, "--port", "leaf-1:5", "--yes").output
    listed = CliRunner().invoke(enable, ["--site", str(site), "--dry-run"], standalone_mode=False)
    assert listed.return_value == 0
    assert re.search(r"leaf-\d port 5: enable and prove; it was disabled for: bit errors", listed.output)


@pytest.mark.parametrize("acted", [False, True])
def test_after_a_kill(site, acted):
    """A run that was killed after its intent is finished by the next, whether or not it had come to act."""
    journal = open_site(site).journal
    journal.append(
        [intended(Act.PORT_DISABLE, DisabledPort(UPLINK.a, UPLINK.b, "leaf-1 port 5", "bit errors", sure=False))]
    )
    if acted:
        (site.parent / "out").touch()
    result = run(site, "--port", "leaf-1:5" if not acted else "leaf-1:3", "--yes")
    assert "as a run that was stopped had begun: leaf-1 port 5" in result.output
    assert (site.parent / "out").exists()
    assert [out.sure for out in disabled_ports(journal.latest(Stream.FABRIC))] == [True]
    journal.close()


def test_too_much_is_broken(site):
    """Above 10 % nothing is touched: the cause is elsewhere."""
    result = run(site, "--from", str(site.parent / "broken"), "--yes")
    assert isinstance(result.exception, UsageError)
    assert "11.0 %" in str(result.exception)
    assert not (site.parent / "out").exists()


def test_a_port_without_a_link(site):
    """It is refused by name."""
    result = run(site, "--port", "leaf-1:6", "--yes")
    assert isinstance(result.exception, UsageError)
    assert "leaf-1:6" in str(result.exception)


def test_enabled_once_proven(site):
    """Counters that stay quiet over the interval prove the link: it is in use, and not out any more."""
    run(site, "--port", "leaf-1:5", "--yes")
    args = ["--site", str(site), "--limits", str(site.parent / "quick.yml")]
    result = CliRunner().invoke(enable, [*args, "--yes"], standalone_mode=False)
    assert result.return_value == 0, result.exception
    assert re.search(r"leaf-\d port 5: in use: BER below 1e-10", result.output)
    assert not (site.parent / "out").exists()
    assert CliRunner().invoke(enable, args, standalone_mode=False).output == "no port is disabled\n"


@pytest.mark.parametrize("known", [True, False])
def test_slower_than_before(site, known):
    """A link that comes back at half its rate is disabled again at once, and that is reported; where a journal lacks
    the rate from before, the rate of most similar links counts.
    """
    if known:
        run(site, "--port", "leaf-1:5", "--yes")
    else:
        journal = open_site(site).journal
        journal.append(
            [intended(Act.PORT_DISABLE, DisabledPort(UPLINK.a, UPLINK.b, "leaf-1 port 5", "bit errors", sure=False))]
        )
        journal.close()
        (site.parent / "out").touch()
        (site / "wiring.csv").write_text(PLAN)
    slow = Fabric(FABRIC.devices, (*FABRIC.links[:-1], replace(UPLINK, speed="HDR")))
    (site.parent / "fabric").write_text(printers.ibnetdiscover(slow))
    args = ["--site", str(site), "--limits", str(site.parent / "quick.yml"), "--yes"]
    result = CliRunner().invoke(enable, args, standalone_mode=False)
    assert result.return_value == 1, result.exception
    words = "it came back at 4xHDR .200 Gb/s., and had 400 Gb/s before" if known else "4xHDR .200 Gb/s. instead of 400"
    assert re.search(f"leaf-1 port 5: disabled again: .*{words}", result.output)
    assert (site.parent / "out").exists()


def test_disabled_again(site):
    """Errors that come while the link is watched disable it again, with the reason."""
    run(site, "--port", "leaf-1:5", "--yes")
    (site.parent / "next").write_text(printers.ibqueryerrors(FABRIC, {UPLINK.a: {"SymbolErrorCounter": 90000}}))
    args = ["--site", str(site), "--limits", str(site.parent / "quick.yml"), "--yes"]
    result = CliRunner().invoke(enable, args, standalone_mode=False)
    assert result.return_value == 1
    assert re.search(r"leaf-\d port 5: disabled again: .*90000 symbol errors", result.output)
    assert (site.parent / "out").exists()
