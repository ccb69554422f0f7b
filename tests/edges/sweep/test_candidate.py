"""One address of a sweep: the requests, what is never sent, and the outcome of each kind of answer."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from clusterctl.edges.redfish import KnownBmcs
from clusterctl.edges.redfish.sweep import CandidateProbe
from clusterctl.edges.redfish.sweep.candidate import LoginLimiter
from clusterctl.fleet.bmc.observation import Greeting, SweepOutcome
from clusterctl.fleet.errors import CancelledError, UnreachableError
from clusterctl.ports import Deadline
from tests.edges.sweep.kit import PASSWORD, QUICK, SESSIONS, Network, OneLogin, network
from tests.edges.sweep.shapes import ROOT, SHAPES, dell, hpe, openbmc, supermicro
from tests.fake_timer import FakeTimer
from tests.faulty import drop, hang, status

HOST = "127.77.0.1"
MAC = "02:00:00:00:00:01"
SYSTEM = f"{ROOT}/Systems/System.Embedded.1"


@pytest.fixture
def net(tmp_path: Path) -> Iterator[Network]:
    with network(tmp_path, {HOST: dell(HOST, "DEL0001", MAC)}) as made:
        yield made


@pytest.mark.parametrize("vendor", SHAPES)
def test_each_vendor_in_eight_requests(tmp_path: Path, vendor: str) -> None:
    """Serial, model, firmware and the MAC of the port that answered, in eight requests at most, the session closed."""
    with network(tmp_path, {HOST: SHAPES[vendor](HOST, "SER0001", MAC)}) as net:
        seen = net.visit(HOST)
        bmc = net.bmcs[HOST]
        assert seen.outcome is SweepOutcome.IDENTIFIED, seen.cause
        assert (seen.serial, seen.bmc_mac) == ("SER0001", MAC)
        assert seen.identity.model
        assert seen.identity.bmc_firmware
        assert seen.identity.problems == ()
        assert seen.requests == len(bmc.asked) <= 8
        assert bmc.sessions == {}
        assert bmc.asked[0] == ("GET", f"{ROOT}/")
        assert not [asked for asked in bmc.asked if asked[0] not in ("GET", "POST", "DELETE")]
        assert [path for method, path in bmc.asked if method == "POST"] == [SESSIONS]


@pytest.mark.parametrize(("vendor", "reported"), [("Dell", "Dell"), ("Supermicro", "Supermicro"), ("HPE", "HPE")])
def test_the_vendor_is_known_before_the_login(tmp_path: Path, vendor: str, reported: str) -> None:
    """The rule for the login gets what the BMC shows without a login."""
    logins = OneLogin()
    with network(tmp_path, {HOST: SHAPES[vendor](HOST, "SER0001", MAC)}) as net:
        net.visit(HOST, logins=logins)
    [(host, greeting)] = logins.asked
    assert (host, greeting.vendor) == (HOST, reported)


def test_a_wrong_password_is_tried_once(net: Network) -> None:
    """One 401 at the login ends the visit: BMCs lock accounts. What the BMC shows without a login is kept."""
    net.bmcs[HOST].password = "another"
    seen = net.visit(HOST)
    assert seen.outcome is SweepOutcome.REJECTED
    assert net.bmcs[HOST].logins == 1
    assert seen.greeting.vendor == "Dell"
    assert seen.serial == "DEL0001"
    assert PASSWORD not in repr(seen)


def test_an_ilo_that_rejects_wrongly(tmp_path: Path) -> None:
    """An iLO answers 401 to right credentials now and then: asked again, and identified."""
    with network(tmp_path, {HOST: hpe(HOST, "MXQ0001", MAC)}) as net:
        net.bmcs[HOST].faults = {("POST", SESSIONS): [status(401)], ("GET", f"{ROOT}/Systems"): [status(401)]}
        seen = net.visit(HOST)
        assert (seen.outcome, seen.serial) == (SweepOutcome.IDENTIFIED, "MXQ0001")
        assert net.bmcs[HOST].sessions == {}


def test_one_bmc_at_two_addresses_is_rejected_once(tmp_path: Path) -> None:
    """A BMC that rejected us is not asked again at its other address: its lock-out counts both."""
    other = "127.77.0.2"
    trees = {HOST: supermicro(HOST, "S1", MAC), other: supermicro(other, "S1", MAC)}
    with network(tmp_path, trees, one_bmc=True) as net:
        for bmc in net.bmcs.values():
            bmc.password = "another"
        probe = CandidateProbe(net.door, OneLogin(), KnownBmcs(tmp_path / "pins"), timing=QUICK)
        both = [probe(host, Deadline.after(60)) for host in (HOST, other)]
        assert [seen.outcome for seen in both] == [SweepOutcome.REJECTED] * 2
        assert HOST in both[1].cause
        assert (net.bmcs[HOST].logins, net.bmcs[other].logins) == (1, 0)


def test_a_bmc_that_claims_to_be_another_bars_none(tmp_path: Path) -> None:
    """It shows the UUID and serial of another BMC and rejects the login: the other one is asked all the same."""
    other = "127.77.0.2"
    with network(tmp_path, {HOST: supermicro(HOST, "S1", MAC), other: supermicro(other, "S1", MAC)}) as net:
        net.bmcs[HOST].password = "another"
        probe = CandidateProbe(net.door, OneLogin(), KnownBmcs(tmp_path / "pins"), timing=QUICK)
        both = [probe(host, Deadline.after(60)) for host in (HOST, other)]
        assert [seen.outcome for seen in both] == [SweepOutcome.REJECTED, SweepOutcome.IDENTIFIED]


def test_bmcs_that_share_a_default_certificate_bar_none(tmp_path: Path) -> None:
    """One key in all BMCs of a series, pinned on first use: one of them shows the UUID of another and rejects the login."""
    other = "127.77.0.2"
    trees = {HOST: supermicro(HOST, "S1", MAC), other: supermicro(other, "S1", MAC)}
    with network(tmp_path, trees, one_bmc=True) as net:
        net.bmcs[HOST].password = "another"
        known = KnownBmcs(tmp_path / "pins", learn=True)
        probe = CandidateProbe(net.stranger, OneLogin(), known, timing=QUICK)
        both = [probe(host, Deadline.after(60)) for host in (HOST, other)]
        assert known.file(HOST).read_text() == known.file(other).read_text()
        assert [seen.outcome for seen in both] == [SweepOutcome.REJECTED, SweepOutcome.IDENTIFIED]


def test_bmcs_that_share_a_default_certificate_hold_up_none(tmp_path: Path) -> None:
    """It never answers the login; the other one is asked meanwhile."""
    other = "127.77.0.2"
    trees = {HOST: supermicro(HOST, "S1", MAC), other: supermicro(other, "S1", MAC)}
    with network(tmp_path, trees, one_bmc=True) as net:
        asked, cancelled = threading.Event(), threading.Event()

        def silent(handler: object) -> None:
            asked.set()
            hang(handler)

        net.bmcs[HOST].faults = {("POST", SESSIONS): [silent]}
        known = KnownBmcs(tmp_path / "pins", learn=True)
        probe = CandidateProbe(net.stranger, OneLogin(), known, timing=QUICK)
        with ThreadPoolExecutor(1) as pool:
            held = pool.submit(probe, HOST, Deadline.after(60, cancelled))
            assert asked.wait(30)
            seen = probe(other, Deadline.after(30))
            assert (seen.outcome, held.done()) == (SweepOutcome.IDENTIFIED, False)
            cancelled.set()
            assert isinstance(held.exception(30), CancelledError)


def test_the_login_waits_no_longer_than_the_deadline() -> None:
    """Another thread asks the same BMC and does not come back: the wait ends as that of any request."""
    limiter, timer = LoginLimiter(), FakeTimer()
    one, other = Deadline.after(60, timer=timer), Deadline.after(0, timer=timer)
    with (
        limiter.login(HOST, "certificate", Greeting(uuid="u"), one),
        pytest.raises(UnreachableError, match="another address of the same BMC"),
        limiter.login("127.77.0.2", "certificate", Greeting(uuid="u"), other),
    ):
        pass


def test_a_stranger_sends_little(net: Network) -> None:
    """Whatever answers at an address is read up to 4 MiB, not to the 16 MiB of each of a machine's resources."""
    net.bmcs[HOST].tree[ROOT] = {**net.bmcs[HOST].tree[ROOT], "Oem": "x" * (5 << 20)}
    seen = net.visit(HOST)
    assert (seen.outcome, net.bmcs[HOST].posted) == (SweepOutcome.FAILED, [])
    assert "bytes" in seen.cause


