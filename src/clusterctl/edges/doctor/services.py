"""Checks of the services that a site depends on: its BMCs, its MAAS, its UFM, and their clocks.

All BMCs are asked at once for their Redfish root: this proves route, TCP, TLS and Redfish, and sends the BMC's clock.
No BMC is logged in to, so that a wrong password locks no account. The Redfish client is not used for it: it makes a
trust store for each connection, which for 511 BMCs takes longer than their answers.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import socket
import ssl
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from statistics import median

import requests

from clusterctl.edges.answers import answer_session, send
from clusterctl.edges.maas import MaasSettings
from clusterctl.edges.maas.api import MaasApi
from clusterctl.edges.maas.machines import Machines
from clusterctl.edges.processes import run
from clusterctl.edges.redfish.transport import translated
from clusterctl.edges.site import Site
from clusterctl.edges.tls import Trust
from clusterctl.edges.ufm import site_ufm
from clusterctl.fleet.diagnosis import Diagnosis, broken, enumerated, not_measured, ok, warn
from clusterctl.fleet.errors import ClusterctlError, EdgeError, UnreachableError, UntrustedError
from clusterctl.formats.certificate_pin import with_colons
from clusterctl.ports import BmcAddress, Clock, Deadline

BMC_SECONDS = 3.0
ALL_BMCS_SECONDS = 9.0
AT_ONCE = 256
"""Of 511 BMCs of which none answers, all are asked in two rounds of `BMC_SECONDS`."""
MAAS_SECONDS = 6.0
UFM_SECONDS = 8.0
TIMEDATECTL_SECONDS = 3.0
MAAS_LIMIT_S = 240
"""MAAS refuses signatures (OAuth 1.0, RFC 5849, 3.3) that are five minutes off; one minute is kept in reserve."""
BMC_LIMIT_S = 60
_DOING = "asking for its Redfish service"
_IDLE = "run it again on an idle machine"


@dataclass(frozen=True, slots=True)
class ServiceState:
    """How one service answered: the error, or how many seconds its clock is ahead of ours (None: it sent no time).

    user       the user of our key, where it is MAAS
    new        the BMC's certificate would be pinned on first use
    """

    error: ClusterctlError | None = None
    offset_s: float | None = None
    user: str = ""
    new: bool = False


@dataclass(frozen=True, slots=True)
class UfmState:
    """How UFM answered: the error, or its version and how many systems and unhealthy ports it reports.

    unreadable  the event log that the site names and that cannot be read; empty where it can, or none is named
    """

    error: ClusterctlError | None = None
    version: str = ""
    systems: int = 0
    unhealthy: int = 0
    unreadable: str = ""


@dataclass(frozen=True, slots=True)
class ControllerProbe:
    """A controller with its site, and the answers of the network, each requested once. `bmcs` is by the BMC's address
    and lacks those that were not asked in time.
    """

    site: Site
    bmcs: Future[Mapping[str, ServiceState]]
    maas: Future[ServiceState]
    ufm: Future[UfmState]


def clock_offset(date: str | None, now: datetime) -> float | None:
    """Return the seconds by which a service's clock is ahead of ours; None where it sent no time that can be read.

    `date` is the header of RFC 9110, 6.6.1, to the second.
    """
    try:
        parsed = parsedate_to_datetime(date or "")
    except ValueError:
        return None
    if parsed.tzinfo is None:
        parsed = parsed.replace(tzinfo=UTC)
    return (parsed - now).total_seconds()


# --- BMCs -------------------------------------------------------------------------------------------------------------


def ask_bmcs(
    addresses: Sequence[BmcAddress], *, first_use: bool, within_s: float = ALL_BMCS_SECONDS
) -> Mapping[str, ServiceState]:
    """Return the answers that came in time, by address. `first_use`: the site pins unknown certificates."""
    deadline = Deadline.after(within_s)
    trusts = {Trust(address.ca_file, address.fingerprint) for address in addresses if not address.plain_http}
    prober = _BmcProber({trust: trust.client() for trust in trusts}, deadline, first_use=first_use)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        asked = {pool.submit(prober, address): address.host for address in addresses}
        done, _ = wait(asked, timeout=deadline.remaining)
        pool.shutdown(wait=False, cancel_futures=True)
        prober.disconnect()
        return {asked[future]: future.result() for future in done}


class _BmcProber:
    """Asks one BMC at each call. Thread-safe."""

    def __init__(self, contexts: Mapping[Trust, ssl.SSLContext], deadline: Deadline, *, first_use: bool) -> None:
        self._contexts = contexts
        self._deadline = deadline
        self._first_use = first_use
        self._connections: list[HTTPConnection] = []

    def disconnect(self) -> None:
        """End every connection: a BMC that sends a byte now and then must not keep the process alive."""
        for connection in list(self._connections):
            with contextlib.suppress(OSError, AttributeError):
                connection.sock.shutdown(socket.SHUT_RDWR)

    def __call__(self, address: BmcAddress) -> ServiceState:
        try:
            return self._ask(address)
        except UntrustedError as error:
            new = self._first_use and not (address.fingerprint or address.ca_file)
            return ServiceState(new=True) if new else ServiceState(error)
        except ClusterctlError as error:
            return ServiceState(error)

    def _ask(self, address: BmcAddress) -> ServiceState:
        self._deadline.check(_DOING)
        connection = self._connection(address)
        self._connections.append(connection)
        with contextlib.closing(connection):
            response = _translating(lambda: _root_of(connection, address))
        if response.status not in (200, 401):
            remedy = "check that this is a BMC's address, and that its Redfish service is on"
            raise EdgeError(f"no Redfish service: HTTP {response.status}", remedy=remedy)
        return ServiceState(offset_s=clock_offset(response.headers.get("Date"), datetime.now(UTC)))

    def _connection(self, address: BmcAddress) -> HTTPConnection:
        seconds = max(0.1, min(BMC_SECONDS, self._deadline.remaining))
        if address.plain_http:
            return HTTPConnection(address.host, address.port, timeout=seconds)
        context = self._contexts[Trust(address.ca_file, address.fingerprint)]
        return HTTPSConnection(address.host, address.port, timeout=seconds, context=context)


def _root_of(connection: HTTPConnection, address: BmcAddress) -> HTTPResponse:
    connection.connect()
    if address.fingerprint and isinstance(connection.sock, ssl.SSLSocket):
        found = hashlib.sha256(connection.sock.getpeercert(binary_form=True) or b"").hexdigest()
        if found != address.fingerprint:
            raise UntrustedError(
                f"the BMC's TLS certificate is not the pinned one, but {with_colons(found)}",
                remedy="find out which machine answers there; change the pin only if its certificate was renewed",
            )
    connection.request("GET", "/redfish/v1/", headers={"Accept": "application/json", "Connection": "close"})
    return connection.getresponse()


def _translating(ask: Callable[[], HTTPResponse]) -> HTTPResponse:
    try:
        return ask()
    except TimeoutError:
        remedy = "check its power, its cable and its address"
        raise UnreachableError("the BMC does not answer", remedy=remedy) from None
    except OSError as error:
        raise translated(error, _DOING) from None
    except HTTPException:
        raise EdgeError("the peer does not answer in HTTP", remedy="check that this is a BMC's address") from None


def judge_bmcs(names: Mapping[str, str], states: Mapping[str, ServiceState]) -> Diagnosis:
    """Judge all BMCs. `names` maps a BMC's address to its node.

    Broken where no BMC answers. Where some do not, the controller is not at fault: a warning.
    """
    name = "bmcs"
    failed = {host: state.error for host, state in states.items() if state.error is not None}
    good = len(states) - len(failed)
    if not states:
        return not_measured(name, f"none of {len(names)} could be asked in time", _IDLE)
    if failed:
        return _failed(names, failed, good)
    missed = len([host for host in names if host not in states])
    if missed:
        return not_measured(name, f"{good} answer, {missed} could not be asked in time", _IDLE)
    new = sum(state.new for state in states.values())
    return ok(name, f"all {good} answer{f', {new} to be pinned on first use' if new else ''}")


def _failed(names: Mapping[str, str], failed: Mapping[str, ClusterctlError], good: int) -> Diagnosis:
    """Report the most common reason, its nodes and its remedy."""
    reason, count = Counter(error.message for error in failed.values()).most_common(1)[0]
    same = {host: error for host, error in failed.items() if error.message == reason}
    nodes = enumerated([f"{node} ({host})" for host, node in names.items() if host in same])
    others = f"; {len(failed) - count} others fail for other reasons" if len(failed) > count else ""
    message = f"{len(failed)} of {len(names)} fail; {nodes}: {reason}{others}"
    remedy = next(iter(same.values())).remedy or "check the route to the BMC network: ip route get ADDRESS"
    if good:
        return warn("bmcs", message, remedy)
    return broken("bmcs", message, f"check the route to the BMC network first; then: {remedy}")


# --- MAAS -------------------------------------------------------------------------------------------------------------


def ask_maas(site: Site, clock: Clock) -> ServiceState:
    """Ask MAAS for the user of our key, which proves route, TLS and key, then for its clock."""
    maas = site.settings.maas
    if maas is None:
        return ServiceState()
    try:
        settings = MaasSettings(
            url=maas.url,
            api_key=site.maas_api_key(),
            series=maas.series,
            ca_file=site.path(maas.ca_file),
            tls_fingerprint=maas.tls_fingerprint,
            allow_plain_http=maas.allow_plain_http,
        )
        deadline = Deadline.after(MAAS_SECONDS)
        user = Machines(MaasApi(settings, clock)).whoami(deadline).name
    except ClusterctlError as error:
        return ServiceState(error)
    return ServiceState(offset_s=_maas_offset(settings, deadline), user=user)


def _maas_offset(settings: MaasSettings, deadline: Deadline) -> float | None:
    """Read MAAS's clock from an answer that needs no key; None where MAAS does not send it."""
    with answer_session(settings.trust) as session:
        try:
            answer = send(session, requests.Request("GET", f"{settings.base}/version/"), deadline)
        except requests.exceptions.RequestException:
            return None
    return clock_offset(answer.headers.get("date"), datetime.now(UTC))


