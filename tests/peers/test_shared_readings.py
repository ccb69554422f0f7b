"""Readings that hold the bytes of many peers at once: a fabric, a file of leases, the requests to the install service."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterctl.edges.journal import Holder, open_journal
from clusterctl.edges.pxe.attempt import InstallAttempt
from clusterctl.edges.pxe.attempt_store import AttemptStore, new_token, start_ticket
from clusterctl.edges.pxe.boot_handlers import BootHandlers
from clusterctl.edges.pxe.channel import POST_BYTES
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.finding import Verdict, worst
from clusterctl.fleet.node import NodeId, Serial
from clusterctl.fleet.state import NodeState
from clusterctl.formats.identifiers import read_mac
from clusterctl.formats.site.leases import read_leases
from clusterctl.ports import Deadline
from clusterctl.steps.cable.fabric_record import FabricRecord
from clusterctl.steps.cable.step import Cable, Wiring
from clusterctl.steps.executor.intent_log import IntentLog
from tests.cabling.bench import Bench, plan
from tests.edges.pxe.kit import TickingClock, armed, report
from tests.peers.poison import ANY, LISTED, few
from tests.steps.cable.test_cable import NAMES, FakeReader
from tests.steps.fakes import FixedClock

listed = pytest.mark.parametrize("poison", LISTED, ids=[str(number) for number in range(len(LISTED))])
BAD = "node002"


# --- a fabric: the node description of each adapter is its host's ---------------------------------------------------


def described(text: str) -> str:
    """Return a description as ibnetdiscover prints it: 64 bytes at most, and a space for what is not printable."""
    kept = text.encode("utf-8", "surrogatepass")[:64]
    return "".join(chr(byte) if 32 <= byte < 127 else " " for byte in kept)


def cabled(description: str) -> dict[str, Verdict]:
    """Return the verdict on the cables of each other node."""
    bench = Bench(descriptions={f"{BAD} mlx5_0": description})
    nodes = [NodeState(NodeId(f"id-{name}"), name) for name in NAMES]
    with closing(open_journal("sqlite://", FixedClock(), Holder("r1"))) as book:
        step = Cable(FakeReader(bench), FabricRecord(book), Wiring(plan(), dict, 10.0), {}, settle_s=0.0)
        found = list(step.run(nodes, IntentLog(None, {}), Deadline.after(600)))  # type: ignore[arg-type]
    verdicts = {outcome.node: worst(finding.verdict for finding in outcome.findings) for outcome in found}
    return {name: verdicts[NodeId(f"id-{name}")] for name in NAMES if name != BAD}


OTHERS = {name: Verdict.PASS for name in NAMES if name != BAD}
NAMED_LIKE = (
    "node001 mlx5_0",
    "node001 mlx5_1",
    "node001",
    "leaf-0",
    "MF0;leaf-0:MQM9700/U1",
    "MF0;spine-0:MQM9700/U1",
)
FORGED = (
    '" lid 3 4xNDR',
    '" base port 0 lid 1 lmc 0',
    '"[1](0)\t# "x" lid 1 4xNDR',
    "ibpanic: duplicate",
    "-W- ibwarn mad_rpc",
)


@listed
def test_a_description_in_a_fabric(poison: str) -> None:
    """The other nodes' cables are judged as next to an honest host."""
    assert cabled(described(poison)) == OTHERS


@pytest.mark.parametrize("description", [*NAMED_LIKE, *FORGED])
def test_a_description_that_is_another_devices_or_looks_like_output(description: str) -> None:
    """A host that takes the name of another one, or of a switch, takes no cable from it."""
    assert cabled(description) == OTHERS


@few
@given(text=ANY)
def test_any_description(text: str) -> None:
    """The same for any bytes."""
    assert cabled(described(text)) == OTHERS


# --- a file of leases: names, client identifiers and hardware addresses are the clients' ----------------------------

HONEST = (("192.0.2.1", "5c:ed:8c:34:c2:01"), ("192.0.2.3", "5c:ed:8c:34:c2:03"))


@dataclass(frozen=True)
class Client:
    """What a DHCP client may choose: `hardware` are the bytes of chaddr, as many as its hlen has (RFC 2131)."""

    hardware: bytes
    name: str = ""

    @property
    def written(self) -> str:
        return ":".join(f"{byte:02x}" for byte in self.hardware)


def _dnsmasq(client: Client) -> str:
    kind = "" if client.hardware else "01-"
    name = client.name if client.name.isalnum() and client.name.isascii() else "*"
    lines = [f"1800000000 {mac} {address} * *" for address, mac in HONEST]
    return "\n".join([lines[0], f"1800000000 {kind}{client.written} 192.0.2.2 {name} *", lines[1]]) + "\n"


def _dhcpd(client: Client) -> str:
    def lease(address: str, mac: str, name: str) -> str:
        hardware = f"  hardware ethernet {mac};\n" if mac else ""
        octal = "".join(f"\\{byte:03o}" for byte in name.encode("utf-8", "surrogatepass")[:255])
        named = f'  client-hostname "{octal}";\n' if name else ""
        return f"lease {address} {{\n  binding state active;\n{hardware}{named}}}\n"

    honest = [lease(address, mac, "") for address, mac in HONEST]
    return honest[0] + lease("192.0.2.2", client.written, client.name) + honest[1]