def test_an_unknown_certificate_gets_no_login(net: Network) -> None:
    """Without an authority and first use: vendor and fingerprint are reported, nothing secret is sent."""
    seen = net.visit(HOST, door=net.stranger)
    assert seen.outcome is SweepOutcome.CERTIFICATE_UNKNOWN
    assert (seen.greeting.vendor, seen.fingerprint) == ("Dell", net.presented[HOST])
    assert net.bmcs[HOST].posted == []
    assert (seen.serial, seen.bmc_mac) == (None, None), "the claims of an unproven peer prove nothing"


def test_first_use_pins_what_is_a_bmc(net: Network, tmp_path: Path) -> None:
    """Where the site believes on first use the certificate is pinned, and holds from then on."""
    known = KnownBmcs(tmp_path / "pins", learn=True)
    assert net.visit(HOST, door=net.stranger, known=known).outcome is SweepOutcome.IDENTIFIED
    assert known.file(HOST).exists()
    known.file(HOST).write_text("ab" * 32)
    seen = net.visit(HOST, door=net.stranger, known=known)
    assert seen.outcome is SweepOutcome.CERTIFICATE_UNKNOWN
    assert seen.fingerprint == net.presented[HOST]


def test_first_use_pins_no_other_bmc(tmp_path: Path) -> None:
    """A web server without Redfish is neither pinned nor sent a password."""
    known = KnownBmcs(tmp_path / "pins", learn=True)
    with network(tmp_path, {HOST: {ROOT: {"hello": "world"}}}) as net:
        assert net.visit(HOST, door=net.stranger, known=known).outcome is SweepOutcome.NO_REDFISH
        assert net.bmcs[HOST].posted == []
    assert not known.folder.exists()


