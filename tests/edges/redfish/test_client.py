"""The client against a BMC that answers over TLS, well and badly."""

from __future__ import annotations

import json
import logging
import logging.config
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from clusterctl.edges.redfish import RedfishBmcs
from clusterctl.fleet.bmc.logs import UNREAD
from clusterctl.fleet.errors import (
    AuthenticationError,
    CancelledError,
    ClusterctlError,
    EdgeError,
    ParseError,
    UnreachableError,
    UsageError,
)
from clusterctl.fleet.finding import Origin
from clusterctl.fleet.node import Inventory
from clusterctl.ports import BmcAddress, Deadline
from tests.edges.redfish.conftest import QUICK, FixedClock
from tests.edges.redfish.replay import PASSWORD, SESSIONS, TOKEN, Bmc, Handler, certificate, drip, error, raw, serve
from tests.edges.redfish.trees import recorded
from tests.fake_timer import FakeTimer
from tests.faulty import Fault, drop, hang, status

Served = tuple[Bmc, BmcAddress]
ROOT = "/redfish/v1/"
SYSTEM = "/redfish/v1/Systems/1"


def soon(seconds: float = 60.0) -> Deadline:
    return Deadline.after(seconds)


def inventory(bmcs: RedfishBmcs, address: BmcAddress, deadline: Deadline | None = None) -> Inventory:
    with bmcs.open(address, deadline or soon()) as bmc:
        return bmc.inventory(deadline or soon()).value


def failure(bmcs: RedfishBmcs, served: Served, deadline: Deadline | None = None) -> ClusterctlError:
    """The error that reading the inventory ends in; it names the BMC, and no session is left behind."""
    server, address = served
    with pytest.raises(ClusterctlError) as caught:
        inventory(bmcs, address, deadline)
    assert caught.value.where.startswith(f"127.0.0.1:{address.port}")
    assert PASSWORD not in repr(caught.value) + str(caught.value)
    assert server.open_sessions == 0
    return caught.value


def test_inventory_and_evidence(bmcs: RedfishBmcs, served: Served) -> None:
    """One session, closed again; the evidence holds what was read, is real, and holds neither password nor token."""
    server, address = served
    with bmcs.open(address, soon()) as bmc:
        assert server.open_sessions == 1
        observed = bmc.inventory(soon())
    assert server.open_sessions == 0
    assert observed.value.serial == "EX00042"
    (evidence,) = observed.evidence
    assert (evidence.source, evidence.origin) == ("redfish walk", Origin.REAL)
    assert json.loads(evidence.content)["read"][SYSTEM]["SerialNumber"] == "EX00042"
    assert PASSWORD.encode() not in evidence.content
    assert TOKEN.encode() not in evidence.content
    assert [asked for asked in server.asked if asked[0] != "GET"] == [("POST", SESSIONS), ("DELETE", f"{SESSIONS}/7")]
    assert len(server.asked) == len(set(server.asked))


def test_evidence_of_a_marked_bmc_is_simulated(bmcs: RedfishBmcs, served: Served) -> None:
    """A service root with the marker marks everything that is read from it."""
    server, address = served
    server.tree["/redfish/v1"]["Oem"] = {"Clusterctl": {"Simulated": True}}
    with bmcs.open(address, soon()) as bmc:
        seen = [bmc.inventory(soon()), bmc.power(soon()), bmc.event_log(soon())]
    assert {observed.evidence[0].origin for observed in seen} == {Origin.SIMULATED}


def test_evidence_of_any_bmc_of_a_simulated_site_is_simulated(served: Served) -> None:
    """The site's setting holds, whatever the BMC claims."""
    _, address = served
    with RedfishBmcs(FixedClock(), QUICK, origin=Origin.SIMULATED).open(address, soon()) as bmc:
        assert bmc.power(soon()).evidence[0].origin is Origin.SIMULATED


@pytest.mark.parametrize(
    ("vendor", "serial", "most"),
    [("dell", "F54P1G3", 23), ("hpe", "MXQ302099S", 38), ("supermicro", "S889914X3710910", 35)],
)
def test_recorded_bmcs(bmcs: RedfishBmcs, tmp_path: Path, vendor: str, serial: str, most: int) -> None:
    """A walk of each recorded BMC is whole and takes no more requests than it did (root, log-in and log-out included)."""
    with serve(recorded(vendor), tmp_path) as (server, address):
        found = inventory(bmcs, address)
    assert found.serial == serial
    assert None not in (found.gpus, found.hcas, found.nics, found.drives, found.psus)
    assert len(server.asked) <= most


