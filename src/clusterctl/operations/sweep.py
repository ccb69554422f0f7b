"""Sweep of networks for BMCs: which addresses are asked, with which credentials, and what was found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from clusterctl.edges.redfish import KnownBmcs
from clusterctl.edges.redfish.sweep import CandidateProbe, ScanProgress, ScanResult, TcpState
from clusterctl.edges.redfish.sweep import sweep as sweep_networks
from clusterctl.edges.site import Site, load_site
from clusterctl.edges.site.logins import SweepLogins
from clusterctl.edges.site.sheet_update import sheet_update
from clusterctl.fleet.bmc.observation import Lease, Listed, Planned, SweepOutcome
from clusterctl.fleet.bmc.reconciliation import Reconciliation, join
from clusterctl.fleet.bmc.targets import MOST, targets
from clusterctl.fleet.errors import EnvironmentBrokenError, UsageError
from clusterctl.formats.file_text import text_in
from clusterctl.formats.site.leases import read_leases
from clusterctl.formats.site.sheets import read_bmc_list
from clusterctl.operations.documents import content
from clusterctl.operations.operation import Control, Effect, Preview
from clusterctl.operations.site_facts import known_bmcs
from clusterctl.ports import BmcAddress, Deadline

PORT = 443
SWEEP_SECONDS = 24 * 3600.0
"""Each visit has its own limit; this is for a network that answers for ever."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepRequest:
    """Which addresses are asked.

    networks, exclude  in CIDR notation
    limit_hosts        more addresses than this are refused; None: `fleet.networks.MOST`
    leases, lists      lease files and CSV lists of machines
    write              a sheet that is brought up to date with what was found
    no_login           no login anywhere: only what BMCs report without one; needs no site
    public             public addresses, too
    """

    networks: tuple[str, ...]
    exclude: tuple[str, ...] = ()
    limit_hosts: int | None = None
    leases: tuple[Path, ...] = ()
    lists: tuple[Path, ...] = ()
    write: Path | None = None
    no_login: bool = False
    public: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepProgress:
    """How many of `hosts` addresses were asked, how many answered (`open`), and how many of these were read."""

    hosts: int
    asked: int
    open: int
    read: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SheetChanges:
    """`changes`: one sentence each; none where the sheet was up to date."""

    file: Path
    changes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepResult:
    """What was found.

    ports   number of scanned ports by state (`open`, `closed` …)
    update  what changed in the sheet; None where none was to be written
    """

    addressing: Reconciliation
    ports: Mapping[str, int]
    networks: tuple[str, ...]
    update: SheetChanges | None
    fine: bool

    @property
    def exit_code(self) -> int:
        """0: every BMC that answers was identified and all fits together."""
        return 0 if self.fine else 1


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known before the first address is asked; `site` is None where there is none."""

    site: Site | None
    leases: tuple[Lease, ...]
    listed: tuple[Listed, ...]

    @property
    def planned(self) -> tuple[Planned, ...]:
        nodes = self.site.with_bmc if self.site is not None else ()
        return tuple(Planned(node.where, node.name, node.bmc, node.serial, node.rack, node.unit) for node in nodes)

    @property
    def port(self) -> int:
        return self.site.settings.bmc.reached_at if self.site is not None else PORT

    def address_of(self, host: str) -> BmcAddress:
        return self.site.bmc_at(host) if self.site is not None else BmcAddress(host, "", "", PORT)


def preview(folder: Path, request: SweepRequest) -> Preview:
    """Return how many addresses would be asked. Raises `UsageError` for wrong networks, lists or options."""
    hosts, known = _hosts(request), _known(folder, request)
    login = "no login" if request.no_login else "one login to each BMC with a trusted certificate"
    text = f"ask {len(hosts)} addresses on port {known.port}, {login}"
    return Preview(
        operation="discover --sweep",
        question=f"{text[0].upper()}{text[1:]}?",
        effects=(Effect(node="", text=text),),
        warnings=tuple(_warnings(known, request)),
    )


def sweep(folder: Path, request: SweepRequest, control: Control) -> SweepResult:
    """Ask the addresses, join what was found with leases, lists and sheet, and bring the sheet up to date.

    Events: `SweepProgress`.
    """
    hosts, known = _hosts(request), _known(folder, request)
    found = _sweep(folder, known, hosts, request, control)
    addressing = join(
        found.observations, asked=frozenset(hosts), leases=known.leases, listed=known.listed, planned=known.planned
    )
    update = _updated(addressing, known, request)
    addressing = addressing.settled() if update is not None else addressing
    return SweepResult(
        addressing=addressing,
        ports={state.value: found.count(state) for state in TcpState},
        networks=request.networks,
        update=update,
        fine=_all_fine(addressing, request),
    )


def _hosts(request: SweepRequest) -> Sequence[str]:
    if request.write is not None and request.no_login:
        remedy = "leave --no-login out"
        raise UsageError("needs serials, which BMCs report after a login", where="--write", remedy=remedy)
    return targets(request.networks, request.exclude, most=request.limit_hosts or MOST, public=request.public)


def _known(folder: Path, request: SweepRequest) -> _Known:
    bare = request.no_login and not (folder / "site.yml").exists()
    site = None if bare else load_site(folder, may_be_empty=True)
    leases = [lease for file in request.leases for lease in read_leases(text_in(content(file), str(file)), str(file))]
    listed = [machine for file in request.lists for machine in _listed(file)]
    if site is not None and not request.no_login:
        site.logins.check()
    factory = site.logins.factory.machines if site is not None else ()
    return _Known(site, tuple(leases), (*listed, *factory))


def _listed(file: Path) -> Iterator[Listed]:
    for row in read_bmc_list(text_in(content(file), str(file)), str(file)):
        if row.password:
            remedy = "name it in site.yml as bmc.factory (mode 0600): then it is used, and no other user can read it"
            raise UsageError("holds passwords", where=row.machine.where, remedy=remedy)
        yield row.machine


def _warnings(known: _Known, request: SweepRequest) -> Iterator[str]:
    if known.site is None or request.no_login:
        return
    bmc = known.site.settings.bmc
    if bmc.scheme == "http":
        yield "BMCs are asked over plain HTTP: the network can read their passwords (bmc.allow_plain_http)"
    elif bmc.first_use == "pin":
        yield "the certificate that a BMC shows first is believed and pinned (bmc.first_use)"


def _sweep(folder: Path, known: _Known, hosts: Sequence[str], request: SweepRequest, control: Control) -> ScanResult:
    pins = known_bmcs(known.site) if known.site is not None else KnownBmcs(folder / "state" / "bmc_pins")
    macs = {lease.address: lease.mac for lease in known.leases}
    logins = (
        SweepLogins(known.site.logins, known.site.nodes, macs)
        if known.site is not None and not request.no_login
        else None
    )
    probe = CandidateProbe(known.address_of, logins, replace(pins, learn=False) if request.no_login else pins)
    deadline = Deadline.after(SWEEP_SECONDS, control.cancelled)

    def watch(done: ScanProgress) -> None:
        control.on_event(SweepProgress(hosts=len(hosts), asked=done.scanned, open=done.open, read=done.probed))

    found = sweep_networks(hosts, known.port, probe, deadline, watch=watch)
    if found.count(TcpState.NO_ROUTE) == len(hosts):
        remedy = f"check the controller's way to the BMCs' network: ip route get {hosts[0]}"
        raise EnvironmentBrokenError(
            "there is no route to any of them", where=", ".join(request.networks), remedy=remedy
        )
    return found


def _updated(addressing: Reconciliation, known: _Known, request: SweepRequest) -> SheetChanges | None:
    if request.write is None or known.site is None:
        return None
    settings = known.site.settings
    logins = frozenset(login.name for login in settings.bmc.logins)
    update = sheet_update(request.write, addressing.accepted, logins, settings.nodes.name_prefix)
    update.write()
    return SheetChanges(file=update.file, changes=update.changes)


def _all_fine(addressing: Reconciliation, request: SweepRequest) -> bool:
    without_login = (SweepOutcome.NO_LOGIN, SweepOutcome.CERTIFICATE_UNKNOWN) if request.no_login else ()
    fine = {SweepOutcome.IDENTIFIED, SweepOutcome.OTHER_DEVICE, *without_login}
    identified = all(entry.observation.outcome in fine for entry in addressing.entries)
    return bool(addressing.entries) and identified and not addressing.conflicts
