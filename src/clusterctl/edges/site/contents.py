"""What the site file names and others read: the wiring plans, limits, suite, known kernel lines, playbook, keys, CAs.

Each is read by one function; `check_contents` reads them all, so that errors are reported before anything is touched.
"""

from __future__ import annotations

import difflib
import re
import ssl
from dataclasses import asdict
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import load_ssh_public_key

from clusterctl.edges.hostkeys import public_key
from clusterctl.edges.resources import resource
from clusterctl.edges.site.host_networks import host_networks
from clusterctl.edges.site.load import Site
from clusterctl.edges.site.roles import check_roles
from clusterctl.edges.site.secrets import private_text
from clusterctl.edges.site.textfile import MAX_PLAN_BYTES, read_bytes, read_text, there
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.fabric.wiring import WiringPlan, settle
from clusterctl.formats.file_text import text_in
from clusterctl.formats.wiring.csv_plan import read_ethernet_csv
from clusterctl.formats.wiring.plan import decode_plan
from clusterctl_burnin.host_requirements import HostRequirements
from clusterctl_burnin.kernel_log.known_lines import KnownLines
from clusterctl_burnin.kernel_log.site_lines import parse_known_lines
from clusterctl_burnin.limits.limit import Limits
from clusterctl_burnin.limits.reading import LimitsText, parse_limits, shipped_limits
from clusterctl_burnin.suites.suite import Changes, Suite, SuiteText, parse_suite, shipped_suite


def check_contents(site: Site) -> None:
    """Read every file and secret that the site names. Raises `UsageError` for the first that is wrong."""
    check_secrets(site)
    check_files(site)


def check_secrets(site: Site) -> None:
    site.check_secrets()
    ssh_key(site)


def check_files(site: Site) -> None:
    """Check all files without the secrets."""
    _check_authorities(site, site.settings.bmc.ca_file, site.where("bmc", "ca_file"))
    if site.settings.maas is not None:
        _check_authorities(site, site.settings.maas.ca_file, site.where_installer("maas", "ca_file"))
    if site.settings.fabric.ufm is not None:
        _check_authorities(site, site.settings.fabric.ufm.ca_file, site.where("fabric", "ufm", "ca_file"))
    host_authorities(site)
    if not _needs_no_infiniband(site):
        _check_spelling(site, wiring_plan(site), site.settings.fabric.plan)
    ethernet = ethernet_plan(site)
    if ethernet is not None:
        _check_spelling(site, ethernet, site.settings.fabric.ethernet)
    host_networks(site)
    suite(site)
    _suite_file(site, site.settings.offenders.suite, "offenders", "suite")
    known_lines(site)
    for sku in site.skus:
        limits(site, sku.limits)
    playbooks(site)
    check_roles(site)


def _needs_no_infiniband(site: Site) -> bool:
    """Return whether every SKU is RoCE, and the InfiniBand plan is not there."""
    roce = bool(site.skus) and all(sku.hca_link_layer == "Ethernet" for sku in site.skus)
    return roce and not there(Path(site.path(site.settings.fabric.plan)))


def host_authorities(site: Site) -> tuple[str, ...]:
    """Return the public keys of the authorities that sign the hosts' SSH keys; none where the site names none.

    Raises `UsageError` naming file and line of one that is not a public key.
    """
    name = site.settings.ssh.host_ca
    if not name:
        return ()
    file = Path(site.path(name))
    text = read_text(file, site.where("ssh", "host_ca"))
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), start=1)]
    keys = tuple(_authority(line, f"{file}:{number}") for number, line in lines if line and not line.startswith("#"))
    if not keys:
        raise UsageError("names no authority", where=str(file), remedy="write its public key: ssh-ed25519 AAAA…")
    return keys


def _authority(line: str, where: str) -> str:
    """Return a public key without options and comment; `@cert-authority *` of known_hosts(5) may stand before it."""
    words = line.split()
    if words[0] == "@cert-authority":
        words = words[2:]
    key = " ".join(words[:2])
    try:
        load_ssh_public_key(key.encode())
    except (ValueError, UnsupportedAlgorithm):
        remedy = "write one public key a line: ssh-ed25519 AAAA…"
        raise UsageError("is no SSH public key", where=where, remedy=remedy) from None
    return key


def wiring_plan(site: Site) -> WiringPlan:
    file = Path(site.path(site.settings.fabric.plan))
    return decode_plan(read_bytes(file, site.where("fabric", "plan"), MAX_PLAN_BYTES), file=str(file))


def ethernet_plan(site: Site) -> WiringPlan | None:
    """Return the site's Ethernet plan; None where it has none."""
    name = site.settings.fabric.ethernet
    if not name:
        return None
    file = Path(site.path(name))
    text = text_in(read_bytes(file, site.where("fabric", "ethernet"), MAX_PLAN_BYTES), str(file))
    return settle(read_ethernet_csv(text, str(file)))


def limits(site: Site, name: str) -> Limits:
    """Return the site's own `limits/NAME.yml`, else the shipped ones."""
    own = site.folder / "limits" / f"{name}.yml"
    if not there(own):
        return shipped_limits(name)
    others = {
        file.stem: LimitsText(read_text(file), str(file)) for file in sorted(own.parent.glob("*.yml")) if file != own
    }
    return parse_limits(read_text(own), where=str(own), others=others)