def judge_maas(url: str, state: ServiceState) -> Diagnosis:
    """Judge MAAS; `url` is empty where the site has none."""
    if not url:
        return ok("maas", "the site has none")
    if state.error is not None:
        remedy = state.error.remedy or "check provisioning.url, the network, and that MAAS runs"
        return broken("maas", f"{url}: {state.error.message}", remedy)
    return ok("maas", f"{url} accepts our key, of user {state.user}")


# --- UFM --------------------------------------------------------------------------------------------------------------


def ask_ufm(site: Site, clock: Clock) -> UfmState:
    """Ask UFM for its version, which proves route, TLS and login, then for its systems and unhealthy ports."""
    settings = site.settings.fabric.ufm
    if settings is None:
        return UfmState()
    deadline = Deadline.after(UFM_SECONDS)
    try:
        with contextlib.closing(site_ufm(site, settings, clock)) as ufm:
            version = ufm.version(deadline)
            systems = len(ufm.systems(deadline).value)
            unhealthy = len(ufm.unhealthy_ports(deadline).value)
    except ClusterctlError as error:
        return UfmState(error)
    log = site.path(settings.event_log)
    return UfmState(None, version, systems, unhealthy, "" if not log or os.access(log, os.R_OK) else log)


def judge_ufm(url: str, state: UfmState) -> Diagnosis:
    """Judge UFM; `url` is empty where the site has none."""
    if not url:
        return ok("ufm", "the site has none")
    if state.error is not None:
        remedy = state.error.remedy or "check fabric.ufm.url, the network, and that UFM runs"
        return broken("ufm", f"{url}: {state.error.message}", remedy)
    found = f"{url} is UFM {state.version}, with {state.systems} systems"
    if not state.systems:
        remedy = "see that UFM's subnet manager is master and discovers the fabric, or restart UFM on its host"
        return broken("ufm", f"{found}: its model of the fabric is empty", remedy)
    if state.unreadable:
        return warn("ufm", f"{found}; {state.unreadable} cannot be read", "correct fabric.ufm.event_log, or its mode")
    return ok("ufm", f"{found} and {state.unhealthy} unhealthy ports")