def test_the_event_log(bmcs: RedfishBmcs, served: Served) -> None:
    """Entries of all pages, newest first whatever their time zone; entries that are mere links are followed.

    A log that the BMC lists and does not give loses none of them, and stands there by its name.
    """
    _, address = served
    with bmcs.open(address, soon()) as bmc:
        lost, *found = bmc.event_log(soon()).value
    assert (lost.message_id, lost.log) == (UNREAD, "/redfish/v1/Managers/1/LogServices/Audit")
    assert [(entry.severity, entry.message) for entry in found] == [
        ("Warning", "Example.1.0.FanSlow"),
        ("Critical", "PSU 2 lost input"),
        ("OK", "Log cleared"),
    ]


def test_an_unknown_certificate_is_refused(bmcs: RedfishBmcs, served: Served, tmp_path: Path) -> None:
    """A BMC whose certificate the site's authority did not make gets neither log-in nor password."""
    server, address = served
    other = certificate(tmp_path, "other")
    for ca_file in (str(other), ""):
        with pytest.raises(EdgeError, match="certificate is not accepted"):
            inventory(bmcs, replace(address, ca_file=ca_file))
    assert server.asked == []


def test_a_certificate_for_another_name_is_refused(bmcs: RedfishBmcs, served: Served) -> None:
    """The right authority is not enough: the certificate must be for this address."""
    server, address = served
    with pytest.raises(EdgeError, match="certificate is not accepted"):
        inventory(bmcs, replace(address, host="localhost"))
    assert server.asked == []


def test_an_authority_that_is_no_file(bmcs: RedfishBmcs, served: Served, tmp_path: Path) -> None:
    """A wrong ca_file is the operator's error, and names the file."""
    missing = str(tmp_path / "none.pem")
    with pytest.raises(UsageError, match=r"none\.pem"):
        inventory(bmcs, replace(served[1], ca_file=missing))


def test_a_wrong_password_is_tried_once(bmcs: RedfishBmcs, served: Served) -> None:
    """BMCs lock accounts: after one 401 nothing is asked again."""
    server, address = served
    with pytest.raises(AuthenticationError) as caught:
        inventory(bmcs, replace(address, password="wrong-one"))
    assert "wrong-one" not in str(caught.value)
    assert [asked for asked in server.asked if asked[0] == "POST"] == [("POST", SESSIONS)]


def test_a_session_that_ends_early(bmcs: RedfishBmcs, served: Served) -> None:
    """A BMC that ends our session during the walk is logged in to once more, and the walk goes on. Both are closed."""
    server, address = served
    server.faults["GET", SYSTEM] = [status(401)] * 2
    server.faults["DELETE", f"{SESSIONS}/7"] = [status(401)]
    assert inventory(bmcs, address).serial == "EX00042"
    assert server.asked.count(("POST", SESSIONS)) == 2
    assert server.open_sessions == 0


def test_a_rejection_that_means_nothing(bmcs: RedfishBmcs, served: Served) -> None:
    """A single 401 in the middle of the walk: the read is repeated, for a token locks no account; no second log-in."""
    server, address = served
    server.faults["GET", SYSTEM] = [status(401)]
    assert inventory(bmcs, address).serial == "EX00042"
    assert server.asked.count(("POST", SESSIONS)) == 1


def test_a_session_that_does_not_hold(bmcs: RedfishBmcs, served: Served) -> None:
    """A BMC that rejects the new session as well is not logged in to for ever."""
    server, _ = served
    server.faults["GET", SYSTEM] = [status(401)] * 5
    assert isinstance(failure(bmcs, served), AuthenticationError)
    assert server.asked.count(("POST", SESSIONS)) == 2


def test_rejected_credentials_are_not_asked_again_in_a_run(bmcs: RedfishBmcs, served: Served) -> None:
    """One confirmed 401 per BMC and run: the next caller gets that error; other credentials are tried."""
    server, address = served
    wrong = replace(address, password="wrong-one")
    for _ in range(3):
        with pytest.raises(AuthenticationError):
            inventory(bmcs, wrong)
    assert server.asked.count(("POST", SESSIONS)) == 1
    assert inventory(bmcs, address).serial == "EX00042"