def test_an_expired_certificate_is_not_believed(tmp_path: Path) -> None:
    """Although the site's authority signed it once."""
    tree = {HOST: dell(HOST, "DEL0001", MAC)}
    with network(tmp_path, tree, ends=-dt.timedelta(hours=1)) as net:
        seen = net.visit(HOST)
        assert seen.outcome is SweepOutcome.CERTIFICATE_UNKNOWN
        assert "expired" in seen.cause
        assert net.bmcs[HOST].posted == []


@pytest.mark.parametrize(
    "answer", [status(404), status(200, {"a": 1}), status(500), status(301, Location="https://127.77.0.9/x")]
)
def test_what_is_no_redfish(net: Network, answer) -> None:
    """A web page, nonsense, a redirect to another host: no login, and no traceback."""
    net.bmcs[HOST].faults = {("GET", f"{ROOT}/"): [answer] * 5}
    seen = net.visit(HOST)
    assert seen.outcome is SweepOutcome.NO_REDFISH
    assert seen.cause
    assert seen.remedy
    assert net.bmcs[HOST].posted == []


def test_a_root_that_asks_for_a_login_gets_none(net: Network) -> None:
    """DSP0266 shows the service root without a login; a BMC that asks for a password first gets none."""
    net.bmcs[HOST].faults = {("GET", f"{ROOT}/"): [status(401)] * 5}
    assert net.visit(HOST).outcome is SweepOutcome.NO_REDFISH
    assert net.bmcs[HOST].posted == []