# --- clocks -----------------------------------------------------------------------------------------------------------


def judge_clock(maas: float | None, bmcs: Mapping[str, float], *, synchronised: bool | None) -> Diagnosis:
    """Judge offsets in seconds, positive where the other clock is ahead of ours, by node for BMCs.

    `synchronised`: whether a time service keeps our clock; None where that is unknown.
    """
    name, remedy = "clock", "set up a time service: apt-get install chrony"
    if maas is not None and abs(maas) > MAAS_LIMIT_S:
        return broken(name, f"MAAS's clock differs by {maas:+.0f} s: it will refuse our key", remedy)
    if maas is None and not bmcs:
        return _judge_unmeasured_clock(synchronised, remedy)
    off = {node: offset for node, offset in bmcs.items() if abs(offset) > BMC_LIMIT_S}
    if off and len(off) > len(bmcs) / 2:
        return warn(name, f"differs from the BMCs' by {median(bmcs.values()):+.0f} s (median of {len(bmcs)})", remedy)
    if off:
        message = f"{len(off)} BMCs' clocks are more than {BMC_LIMIT_S} s off: {enumerated(sorted(off))}"
        return warn(name, message, "set NTP on those BMCs: their event logs are dated by these clocks")
    return ok(name, _agreement(maas, bmcs, synchronised))