def test_a_bmc_without_sessions(bmcs: RedfishBmcs, served: Served) -> None:
    """User and password go with each request; wrong ones are sent once, and stand in no evidence and no error."""
    server, address = served
    del server.tree["/redfish/v1"]["Links"]
    with bmcs.open(address, soon()) as bmc:
        observed = bmc.inventory(soon())
    assert observed.value.serial == "EX00042"
    assert PASSWORD.encode() not in observed.evidence[0].content
    server.asked.clear()
    for _ in range(2):
        with pytest.raises(AuthenticationError):
            inventory(bmcs, replace(address, password="wrong-one"))
    assert [path for _, path in server.asked if path != ROOT] == ["/redfish/v1/Systems"]


@pytest.mark.parametrize(("threshold", "tries"), [(None, 5), (3, 2), (5, 4), (0, 5), ("x", 5)])
def test_wrong_rejections_are_passed_over_below_the_lock_out(
    bmcs: RedfishBmcs, served: Served, threshold: object, tries: int
) -> None:
    """HPE answers 401 now and then for nothing: tried again, but less often than the BMC bears."""
    server, address = served
    server.tree["/redfish/v1"]["Vendor"] = "HPE"
    if threshold is not None:
        server.faults["GET", "/redfish/v1/AccountService"] = [status(200, {"AccountLockoutThreshold": threshold})]
    server.faults["POST", SESSIONS] = [status(401)] * (tries - 1)
    assert inventory(bmcs, address).serial == "EX00042"
    server.asked.clear()
    if threshold is not None:
        server.faults["GET", "/redfish/v1/AccountService"] = [status(200, {"AccountLockoutThreshold": threshold})]
    with pytest.raises(AuthenticationError):
        inventory(bmcs, replace(address, password="wrong-one"))
    assert server.asked.count(("POST", SESSIONS)) == tries


def test_a_factory_password_is_reported_as_such(bmcs: RedfishBmcs, served: Served) -> None:
    """A BMC that does nothing before its password is changed (GB200): not a broken tree, but what to do."""
    server, _ = served
    refused = status(403, error("Base.1.13.PasswordChangeRequired", "The password must be changed."))
    server.faults["GET", "/redfish/v1/Systems"] = [refused]
    assert "factory password" in failure(bmcs, served).message


def test_no_free_session(bmcs: RedfishBmcs, served: Served) -> None:
    """A BMC that is full of sessions is waited for, then it is an error in our words, with what to do."""
    server, address = served
    full = error("IDRAC.2.8.RAC0218", "The maximum number of user sessions is reached.")
    server.faults["POST", SESSIONS] = [status(400, full)] * 3
    assert inventory(bmcs, address).serial == "EX00042"
    server.faults["POST", SESSIONS] = [status(400, full)] * 4
    caught = failure(bmcs, served)
    assert caught.message == "the BMC has no free session"
    assert caught.remedy


def test_a_busy_bmc_is_asked_again(bmcs: RedfishBmcs, served: Served) -> None:
    """503 and dropped connections are passed over, also at log-in; what was read in the end is whole."""
    server, address = served
    server.faults["GET", ROOT] = [drop]
    server.faults["POST", SESSIONS] = [status(503, Retry_After="0")]
    server.faults["GET", f"{SYSTEM}/Processors"] = [status(503), drop, status(503)]
    assert len(inventory(bmcs, address).gpus or ()) == 2


def test_a_resource_that_stays_busy(bmcs: RedfishBmcs, served: Served) -> None:
    """After four tries its lists are unmeasured, the rest is read."""
    server, address = served
    server.faults["GET", f"{SYSTEM}/Processors"] = [status(503)] * 4
    found = inventory(bmcs, address)
    assert (found.gpus, found.cpu_count) == (None, None)
    assert len(found.drives or ()) == 2


def test_broken_json(bmcs: RedfishBmcs, served: Served) -> None:
    """What is no JSON object is unmeasured; in the service's root it is an error."""
    server, address = served
    server.faults["GET", f"{SYSTEM}/Storage"] = [raw(b'{"Members": [')]
    server.faults["GET", f"{SYSTEM}/EthernetInterfaces"] = [raw(b"[" * 100_000)]
    found = inventory(bmcs, address)
    assert (found.complete("drives"), found.complete("nics")) == (False, False)
    server.faults["GET", ROOT] = [raw(b"<html>")] * 2
    assert isinstance(failure(bmcs, served), EdgeError | ParseError)