def test_a_redirect_within_the_bmc_is_followed(net: Network) -> None:
    """Some send `/redfish/v1/` to another spelling of it."""
    net.bmcs[HOST].faults = {("GET", f"{ROOT}/"): [status(308, Location=ROOT)]}
    assert net.visit(HOST).outcome is SweepOutcome.IDENTIFIED


def test_a_bmc_that_hangs(net: Network) -> None:
    """It delays the sweep no longer than the deadline."""
    timer = FakeTimer()
    net.bmcs[HOST].faults = {("GET", f"{ROOT}/"): [timer.then(hang)]}
    seen = net.visit(HOST, deadline=Deadline.after(60, timer=timer))
    assert seen.outcome is SweepOutcome.NO_ANSWER


def test_the_session_is_closed_although_time_is_up(net: Network) -> None:
    """A deadline in the middle of the reading leaves no session behind: BMCs hold few."""
    timer = FakeTimer()
    net.bmcs[HOST].faults = {("GET", SYSTEM): [timer.then(hang)]}
    seen = net.visit(HOST, deadline=Deadline.after(60, timer=timer))
    assert seen.outcome is SweepOutcome.NO_ANSWER
    assert net.bmcs[HOST].logins == 1
    assert net.bmcs[HOST].sessions == {}


def test_the_session_is_closed_when_the_sweep_is_stopped(net: Network) -> None:
    """Ctrl-C in the middle of the reading: the visit ends as cancelled, its session closed."""
    reached, cancelled = threading.Event(), threading.Event()

    def stop(handler) -> None:
        reached.set()
        cancelled.set()
        hang(handler)

    net.bmcs[HOST].faults = {("GET", SYSTEM): [stop]}
    probe = CandidateProbe(net.door, OneLogin(), KnownBmcs(net.folder / "pins"), timing=QUICK)
    with pytest.raises(CancelledError):
        probe(HOST, Deadline.after(60, cancelled))
    assert reached.is_set()
    assert net.bmcs[HOST].sessions == {}


def test_a_dropped_connection_is_asked_again(net: Network) -> None:
    """A read that was dropped is repeated; the machine is identified."""
    net.bmcs[HOST].faults = {("GET", SYSTEM): [drop]}
    assert net.visit(HOST).outcome is SweepOutcome.IDENTIFIED


def test_a_bmc_without_a_free_session(net: Network) -> None:
    """Reported as such, with what to do."""
    full = {"error": {"message": "maximum number of user sessions reached"}}
    net.bmcs[HOST].faults = {("POST", SESSIONS): [status(503, full)] * 9}
    seen = net.visit(HOST)
    assert (seen.outcome, seen.cause) == (SweepOutcome.FAILED, "the BMC has no free session")


def test_a_machine_that_has_no_serial_yet(tmp_path: Path) -> None:
    """It is not taken for identified; the remedy is to give it an identity."""
    tree = openbmc(HOST, "", MAC)
    with network(tmp_path, {HOST: tree}) as net:
        seen = net.visit(HOST)
        assert seen.outcome is SweepOutcome.FAILED
        assert "serial" in seen.cause
        assert seen.remedy
        assert len(net.bmcs[HOST].asked) <= 8


@pytest.mark.parametrize("junk", [7, [], {"@odata.id": 5}])
def test_junk_in_any_resource_is_an_outcome(net: Network, junk: object) -> None:
    """A resource whose links and names are all junk: never a traceback, never a session left."""
    bmc = net.bmcs[HOST]
    sound = bmc.tree
    for path in sound:
        bmc.tree = {**sound, path: dict.fromkeys(sound[path], junk)}
        seen = net.visit(HOST)
        assert seen.cause or seen.outcome is SweepOutcome.IDENTIFIED
        assert bmc.sessions == {}