def _kea(client: Client) -> str:
    rows = [f"{address},{mac},,3600,1800000000,1,0,0,,0" for address, mac in HONEST]
    bad = f"192.0.2.2,{client.written},,3600,1800000000,1,0,0,,0"
    head = "address,hwaddr,client_id,valid_lifetime,expire,subnet_id,fqdn_fwd,fqdn_rev,hostname,state"
    return "\n".join([head, rows[0], bad, rows[1]]) + "\n"


WRITERS: tuple[Callable[[Client], str], ...] = (_dnsmasq, _dhcpd, _kea)
HARDWARE = (b"", b"\x00" * 6, b"\xff" * 6, b"\x01", b"\x5c" * 5, b"\x5c" * 7, b"\x5c" * 16)


def others_found(writer: Callable[[Client], str], client: Client) -> bool:
    leases = {lease.address: str(lease.mac) for lease in read_leases(writer(client), "leases")}
    return {address: leases.get(address) for address, _ in HONEST} == dict(HONEST)


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("hardware", HARDWARE, ids=[raw.hex() for raw in HARDWARE])
def test_a_hardware_address_in_leases(writer: Callable[[Client], str], hardware: bytes) -> None:
    """One that is no MAC address is that client's own loss."""
    assert others_found(writer, Client(hardware))


@few
@given(hardware=st.binary(max_size=16), name=ANY)
def test_any_client(hardware: bytes, name: str) -> None:
    """The same for any bytes, as each server writes them."""
    assert all(others_found(writer, Client(hardware, name)) for writer in WRITERS)


@pytest.mark.parametrize("writer", WRITERS)
def test_a_damaged_file_is_still_an_error(writer: Callable[[Client], str]) -> None:
    """No server writes such an address."""
    text = writer(Client(b"\x5c" * 6)).replace("5c:5c:5c:5c:5c:5c", "5c:5c:zz")
    with pytest.raises(UsageError, match="MAC address"):
        read_leases(text, "leases")


# --- the install service ----------------------------------------------------------------------------------------------


@dataclass
class Install:
    """Two machines that are installed; `bad` is the one that sends anything."""

    store: AttemptStore
    handlers: BootHandlers
    bad: InstallAttempt
    good: InstallAttempt

    def send(self, poison: str) -> None:
        """Send it wherever a machine may: as its serial, its token, and each of its posts; also for the other card."""
        body = poison.encode("utf-8", "surrogatepass")
        text = body.decode("utf-8", "replace")
        for mac in (*self.bad.macs, *self.good.macs):
            self.handlers.boot(mac, text)
        for token in (text, self.bad.token):
            self.handlers.start_script(start_ticket(token), self.bad.macs[0], text)
            self.handlers.start_script(token, self.bad.macs[0], text)
            self.handlers.image_requested(token)
            self.handlers.document(token, text)
            for name, most in POST_BYTES.items():
                if self.handlers.may_post(token):
                    self.handlers.post(token, name, body[:most], text)

    def untouched(self) -> bool:
        """Return whether the other machine can still be installed, and nothing of it has changed."""
        same = self.store.find(self.good.node) == self.good
        led = start_ticket(self.good.token) in self.handlers.boot(self.good.macs[0], self.good.serial)
        return same and led

    def finish(self) -> str:
        """Install the other machine to its end."""
        token, mac = self.good.token, self.good.macs[0]
        self.handlers.start_script(start_ticket(token), mac, self.good.serial)
        text = report(self.good.serial).replace(str(self.bad.macs[0]), str(mac)).encode()
        assert self.handlers.post(token, "report", text, "192.0.2.9").status == 200
        assert self.handlers.post(token, "done", b"", "192.0.2.9").status == 200
        found = self.store.find(self.good.node)
        assert found is not None
        return found.state.value


def installing(folder: Path) -> Install:
    store = AttemptStore(folder)
    bad = store.put(armed("node001"), {"overlay.tar": b"a tar"})
    other = armed(
        "node002", serial=Serial("SN0002"), macs=(read_mac("02:00:00:00:00:02"),), id="1b2c3d4e", token=new_token()
    )
    return Install(
        store, BootHandlers("http://192.0.2.1", store, TickingClock()), bad, store.put(other, {"overlay.tar": b"a tar"})
    )


@pytest.fixture
def install(tmp_path: Path) -> Install:
    return installing(tmp_path / "machines")


@listed
def test_requests_of_a_machine(install: Install, poison: str) -> None:
    """Each request has an answer, and the other machine is installed as if it were alone."""
    install.send(poison)
    assert install.untouched()
    assert install.finish() == "done"


@few
@given(poison=ANY)
def test_any_request(tmp_path_factory: pytest.TempPathFactory, poison: str) -> None:
    """The same for any bytes."""
    install = installing(tmp_path_factory.mktemp("x") / "machines")
    install.send(poison)
    assert install.untouched()
    assert install.finish() == "done"