@pytest.mark.parametrize("fault", [hang, drip])
def test_a_bmc_that_hangs_ends_at_the_deadline(bmcs: RedfishBmcs, served: Served, fault: Fault) -> None:
    """Neither silence nor one byte at a time holds us longer than the deadline; the session is closed all the same."""
    timer = FakeTimer()
    served[0].faults["GET", f"{SYSTEM}/Storage"] = [timer.then(fault)]
    assert isinstance(failure(bmcs, served, Deadline.after(3600, timer=timer)), UnreachableError)


def test_cancelling_ends_a_wait(bmcs: RedfishBmcs, served: Served) -> None:
    """Ctrl-C is noticed while a BMC keeps silent, long before the deadline."""
    token = threading.Event()

    def cancelled(handler: Handler) -> None:
        token.set()
        hang(handler)

    served[0].faults["GET", f"{SYSTEM}/Storage"] = [cancelled]
    assert isinstance(failure(bmcs, served, Deadline.after(3600, token)), CancelledError)


def test_no_server_listens(bmcs: RedfishBmcs) -> None:
    """A closed port is an unreachable BMC."""
    with pytest.raises(UnreachableError, match="Connection refused"):
        inventory(bmcs, BmcAddress("127.0.0.1", "root", PASSWORD, 9, ""))


def test_a_port_without_tls(bmcs: RedfishBmcs) -> None:
    """A service that does not use TLS gets no password, and is not blamed for its certificate."""
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        with pytest.raises(EdgeError) as caught:
            inventory(bmcs, BmcAddress("127.0.0.1", "root", PASSWORD, server.server_address[1]))
    assert "no TLS with the BMC" in caught.value.message


def test_a_redirect_elsewhere_is_refused(bmcs: RedfishBmcs, served: Served) -> None:
    """The session's token is never carried to another host or to plain HTTP."""
    server, _ = served
    for target in ("https://127.0.0.2/redfish/v1/Systems", "http://127.0.0.1/redfish/v1/Systems"):
        server.faults["GET", "/redfish/v1/Systems"] = [status(302, Location=target)]
        assert isinstance(failure(bmcs, served), EdgeError)


def test_headers(bmcs: RedfishBmcs, served: Served) -> None:
    """No compression is asked for; HPE's connections, and those of writes, are used once."""
    server, address = served
    inventory(bmcs, address)
    assert {headers.get("Accept-Encoding") for headers in server.headers} == {"identity"}
    kept = {asked: headers.get("Connection") for asked, headers in zip(server.asked, server.headers, strict=True)}
    assert kept["POST", SESSIONS] == "close"
    assert kept["GET", SYSTEM] == "keep-alive"
    server.tree["/redfish/v1"]["Vendor"] = "HPE"
    server.headers.clear()
    inventory(bmcs, address)
    assert {headers.get("Connection") for headers in server.headers} == {"close"}


def test_compression_where_identity_is_refused(bmcs: RedfishBmcs, served: Served) -> None:
    """406 is answered by asking without the header."""
    server, address = served
    server.faults["GET", SYSTEM] = [status(406)]
    assert inventory(bmcs, address).serial == "EX00042"


def test_secrets_stay_out_of_the_log(bmcs: RedfishBmcs, served: Served, caplog: pytest.LogCaptureFixture) -> None:
    """Even with every logger at debug, and after a web server set up its own, neither password nor token is written."""
    logging.config.dictConfig({"version": 1, "incremental": False, "disable_existing_loggers": False})
    with caplog.at_level(logging.DEBUG):
        inventory(bmcs, served[1])
        failure(bmcs, (served[0], replace(served[1], password=PASSWORD + "-wrong")))
    assert PASSWORD not in caplog.text
    assert TOKEN not in caplog.text


def test_the_environment_is_ignored(bmcs: RedfishBmcs, served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy in the environment is not for BMCs."""
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    assert inventory(bmcs, served[1]).serial == "EX00042"


def test_a_session_that_cannot_be_closed_is_no_failure(
    bmcs: RedfishBmcs, served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    """The inventory stands; the log has that a session stays open."""
    caplog.set_level("WARNING", logger="clusterctl")
    served[0].faults["DELETE", f"{SESSIONS}/7"] = [status(500)]
    assert inventory(bmcs, served[1]).serial == "EX00042"
    assert "did not close our session" in caplog.text
