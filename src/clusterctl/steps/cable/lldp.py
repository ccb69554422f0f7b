"""Reads the LLDP neighbours of hosts over SSH: one session each, many at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from clusterctl.cabling.ethernet.findings import MissingReport
from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.finding import Evidence
from clusterctl.fleet.network.lldp import LldpReport
from clusterctl.formats.host.lldp import parse_lldpctl
from clusterctl.ports import Deadline, HostAddress, Shell
from clusterctl.ports.isolation import peer_error
from clusterctl.steps.burnin.node_under_test import SessionFailure, read_probes
from clusterctl_burnin.probe import Probe, ProbeResult, Readings, Status, script
from clusterctl_burnin.sweep import at_most

AT_ONCE = 64
ANSWER_S = 20.0
"""Seconds: far more than lldpd needs, and enough for a host that is emulated."""
NEIGHBOURS = Probe("lldp-neighbours", ("lldpctl", "-f", "json0"), timeout=ANSWER_S)
INTERFACES = Probe("lldp-interfaces", ("lldpcli", "-f", "json0", "show", "interfaces"), timeout=ANSWER_S)
_PROBES = (NEIGHBOURS, INTERFACES)


@dataclass(slots=True)
class LldpReadings:
    """By host: its neighbours, or why they are unknown; and the evidence."""

    reports: dict[str, LldpReport] = field(default_factory=dict)
    unheard: dict[str, MissingReport] = field(default_factory=dict)
    evidence: dict[str, tuple[Evidence, ...]] = field(default_factory=dict)

    @property
    def reasons(self) -> Mapping[str, str]:
        return {name: unheard.reason for name, unheard in self.unheard.items()}

    def updated(self, later: LldpReadings) -> LldpReadings:
        """Return the readings, with the later ones of the hosts that were read again."""
        asked = later.reports.keys() | later.unheard.keys()
        return LldpReadings(
            {name: report for name, report in self.reports.items() if name not in asked} | later.reports,
            {name: unheard for name, unheard in self.unheard.items() if name not in asked} | later.unheard,
            self.evidence | later.evidence,
        )


@dataclass(frozen=True, slots=True)
class LldpReader:
    """Reads `at_once` hosts at a time."""

    shell: Shell
    at_once: int = AT_ONCE

    def read(self, hosts: Iterable[HostAddress], deadline: Deadline) -> LldpReadings:
        """Return the readings of all hosts; never raise for what a host does wrong, or for the deadline."""
        hosts = tuple(hosts)
        found = LldpReadings()
        if not hosts:
            return found
        stdin, most = script(_PROBES), at_most(_PROBES)
        with ThreadPoolExecutor(min(self.at_once, len(hosts)), "lldp") as pool:
            answers = pool.map(lambda host: self._one(host, stdin, deadline.within(most)), hosts)
            for host, (answer, evidence) in zip(hosts, answers, strict=True):
                found.evidence[host.name] = evidence
                if isinstance(answer, MissingReport):
                    found.unheard[host.name] = answer
                else:
                    found.reports[host.name] = answer
        return found

    def _one(
        self, host: HostAddress, stdin: bytes, deadline: Deadline
    ) -> tuple[LldpReport | MissingReport, tuple[Evidence, ...]]:
        evidence = tuple[Evidence, ...]()
        try:
            answer, evidence = read_probes(self.shell, host, stdin, deadline, privileged=True)
            if isinstance(answer, SessionFailure):
                remedy = answer.remedy or f"see that {host.name} can be logged in to, then run this again"
                return MissingReport(answer.cause, remedy), evidence
            evidence = tuple(answer.evidence().values())
            return _report(host.name, answer), evidence
        except Exception as error:  # noqa: BLE001 — peer_error raises what is not the peer's
            broken = peer_error(error, host.name)
            return MissingReport(broken.message, broken.remedy), evidence


def _report(host: str, readings: Readings) -> LldpReport | MissingReport:
    texts = []
    for probe in _PROBES:
        result = readings.probes.get(probe.name)
        if result is None or result.status is not Status.OK or result.rc != 0:
            return _unanswered(host, probe, result)
        texts.append(result.stdout)
    try:
        received, own = (parse_lldpctl(text, file=f"{host} lldp") for text in texts)
    except ParseError as error:
        words = f"{error.where}: {error.message}"
        return MissingReport(words, f"run lldpctl -f json0 on {host} and see what it prints")
    return LldpReport(received.neighbours, own.interfaces)


def _unanswered(host: str, probe: Probe, result: ProbeResult | None) -> MissingReport:
    command = " ".join(probe.argv)
    if result is None:
        return MissingReport(f"{command} did not report", "run the step again")
    if result.status is Status.MISSING:
        return MissingReport("lldpd is not installed on it", f"install lldpd on {host} (apt-get install lldpd)")
    if result.status is Status.TIMEOUT:
        return MissingReport(f"{command} did not answer within {probe.timeout:g} s", f"restart lldpd on {host}")
    return MissingReport(
        f"{command} failed: {result.error_output}", f"see on {host} that lldpd runs (systemctl status lldpd)"
    )
