"""Network cables: an Ethernet plan against the LLDP neighbours that files record and that the site's hosts report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from clusterctl.cabling.ethernet.findings import MissingReport
from clusterctl.cabling.ethernet.verify import EthernetVerification, verify_ethernet
from clusterctl.edges.site import contents
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.fabric.wiring import WiringPlan, settle
from clusterctl.fleet.finding import Digest
from clusterctl.fleet.network.lldp import LldpReport
from clusterctl.fleet.node import Stage, Step
from clusterctl.formats.file_text import text_in
from clusterctl.formats.host.lldp import parse_lldpctl
from clusterctl.formats.wiring.csv_plan import read_ethernet_csv
from clusterctl.operations.adapters import Access
from clusterctl.operations.context import SiteContext
from clusterctl.operations.documents import as_usage, content
from clusterctl.operations.operation import Control
from clusterctl.ports import Deadline
from clusterctl.steps.cable.lldp import LldpReader, LldpReadings
from clusterctl.steps.executor.reachability import SshAccess


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkCablesRequest:
    """What is compared.

    plan        an Ethernet plan; None: the site's, for a live reading only
    recorded    files, named after the device that printed them (`node001.json`), or folders of such files
    deadline_s  seconds for a live reading
    """

    plan: Path | None = None
    recorded: tuple[Path, ...] = ()
    deadline_s: float = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveReading:
    """How the hosts answered: the evidence by host, and why others gave no report."""

    evidence: Mapping[str, tuple[Digest, ...]] = field(default_factory=dict)
    silent: Mapping[str, MissingReport] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkCablesResult:
    """`live`: None where only files were read."""

    verification: EthernetVerification
    live: LiveReading | None = None

    @property
    def exit_code(self) -> int:
        """0: every planned cable was measured and is right, no report claims another, and no host was silent."""
        silent = self.live is not None and self.live.silent
        found = self.verification
        return 1 if found.explanations or found.unmeasured or found.disputed or silent else 0


def run_recorded(request: NetworkCablesRequest) -> NetworkCablesResult:
    """Compare the plan with recorded reports."""
    if request.plan is None or not request.recorded:
        option = "--ethernet" if request.plan is None else "--lldp"
        remedy = "give --ethernet and --lldp together, or --live"
        raise UsageError("it is required", where=option, remedy=remedy)
    reports = recorded_reports(request.recorded)
    return NetworkCablesResult(verification=verify_ethernet(_plan_in(request.plan), reports, {}))


def run_live(context: SiteContext, request: NetworkCablesRequest, control: Control) -> NetworkCablesResult:
    """Compare the plan with what the site's installed hosts report now, and with recorded reports of others."""
    plan = _plan_in(request.plan) if request.plan is not None else contents.ethernet_plan(context.site)
    if plan is None:
        remedy = "give --ethernet FILE, or name the file in site.yml: fabric.ethernet"
        raise UsageError("the site names no Ethernet plan", where="--ethernet", remedy=remedy)
    reports = recorded_reports(request.recorded)
    found = _read(context, plan.hosts, Deadline.after(request.deadline_s, control.cancelled))
    live = LiveReading(
        evidence={name: tuple(item.digest for item in items) for name, items in found.evidence.items()},
        silent=found.unheard,
    )
    verification = verify_ethernet(plan, {**found.reports, **reports}, found.reasons)
    return NetworkCablesResult(verification=verification, live=live)


def recorded_reports(recorded: Iterable[Path]) -> dict[str, LldpReport]:
    """Return the reports by device. A device may have two files: `node001.json` holds its neighbours,
    `node001.interfaces.json` its own ports.
    """
    reports: dict[str, LldpReport] = {}
    for file in _files(recorded):
        with as_usage():
            report = parse_lldpctl(text_in(content(file), str(file)), file=str(file))
        device = _device(file)
        known = reports.get(device, LldpReport(()))
        neighbours = tuple(dict.fromkeys((*known.neighbours, *report.neighbours)))
        reports[device] = LldpReport(neighbours, {**known.interfaces, **report.interfaces})
    return reports


def _plan_in(file: Path) -> WiringPlan:
    return settle(read_ethernet_csv(text_in(content(file), str(file)), str(file)))


def _files(recorded: Iterable[Path]) -> list[Path]:
    files: list[Path] = []
    for path in recorded:
        found = sorted([*path.glob("*.json"), *path.glob("*.json.gz")]) if path.is_dir() else [path]
        if not found:
            remedy = "put what `lldpctl -f json0` printed on each device there, as DEVICE.json"
            raise UsageError("no *.json in it", where=str(path), remedy=remedy)
        files += found
    return files


def _device(file: Path) -> str:
    name = file.name
    for suffix in (".gz", ".json", ".interfaces"):
        name = name.removesuffix(suffix)
    return name


def _read(context: SiteContext, hosts: Iterable[str], deadline: Deadline) -> LldpReadings:
    """Read all installed nodes of the site over SSH, and keep the evidence; other `hosts` are missing."""
    settings = context.site.settings
    ssh = SshAccess(settings.ssh.user, context.site.path(settings.ssh.private_key))
    listed = context.site.by_name
    nodes = [node for node in context.journal.states() if node.name in listed and node.stage is not Stage.RETIRED]
    addresses, _ = ssh.split(nodes, Step.CABLE)
    with closing(context.adapters(Access.READ)) as adapters:
        found = LldpReader(adapters.shell, settings.parallel.lldp).read(addresses.values(), deadline)
    for name in sorted({*hosts, *(node.name for node in nodes)} - addresses.keys()):
        found.unheard[name] = MissingReport(
            "no installed node of that name is known", f"run clusterctl install on {name}"
        )
    context.journal.store(item for evidence in found.evidence.values() for item in evidence)
    return found
