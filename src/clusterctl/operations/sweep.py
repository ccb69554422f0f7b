"""Conducts a sweep: which addresses, whose credentials; then says who was found and what does not fit."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click

from clusterctl.edges.redaction import KNOWN
from clusterctl.edges.redfish import KnownBmcs
from clusterctl.edges.redfish.sweep import CandidateProbe, SweepResult, TcpState, sweep
from clusterctl.edges.site import Site, load_site
from clusterctl.edges.site.sheet_update import SheetUpdate, sheet_update
from clusterctl.edges.site.sweep_logins import SweepLogins
from clusterctl.fleet.bmc.observation import Lease, Listed, Outcome, Planned
from clusterctl.fleet.bmc.reconciliation import Reconciliation, join
from clusterctl.fleet.bmc.targets import targets
from clusterctl.fleet.errors import EnvironmentBrokenError, UsageError
from clusterctl.formats.file_text import text_in
from clusterctl.formats.site.leases import read_leases
from clusterctl.formats.site.sheets import read_bmc_list
from clusterctl.operations.recorded import content
from clusterctl.operations.trust import known_bmcs
from clusterctl.ports import BmcAddress, Deadline
from clusterctl_cli import render_sweep
from clusterctl_cli.options import say_notices
from clusterctl_cli.stopping import stoppable
from clusterctl_cli.sweep_board import SweepBoard

PORT = 443
SWEEP_SECONDS = 24 * 3600.0
"""Each visit has its own limit; this is for a network that answers for ever."""


@dataclass(frozen=True, slots=True)
class SweepOrder:
    """What a person asked for."""

    networks: tuple[str, ...]
    exclude: tuple[str, ...]
    limit_hosts: int
    leases: tuple[Path, ...]
    lists: tuple[Path, ...]
    write: Path | None
    no_login: bool
    yes: bool
    dry_run: bool
    as_json: bool


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known before anybody is asked; `site` is None where there is none, and nobody logs in."""

    site: Site | None
    leases: tuple[Lease, ...]
    listed: tuple[Listed, ...]

    @property
    def planned(self) -> tuple[Planned, ...]:
        nodes = self.site.nodes if self.site is not None else ()
        return tuple(Planned(node.where, node.name, node.bmc, node.serial, node.rack, node.unit) for node in nodes)

    @property
    def port(self) -> int:
        return self.site.settings.bmc.reached_at if self.site is not None else PORT

    def door(self, host: str) -> BmcAddress:
        return self.site.bmc_at(host) if self.site is not None else BmcAddress(host, "", "", PORT)


def conduct_sweep(folder: Path, order: SweepOrder) -> int:
    """The exit code: 0 when every BMC that answers was identified and all fits together, else 1."""
    hosts = targets(order.networks, order.exclude, most=order.limit_hosts, public=order.yes)
    known = _known(folder, order)
    if order.write is not None and order.no_login:
        raise UsageError("needs serials, which BMCs tell after a login", where="--write", remedy="leave --no-login out")
    if order.dry_run:
        login = "log in to nobody" if order.no_login else "log in once to each BMC whose certificate is trusted"
        click.echo(f"would ask {len(hosts)} addresses on port {known.port}, and {login}")
        return 0
    say_notices(_notices(known, order))
    found = _sweep(folder, known, hosts, order)
    addressing = join(
        found.sightings, asked=frozenset(hosts), leases=known.leases, listed=known.listed, planned=known.planned
    )
    update = _updated(addressing, known, order)
    addressing = addressing.settled() if update is not None else addressing
    _tell(addressing, found, update, order)
    return 0 if _all_fine(addressing, order) else 1


def _known(folder: Path, order: SweepOrder) -> _Known:
    bare = order.no_login and not (folder / "site.yml").exists()
    site = None if bare else load_site(folder, may_be_empty=True)
    leases = [lease for file in order.leases for lease in read_leases(text_in(content(file), str(file)), str(file))]
    listed = [machine for file in order.lists for machine in _listed(file)]
    if site is not None and not order.no_login:
        site.logins.check()
    factory = site.logins.factory.machines if site is not None else ()
    return _Known(site, tuple(leases), (*listed, *factory))


def _listed(file: Path) -> Iterator[Listed]:
    for row in read_bmc_list(text_in(content(file), str(file)), str(file)):
        if row.password:
            remedy = "name it in site.yml as bmc.factory (mode 0600): then it is used, and read by nobody else"
            raise UsageError("holds passwords", where=row.machine.where, remedy=remedy)
        yield row.machine


def _notices(known: _Known, order: SweepOrder) -> Iterator[str]:
    if known.site is None or order.no_login:
        return
    bmc = known.site.settings.bmc
    if bmc.scheme == "http":
        yield "BMCs are asked over plain HTTP: the network can read their passwords (bmc.allow_plain_http)"
    elif bmc.first_use == "pin":
        yield "the certificate that a BMC shows first is believed and pinned (bmc.first_use)"


def _sweep(folder: Path, known: _Known, hosts: Sequence[str], order: SweepOrder) -> SweepResult:
    cancelled = threading.Event()
    pins = known_bmcs(known.site) if known.site is not None else KnownBmcs(folder / "state" / "bmc_pins")
    macs = {lease.address: lease.mac for lease in known.leases}
    logins = SweepLogins(known.site, macs) if known.site is not None and not order.no_login else None
    probe = CandidateProbe(known.door, logins, replace(pins, learn=False) if order.no_login else pins)
    with stoppable(cancelled), SweepBoard(len(hosts)) as board:
        found = sweep(hosts, known.port, probe, Deadline.after(SWEEP_SECONDS, cancelled), watch=board.watch)
    if found.count(TcpState.NO_ROUTE) == len(hosts):
        remedy = f"check the controller's way to the BMCs' network: ip route get {hosts[0]}"
        raise EnvironmentBrokenError("there is no route to any of them", where=", ".join(order.networks), remedy=remedy)
    return found


def _updated(addressing: Reconciliation, known: _Known, order: SweepOrder) -> SheetUpdate | None:
    if order.write is None or known.site is None:
        return None
    settings = known.site.settings
    logins = frozenset(login.name for login in settings.bmc.logins)
    update = sheet_update(order.write, addressing.sound, logins, settings.nodes.name_prefix)
    update.write()
    return update


def _tell(addressing: Reconciliation, found: SweepResult, update: SheetUpdate | None, order: SweepOrder) -> None:
    if order.as_json:
        document = render_sweep.sweep_json(addressing, found.ports, order.networks, update)
        click.echo(KNOWN(json.dumps(document, indent=2, ensure_ascii=False)))
    else:
        click.echo(KNOWN(render_sweep.sweep_text(addressing, found.ports, update)))


def _all_fine(addressing: Reconciliation, order: SweepOrder) -> bool:
    fine = {Outcome.IDENTIFIED, *((Outcome.NO_LOGIN, Outcome.CERTIFICATE_UNKNOWN) if order.no_login else ())}
    identified = all(entry.sighting.outcome in fine for entry in addressing.entries)
    return bool(addressing.entries) and identified and not addressing.conflicts
