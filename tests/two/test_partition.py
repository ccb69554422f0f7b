"""A worker that loses PostgreSQL while its machines install, by its cable or by a filter in one direction or in both: it
does nothing that another repeats.
"""

from __future__ import annotations

import enum
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass

import pytest

from clusterctl.edges.journal import verification
from clusterctl.fleet.event import Kind, Stream
from clusterctl.operations import runs
from clusterctl.operations.context import Invocation, SiteContext, open_site
from clusterctl.operations.runs import RunState
from lab.tests.lab_kit import eventually
from tests.edges.journal.postgres import PROGRAMS, USER, running_server
from tests.two.conftest import LEASE_S, NAMES, PATIENCE_S, SHORT_LEASE_S, Scene
from tests.two.test_workers import ALL_INSTALLED, ONCE, begun_by, order, start, until_ended, working

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(os.geteuid() != 0 or not PROGRAMS, reason="needs root and PostgreSQL"),
]
HERE, THERE, PREFIX = "10.231.7.1", "10.231.7.2", 30
PORT = 5432


class Loss(enum.Enum):
    """What a worker loses: its whole network; all packets of its journal, dropped by nftables without an error to either
    end; or only the answers, so that what it writes still arrives.
    """

    CABLE = "cable"
    JOURNAL = "journal"
    ANSWERS = "answers"


CHAINS = {
    Loss.JOURNAL: f"chain out {{ type filter hook output priority 0; tcp dport {PORT} drop; }};",
    Loss.ANSWERS: f"chain in {{ type filter hook input priority 0; tcp sport {PORT} drop; }};",
}
FILTERED = pytest.mark.skipif(not shutil.which("nft"), reason="needs nftables")
LOSSES = (
    (Loss.CABLE, False),
    (Loss.CABLE, True),
    *(pytest.param(loss, between, marks=FILTERED) for loss in CHAINS for between in (False, True)),
)
"""Each with whether it comes between the intent of an act and the act."""


@dataclass(frozen=True)
class Island:
    """A network namespace with one cable to this machine's switch."""

    name: str
    cable: str
    switch: str

    @property
    def within(self) -> tuple[str, ...]:
        """What starts a program in it."""
        return ("ip", "netns", "exec", self.name)

    def lose(self, loss: Loss) -> None:
        """Have packets vanish: the island keeps its carrier, and neither end gets an error."""
        if loss is Loss.CABLE:
            done("ip", "link", "set", self.cable, "nomaster")
        else:
            done(*self.within, "nft", f"table inet partition {{ {CHAINS[loss]} }}")

    def rejoin(self, loss: Loss = Loss.CABLE) -> None:
        if loss is Loss.CABLE:
            done("ip", "link", "set", self.cable, "master", self.switch)
        else:
            done(*self.within, "nft", "delete table inet partition")


def done(*argv: str) -> None:
    """Run a command of iproute2 or nftables."""
    subprocess.run(argv, check=True, capture_output=True)


@contextmanager
def island() -> Iterator[Island]:
    """A namespace that reaches this machine, at `HERE`, and nothing else; nothing of it afterwards."""
    number = os.getpid() % 1_000_000
    found = Island(f"two-{number}", f"two{number}", f"twosw{number}")
    with ExitStack() as stack:
        done("ip", "netns", "add", found.name)
        stack.callback(done, "ip", "netns", "del", found.name)
        done("ip", "link", "add", found.cable, "type", "veth", "peer", "name", "eth0", "netns", found.name)
        done("ip", "link", "add", found.switch, "type", "bridge")
        stack.callback(done, "ip", "link", "del", found.switch)
        done("ip", "address", "add", f"{HERE}/{PREFIX}", "dev", found.switch)
        for device in (found.switch, found.cable):
            done("ip", "link", "set", device, "up")
        found.rejoin()
        done(*found.within, "ip", "address", "add", f"{THERE}/{PREFIX}", "dev", "eth0")
        for device in ("lo", "eth0"):
            done(*found.within, "ip", "link", "set", device, "up")
        yield found


@pytest.fixture
def apart() -> Iterator[Island]:
    with island() as found:
        yield found


@pytest.fixture
def url(apart: Island) -> Iterator[str]:
    """Of a journal that is reached by TCP: from this machine, and from the island by its cable."""
    with running_server() as server:
        server.stop()
        with (server.data / "pg_hba.conf").open("a") as rules:
            rules.write(f"host all all {HERE}/{PREFIX} trust\n")
        server.listening = f" -c listen_addresses={HERE}"
        server.start()
        name = server.url().partition("@/")[2].partition("?")[0]
        yield f"postgresql+psycopg://{USER}@{HERE}/{name}"


@pytest.fixture
def lease_s() -> int:
    return SHORT_LEASE_S


@pytest.fixture
def orderer(scene: Scene) -> Iterator[SiteContext]:
    context = open_site(scene.site, Invocation("ann", "bootstrap"))
    with closing(context.journal):
        yield context


@pytest.mark.parametrize(("loss", "between"), LOSSES)
def test_a_worker_without_network_loses_its_run_and_repeats_nothing(
    scene: Scene, orderer: SiteContext, apart: Island, *, loss: Loss, between: bool
) -> None:
    """Cut off from PostgreSQL while machines install, or `between` the intent of an install and the act, which it does
    and cannot record. Another worker goes on with the same run past the lease and ends it. When the network is back
    the first one does nothing more. Each OS is written once; the journal is intact.
    """
    held = NAMES[::2]
    for name in held:
        scene.world.hold(name)
    run = order(orderer)
    cut_off = start(scene, "w1", "--once", *(("--stops-at", "n2") if between else ()), within=apart.within)
    if between:
        cut_off.until_stopped()
        apart.lose(loss)
        cut_off.wake()
        assert eventually(lambda: "n2" in scene.world.starts(), PATIENCE_S)
    else:
        scene.until_installing(*NAMES)
        apart.lose(loss)
    scene.until_expired()
    scene.set_lease(LEASE_S)
    with working(scene, "w2"):
        assert eventually(lambda: begun_by(orderer, run) == ["w1", "w2"], PATIENCE_S)
        for name in held:
            scene.world.let_go(name)
        until_ended(orderer, run)
    apart.rejoin(loss)
    assert cut_off.wait() in (0, 3), cut_off.err  # 3: the network was away for longer than it waits for its journal
    assert (scene.world.starts(), scene.stages()) == (ONCE, ALL_INSTALLED)
    kinds = [event.kind for event in orderer.journal.history(Stream.RUN, run)]
    assert (kinds.count(Kind.RUN_ENDED), kinds.count(Kind.RUN_FINISHED)) == (1, 1)
    assert verification.verify(scene.url).damages == ()
    assert runs.find(orderer, run).state is RunState.ENDED