def _agreement(maas: float | None, bmcs: Mapping[str, float], synchronised: bool | None) -> str:
    """Return the largest offset, and from which clocks: `within 3 s of 8 BMCs and MAAS`."""
    doubt = "; no time service synchronises it" if synchronised is False else ""
    others = [f"{len(bmcs)} BMCs"] if bmcs else []
    offsets = [*bmcs.values()]
    if maas is not None:
        others.append("MAAS")
        offsets.append(maas)
    return f"within {max(map(abs, offsets)):.0f} s of {' and '.join(others)}{doubt}"


def _judge_unmeasured_clock(synchronised: bool | None, remedy: str) -> Diagnosis:
    """Judge a clock that no other clock was compared with."""
    if synchronised:
        return ok("clock", "a time service synchronises it")
    message = "no time service synchronises it" if synchronised is False else "whether it is right is unknown"
    return not_measured("clock", message, remedy)


def is_synchronised() -> bool | None:
    """Return what systemd reports of NTP (timedatectl(1)); None where there is no systemd."""
    program = shutil.which("timedatectl")
    if program is None:
        return None
    argv = (program, "show", "--property=NTPSynchronized", "--value")
    try:
        ran = run(argv, Deadline.after(TIMEDATECTL_SECONDS))
    except EdgeError:
        return None
    return {"yes": True, "no": False}.get(ran.stdout.strip()) if ran.exit_status == 0 else None


def _check_bmcs(probe: ControllerProbe) -> Diagnosis:
    names = _names(probe.site)
    return judge_bmcs(names, probe.bmcs.result()) if names else ok("bmcs", "the site gives no machine a BMC")


def _check_maas(probe: ControllerProbe) -> Diagnosis:
    maas = probe.site.settings.maas
    return judge_maas(maas.url if maas is not None else "", probe.maas.result())


def _check_ufm(probe: ControllerProbe) -> Diagnosis:
    ufm = probe.site.settings.fabric.ufm
    return judge_ufm(ufm.url if ufm is not None else "", probe.ufm.result())


def _check_clock(probe: ControllerProbe) -> Diagnosis:
    names, states = _names(probe.site), probe.bmcs.result()
    offsets = {names[host]: state.offset_s for host, state in states.items() if state.offset_s is not None}
    return judge_clock(probe.maas.result().offset_s, offsets, synchronised=is_synchronised())


def _names(site: Site) -> dict[str, str]:
    return {node.bmc: node.name for node in site.with_bmc}


CHECKS: Mapping[str, Callable[[ControllerProbe], Diagnosis]] = {
    "bmcs": _check_bmcs,
    "maas": _check_maas,
    "ufm": _check_ufm,
    "clock": _check_clock,
}
