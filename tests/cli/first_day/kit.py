"""A rack of the lab's BMCs that write down each request, and the site that knows them: no namespaces, no root."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Network
from pathlib import Path

from click.testing import CliRunner, Result

from clusterctl.edges.hostkeys import HostKeys
from clusterctl_cli.main import cli
from clusterctl_lab.certificates import LabCa
from clusterctl_lab.emulators.redfish.bmc import Bmc
from clusterctl_lab.emulators.redfish.exchange import Answer, Request
from clusterctl_lab.emulators.redfish.listener import Listener
from clusterctl_lab.emulators.redfish.vendors import profile_of
from clusterctl_lab.healthy import build
from clusterctl_lab.layout import Layout
from clusterctl_lab.machine import Machine
from clusterctl_lab.site_files import Keys, SiteFacts, render
from clusterctl_lab.vendor import Vendor
from clusterctl_lab.world import Delays, World
from lab.tests.loop_thread import LoopThread
from tests.ports import reserve_port

PASSWORD = "of-no-use-elsewhere"
LAYOUT = Layout(IPv4Network("127.181.0.0/16"))
NETWORK = "127.181.1.0/29"
QUICK = Delays(power_off=0.02, post=0.02, netboot_timeout=0.1)
ASLEEP = "node005"
"""Off, and its BMC knows none of its GPUs: discover would power it on."""


@dataclass(frozen=True, slots=True, order=True)
class Asked:
    """One request as it came in."""

    method: str
    path: str
    node: str


class Listening(Bmc):
    """A BMC of the lab whose requests are written down before they are answered, whatever the answer is."""

    requests: list[Asked]
    node: str

    def answer(self, request: Request) -> Answer:
        path = request.path + (f"?{request.query}" if request.query else "")
        self.requests.append(Asked(request.method, path, self.node))
        return super().answer(request)


@dataclass
class Rack:
    """`requests` are all requests to any of its BMCs since the list was last cleared."""

    site: Path
    world: World
    requests: list[Asked] = field(default_factory=list)

    def run(self, *words: str) -> Result:
        """`clusterctl WORDS`; what it ends with other than an exit code is the test's failure."""
        done = CliRunner().invoke(cli, list(words), standalone_mode=False, catch_exceptions=False)
        assert done.return_value in (None, 0, 1, 3), done.output
        return done


@contextmanager
def rack(folder: Path) -> Iterator[Rack]:
    """One server of each vendor and one that sleeps, all powered off, with their BMCs while the block runs."""
    machines = {machine.name: machine for machine in _machines()}
    world = World(LAYOUT, machines, QUICK)
    port = reserve_port(LAYOUT.bmc(1))
    ca = LabCa(folder / "tls", "firstday")
    made = Rack(_site(folder / "site", list(machines.values()), ca.ca_file.read_bytes(), port), world)
    loop = LoopThread()
    listeners = [_listener(made, machine, ca, port) for machine in machines.values()]
    try:
        for listener, machine in zip(listeners, machines.values(), strict=True):
            loop.run(listener.show(machine))
        yield made
    finally:
        for listener in listeners:
            loop.run(listener.close())
        loop.close()


def _listener(made: Rack, machine: Machine, ca: LabCa, port: int) -> Listener:
    bmc = Listening(made.world, machine.name, profile_of(machine))
    bmc.requests, bmc.node = made.requests, machine.name
    context = ca.certificate_for(machine.bmc.address)
    return Listener(bmc, (machine.bmc.address, port), lambda _: context)


def _machines() -> Iterator[Machine]:
    for number, vendor in enumerate((*Vendor, Vendor.DELL), 1):
        whole = build(number, LAYOUT, PASSWORD, rails=8, vendor=vendor)
        yield replace(whole, gpus=()) if whole.name == ASLEEP else whole


def _site(folder: Path, machines: list[Machine], ca: bytes, port: int) -> Path:
    """As `lab up` leaves it, but for the BMCs' port."""
    keys = Keys(PASSWORD, "consumer-4d:token-5e:secret-6f", "", "")
    repository = {"nvidia_repository_url": "http://192.0.2.1/", "nvidia_repository_key": "no key"}
    variables = {"nvidia_driver_version": "570.148.08", **repository}
    facts = SiteFacts("firstday", LAYOUT, machines, (), keys, ca, 9, folder, variables)
    for name, (content, mode) in render(facts).items():
        (folder / name).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
        (folder / name).chmod(mode)
    (folder / "secrets" / "ssh_ed25519").unlink()
    HostKeys(folder / "secrets").get("ssh_ed25519")
    text = (folder / "site.yml").read_text()
    (folder / "site.yml").write_text(text.replace("bmc:\n", f"bmc:\n  port: {port}\n"))
    return folder