def suite(site: Site) -> Suite:
    """Return the site's own `suites/NAME.yml`, else a shipped one, with the site's changes.

    Raises `UsageError` where the loads alone last longer than the site gives a node's burn-in.
    """
    chosen = _suite_file(site, site.settings.burnin, "burnin")
    _check_node_seconds(site, chosen)
    found = chosen.changed(Changes(**asdict(site.settings.suite)))
    deadline = site.settings.deadlines.burnin
    if found.least_seconds >= deadline:
        raise UsageError(
            f"the loads of the suite {found.name} take {found.least_seconds} s, and a burn-in may take {deadline} s",
            where=site.where("deadlines", "burnin"),
            remedy=f"allow some times {found.least_seconds} s, or reduce: suite.pair_seconds, suite.pair_rounds, "
            "suite.node_seconds",
        )
    return found


def _check_node_seconds(site: Site, found: Suite) -> None:
    """Require the seconds of the site's solo loads to fit the loads of its suite."""
    solo = [load.name for load in found.solo]
    for name in site.settings.suite.node_seconds or {}:
        if name not in solo:
            raise UsageError(
                f"{name!r} is no load of one node that the suite {found.name} has",
                where=site.where("suite", "node_seconds", name),
                remedy=f"they are {', '.join(solo)}" if solo else "take it out",
            )


def _suite_file(site: Site, name: str, *field: str) -> Suite:
    """Return the suite `name`. `field`: the field of the site file that has the name."""
    own = site.folder / "suites" / f"{name}.yml"
    if there(own):
        return parse_suite(read_text(own), where=str(own), others=_own_suites(own.parent))
    try:
        return shipped_suite(name)
    except UsageError as error:
        raise UsageError(error.message, where=site.where(*field), remedy=error.remedy) from None


def _own_suites(folder: Path) -> dict[str, SuiteText]:
    """Return the site's suites by the names of their files: one may extend another."""
    return {file.stem: SuiteText(read_text(file), str(file)) for file in sorted(folder.glob("*.yml"))}


def known_lines(site: Site) -> KnownLines:
    """Return the kernel messages that the site's own `kernel_log.yml` declares harmless; none without such a file."""
    own = site.folder / "kernel_log.yml"
    return parse_known_lines(read_text(own), where=str(own)) if there(own) else KnownLines()


def host_requirements(site: Site) -> HostRequirements:
    """Return what the burn-in requires of the hosts' software."""
    checks = site.settings.checks
    return HostRequirements(
        release=site.settings.expected_release,
        kernel=checks.kernel or "",
        names=checks.names,
        gpu_image=checks.gpu_image or "",
        containers=checks.containers,
        ofed=checks.ofed or "",
        dcgm_exporter=checks.dcgm_exporter or "",
    )


def playbooks(site: Site) -> Path:
    """Return the folder of the playbooks; the site's one lies there."""
    folder, name = resource("playbooks"), site.settings.configure.playbook
    if not (folder / name).is_file():
        known = ", ".join(sorted(file.name for file in folder.glob("*.yml")))
        raise UsageError(
            f"there is no playbook {name!r}",
            where=site.where("configure", "playbook"),
            remedy=f"the playbooks are {known}",
        )
    return folder


def ssh_key(site: Site) -> tuple[Path, str]:
    """Return the controller's private key file, and the public key that hosts shall accept."""
    where = site.where("ssh", "private_key")
    file = Path(site.path(site.settings.ssh.private_key))
    try:
        return file, public_key(private_text(file, where) + "\n", where)
    except UsageError as error:
        if error.where != where or str(file) in error.message:
            raise
        raise UsageError(f"{file} {error.message}", where=where, remedy=error.remedy) from None


def _check_authorities(site: Site, name: str, where: str) -> None:
    """Require that a named file of certificate authorities is PEM that TLS can load."""
    if not name:
        return
    file = Path(site.path(name))
    text = read_text(file, where)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=text)
    except (ssl.SSLError, ValueError):
        raise UsageError(
            f"{file} holds no certificate in PEM",
            where=where,
            remedy="name the PEM file of the authority: -----BEGIN CERTIFICATE-----",
        ) from None


def _check_spelling(site: Site, plan: WiringPlan, name: str) -> None:
    """Refuse a node without any cable in the plan where an unknown host of the plan has nearly its name."""
    strangers = sorted(plan.hosts - site.by_name.keys())
    for node in site.nodes:
        if node.name in plan.hosts:
            continue
        same_number = [name for name in strangers if _digits(name) == _digits(node.name)]
        for near in difflib.get_close_matches(node.name, same_number, n=1, cutoff=0.7):
            line = next(cable.line for cable in plan.cables if near in {end.device for end in cable.ends})
            raise UsageError(
                f"{near} is no node of the site, and {node.name} has no cable",
                where=f"{site.path(name)}:{line}",
                remedy=f"write {node.name} in the plan, or correct the node's name in the site",
            )


def _digits(name: str) -> list[str]:
    """Return the digits of a name: names that differ in them are other machines, not misspelt ones."""
    return re.findall(r"\d+", name)
