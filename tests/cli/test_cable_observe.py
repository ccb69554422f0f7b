"""`clusterctl cable observe` and `cable counters`: readings of the fabric that are kept."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from clusterctl.fleet.errors import EdgeError, UsageError
from clusterctl.fleet.event import Stream
from clusterctl.fleet.fabric.history import link_name
from clusterctl.fleet.fabric.topology import Fabric
from clusterctl.operations.context import open_site
from clusterctl_cli.main import cli, run
from tests.cli import site_of_three
from tests.events import data_of
from tests.formats.infiniband import printers

FABRIC = printers.two_switches()
PLAN = """source_device,source_port,destination_device,destination_port
node001,mlx5_0,leaf-1,1
node002,mlx5_0,leaf-1,2
node003,mlx5_0,leaf-2,1
node004,mlx5_0,leaf-2,2
leaf-1,3,leaf-2,3
leaf-1,5,leaf-2,5
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """The fabric is cabled as the site's plan has it."""
    made = site_of_three.write(tmp_path)
    (made / "wiring.csv").write_text(PLAN)
    return made


def observe(site: Path, text: str) -> dict[str, object]:
    file = site.parent / "reading"
    file.write_text(text)
    args = ["cable", "observe", "--site", str(site), "--fabric", str(file), "--json"]
    result = CliRunner().invoke(cli, args, catch_exceptions=False)
    assert result.exit_code == 0
    return json.loads(result.stdout)


def test_only_changes(site):
    """The first look writes all, the second nothing, whichever tool it was read with; then a slower link, once."""
    first = observe(site, printers.ibnetdiscover(FABRIC))
    assert (first["devices"], first["links"], len(first["changes"])) == (6, 6, 12)
    assert observe(site, printers.iblinkinfo(FABRIC, line_mode=True))["changes"] == []
    slow = Fabric(FABRIC.devices, (replace(FABRIC.links[0], width=2), *FABRIC.links[1:]))
    (change,) = observe(site, printers.ibnetdiscover(slow))["changes"]
    assert (change["subject"], change["width"]) == (link_name(FABRIC.links[0]), 2)
    journal = open_site(site).journal
    widths = [data_of(event)["width"] for event in journal.history(Stream.FABRIC, link_name(FABRIC.links[0]))]
    assert widths == [4, 2]


def test_a_cable_between_switches_that_is_missing(site):
    """It is reported by nodes and report, no node's fault, until a reading finds it again."""
    cut = printers.ibnetdiscover(Fabric(FABRIC.devices, FABRIC.links[:-1]))
    answers = [change for change in observe(site, cut)["changes"] if change["event"] == "fabric.fault_seen"]
    assert [(change["fault"]["kind"], change["fault"]["nodes"]) for change in answers] == [("missing_link", [])]
    listed = site_of_three.run(site, "nodes").output
    assert "fabric: 1 thing to repair on 1 link, no node's fault" in listed
    reported = site_of_three.run(site, "report").output
    assert "## The fabric, by rack" in reported
    assert "**leaf-2 port 5: plug in the cable to leaf-1 port 5" in reported
    (fault,) = json.loads(site_of_three.run(site, "report", "--json").output)["fabric"]
    assert (fault["kind"], fault["subjects"]) == ("missing_link", ["leaf-1 port 5", "leaf-2 port 5"])
    (site.parent / "reading").write_text(printers.ibnetdiscover(FABRIC))
    output = site_of_three.run(site, "cable", "observe", "--fabric", str(site.parent / "reading")).output
    assert "not found any more: the planned link leaf-1 port 5 – leaf-2 port 5 is not up" in output
    assert "fabric" not in site_of_three.run(site, "nodes").output
    assert "fabric" not in site_of_three.run(site, "report").output


def test_keys_are_not_kept(site):
    """The evidence of a db_csv is the file without its M_Keys."""
    observe(site, printers.db_csv(FABRIC))
    journal = open_site(site).journal
    (event, *_) = journal.history(Stream.FABRIC, link_name(FABRIC.links[0]))
    kept = journal.evidence(event.evidence[0]).content.decode()
    assert "5ec4e7" not in kept
    assert kept.count("\n") == printers.db_csv(FABRIC).count("\n")
    assert f"0x{FABRIC.links[0].a.guid}" in kept


def test_no_fabric_changes_nothing(site, tmp_path):
    """What is not understood is refused, and the journal stays as it was."""
    file = tmp_path / "empty"
    file.write_text("")
    result = CliRunner().invoke(cli, ["cable", "observe", "--site", str(site), "--fabric", str(file)])
    assert isinstance(result.exception, UsageError)
    assert list(open_site(site).journal.latest(Stream.FABRIC)) == []


@pytest.mark.parametrize(("status", "worked"), [(0, True), (1, True), (2, False)])
def test_counters(tmp_path, status, worked):
    """The time and the text of ibqueryerrors, which ends with 1 where counters are not zero."""
    text = printers.ibqueryerrors(FABRIC, {})
    (tmp_path / "text").write_text(text)
    command = f"/bin/sh -c 'cat {tmp_path}/text; exit {status}'"
    result = CliRunner().invoke(cli, ["cable", "counters", "--command", command])
    if worked:
        time, _, rest = result.stdout.partition("\n")
        assert (time[:2], rest) == ("# ", text)
    else:
        assert isinstance(result.exception, EdgeError)


def test_counters_without_a_summary():
    """Without a subnet manager ibqueryerrors ends with 0 and read nothing: an error."""
    result = CliRunner().invoke(cli, ["cable", "counters", "--command", "/bin/echo # nothing"])
    assert isinstance(result.exception, EdgeError)
    assert "no summary" in result.exception.message


NO_PORT = """\
ibwarn: [4663] get_abi_version: can't read ABI version from /sys/class/infiniband_mad/abi_version (No such file or \
directory): is ib_umad module loaded?
ibwarn: [4663] mad_rpc_open_port: can't open UMAD port ((null):0)
./libibnetdisc/ibnetdisc.c:802; can't open MAD port ((null):0)
"""
"""What ibnetdiscover of infiniband-diags prints on a machine without an InfiniBand adapter; it exits with 255."""
DENIED = """\
ibwarn: [55250] sa_get_handle: umad_open_port on port (null):0 failed
ibpanic: [55250] main: Failed to bind to the SA: Permission denied
"""
DROPPED = "src/query_smp.c:197; umad (DR path slid 0; dlid 0; 0,1,2 Attr 0x11:0) bad status 110; Connection timed out"


@pytest.mark.parametrize(
    ("program", "code"),
    [
        ("", 3),
        (f"cat >&2 <<'END'\n{NO_PORT}END\nexit 255", 3),
        (f"cat >&2 <<'END'\n{DENIED}END\nexit 1", 3),
        (f"echo '{DROPPED}' >&2; exit 1", 1),
    ],
    ids=["no program", "no adapter", "no permission", "a device that does not answer"],
)
def test_a_machine_that_cannot_read_the_fabric(site: Path, program: str, code: int) -> None:
    """Exit code 3 where the environment is broken, 1 where the fabric is; the journal stays as it was."""
    tool = site.parent / "tool"
    if program:
        tool.write_text(f"#!/bin/sh\n{program}\n")
        tool.chmod(0o755)
    settings = site / "site.yml"
    settings.write_text(settings.read_text().replace("ibnetdiscover: [ibnetdiscover]", f"ibnetdiscover: [{tool}]"))
    assert run(["cable", "observe", "--site", str(site)]) == code
    assert list(open_site(site).journal.latest(Stream.FABRIC)) == []
