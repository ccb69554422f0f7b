"""The role node_check on a lab host: the file comes from a web server, is run there, and a second run changes nothing."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import IPv4Network
from pathlib import Path

import pytest

from clusterctl.edges.clock import CLOCK
from clusterctl.edges.ssh.shell import ParamikoShell
from clusterctl.fleet.finding import Origin
from clusterctl.ports import Deadline, PlayOutcome
from clusterctl_burnin.host_requirements import HostRequirements
from clusterctl_burnin.kernel_log.known_lines import KnownLines
from clusterctl_burnin.node_check.build import build
from clusterctl_burnin.node_check.program import UNMEASURED, Content, NodeFacts, SkuFacts
from clusterctl_burnin.registry import CHECKS
from clusterctl_lab.layout import Layout
from tests.burnin.test_node_file import LEFT_OUT
from tests.edges.ansible.rehearsal import Rehearsal, rehearsal
from tests.edges.ansible.support import playbooks
from tests.fleet.skus import H100_X8
from tests.lab_data import lab_limits

pytestmark = [pytest.mark.lab, pytest.mark.soak, pytest.mark.timeout(3600)]
RUN_S = 2400.0
PROGRAM = "/usr/local/sbin/clusterctl-node"
CHECKED = tuple(name for name, check in CHECKS.items() if not check.idle_only and name not in LEFT_OUT)


@pytest.fixture(scope="module")
def lab() -> Iterator[Rehearsal]:
    if os.geteuid() != 0:
        pytest.skip("lab hosts need root")
    if shutil.which("mmdebstrap") is None or shutil.which("apt-ftparchive") is None:
        pytest.skip("mmdebstrap or apt-utils is not installed")
    with (
        tempfile.TemporaryDirectory(prefix="nc", dir="/var/tmp") as state,
        rehearsal(
            Path(state), lab=f"{os.environ.get('CLUSTERCTL_ROLES_LAB', 'roles')}n", network=NETWORK, count=1
        ) as lab,
    ):
        yield lab


NETWORK = os.environ.get("CLUSTERCTL_NODE_CHECK_NETWORK", "10.187.0.0/16")


def node_file(serials: dict[str, str]) -> bytes:
    """Return the file of these nodes, with the lab's limits and the checks that a node makes by itself."""
    content = Content(
        version=1,
        built="test",
        checks=CHECKED,
        left_out=tuple(name for name in CHECKS if name not in CHECKED),
        nodes={name: NodeFacts(serial=serial, sku=H100_X8.name) for name, serial in serials.items()},
        skus={H100_X8.name: SkuFacts(sku=H100_X8, limits=lab_limits())},
        requirements=HostRequirements(),
        known_lines=KnownLines(),
    )
    return build(content)


@contextmanager
def served(folder: Path, address: str) -> Iterator[str]:
    """Serve the folder over HTTP; yield its URL."""
    handler = functools.partial(SimpleHTTPRequestHandler, directory=str(folder))
    with ThreadingHTTPServer((address, 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://{address}:{server.server_port}"
        server.shutdown()


def apply(lab: Rehearsal, variables: dict[str, object]) -> PlayOutcome:
    """Apply the role to the one host."""
    names: Sequence[str] = [host.name for host in lab.hosts]
    asked = {**lab.variables, **variables, "apply_roles": {name: ["node_check"] for name in names}}
    with tempfile.TemporaryDirectory(prefix="pb", dir="/tmp") as work_dir:
        (run,) = playbooks(Path(work_dir)).run("apply.yml", lab.hosts, asked, Deadline.after(RUN_S))
    return run.value


def test_the_role_installs_the_file_once_and_it_checks_its_node(lab: Rehearsal, tmp_path: Path) -> None:
    """Applied twice; the installed file reports each check, proves the node's serial, and names what it left out."""
    (host,) = lab.hosts
    content = node_file(dict(lab.variables["lab_serials"]))
    (tmp_path / "clusterctl-node").write_bytes(content)
    with served(tmp_path, str(Layout(IPv4Network(NETWORK)).apt)) as url:
        variables: dict[str, object] = {
            "node_check_url": f"{url}/clusterctl-node",
            "node_check_sha256": hashlib.sha256(content).hexdigest(),
        }
        first, second = apply(lab, variables), apply(lab, variables)
        other = apply(lab, {**variables, "node_check_sha256": "0" * 64})
    assert first.ok, first
    assert first.changed > 0
    assert second.ok, second
    assert second.changed == 0
    assert not other.ok, "another file than the one that was named is refused"
    assert lab.read(host.name, "/usr/local/sbin/clusterctl-health").startswith("#!/bin/sh")

    with ParamikoShell(CLOCK, Origin.SIMULATED) as shell:
        ran = shell.run(host, ("sudo", "-n", PROGRAM, "check", "--json"), b"", Deadline.after(300)).value
    answer = json.loads(ran.stdout)
    print(f"clusterctl-node check: {answer['seconds']} s of {ran.seconds:.1f} s, {len(answer['findings'])} findings")
    assert ran.exit_status == (1 if answer["verdict"] == "fail" else UNMEASURED)
    assert {one["check"] for one in answer["findings"]} == set(CHECKED)
    assert [one["verdict"] for one in answer["findings"] if one["check"] == "identity"] == ["pass"]
    assert set(answer["left_out"]) == set(CHECKS) - set(CHECKED)
