"""All checks of a controller, side by side and within seconds; one that fails hides no other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from clusterctl.edges.doctor import (
    ansible,
    bmcs,
    clock,
    disk,
    interpreter,
    journal,
    kernel,
    maas,
    names,
    nightly,
    passwords,
    paths,
    resources,
    secrets,
    tools,
)
from clusterctl.edges.doctor.bmc_round import ask_bmcs
from clusterctl.edges.doctor.maas_round import ask_maas
from clusterctl.edges.doctor.patient import Patient
from clusterctl.edges.redfish import KnownBmcs
from clusterctl.edges.site import Site
from clusterctl.edges.site.contents import check_files
from clusterctl.fleet.diagnosis import Diagnosis, broken, not_measured, ok
from clusterctl.fleet.errors import ClusterctlError, UsageError
from clusterctl.ports import BmcAddress, Clock, Deadline

Check = tuple[str, Callable[[], Diagnosis]]
"""A check's name, and what makes its diagnosis."""


class NoSiteError(UsageError):
    """Nobody named a site, and none lies in the current directory: that is no fault of the controller's."""


OF_A_SITE: dict[str, Callable[[Patient], Diagnosis]] = {
    "site": lambda patient: _check_site(patient.site),
    "secrets": lambda patient: secrets.check(patient.site),
    "passwords": lambda patient: passwords.check(patient.site),
    "journal": lambda patient: journal.check(patient.site),
    "nightly": lambda patient: nightly.check(patient.site),
    "disk": lambda patient: disk.check(patient.site),
    "control_path": lambda patient: paths.check(patient.site),
    "dns": lambda patient: names.check(patient.site),
    "bmcs": lambda patient: bmcs.judge(_names(patient.site), patient.bmcs.result()),
    "maas": lambda patient: maas.judge(_maas_url(patient.site), patient.maas.result()),
    "clock": lambda patient: clock.check(_names(patient.site), patient.maas.result(), patient.bmcs.result()),
}
"""Checks that need a site."""

AT_ONCE = 6
PINS_SECONDS = 60.0
"""For reading small files; nothing is asked of the network for it, since no pin is learnt here."""


def examine(
    site: Site | ClusterctlError, pins: KnownBmcs | None, now: Clock, more: Sequence[Check] = ()
) -> tuple[Diagnosis, ...]:
    """Every check's diagnosis, in a fixed order.

    `site` is the error where there is none, or a wrong one; `pins` are the BMCs' that were believed on first use.
    """
    with ThreadPoolExecutor(AT_ONCE) as pool:
        of_the_site = _without_site(site) if isinstance(site, ClusterctlError) else _with_site(pool, site, pins, now)
        checks = [*_of_the_machine(None if isinstance(site, ClusterctlError) else site), *of_the_site, *more]
        return tuple(future.result() for future in [pool.submit(_guarded, *check) for check in checks])


def _of_the_machine(site: Site | None) -> Sequence[Check]:
    return (
        ("python", interpreter.check),
        ("ansible", ansible.check),
        ("tools", partial(tools.check, site)),
        ("kernel", kernel.check),
        ("open_files", partial(resources.check_files, site)),
        ("memory", partial(resources.check_memory, site)),
        ("umask", secrets.check_umask),
    )


def _with_site(pool: ThreadPoolExecutor, site: Site, pins: KnownBmcs | None, now: Clock) -> Sequence[Check]:
    """The network is asked at once, in the pool: nothing waits for it but the checks that judge its answers."""
    learning = site.settings.bmc.first_use == "pin"
    patient = Patient(
        site,
        pool.submit(ask_bmcs, addresses(site, pins), learning=learning),
        pool.submit(ask_maas, site, now),
    )
    return [(name, partial(check, patient)) for name, check in OF_A_SITE.items()]


def _without_site(error: ClusterctlError) -> Sequence[Check]:
    """The site's error is one diagnosis; what needs a site was not measured."""
    said = f"{error.where}: {error.message}" if error.where else error.message
    trouble = not_measured if isinstance(error, NoSiteError) else broken
    others = [name for name in OF_A_SITE if name != "site"]
    needing = [(name, partial(not_measured, name, "needs a site that can be read")) for name in others]
    return [("site", partial(trouble, "site", said, error.remedy)), *needing]


def _guarded(name: str, check: Callable[[], Diagnosis]) -> Diagnosis:
    try:
        return check()
    except ClusterctlError as error:
        return broken(name, f"{error.where}: {error.message}" if error.where else error.message, error.remedy)
    except OSError as error:
        return not_measured(name, f"{error.strerror or error}", "mend that, then run it again")


def addresses(site: Site, pins: KnownBmcs | None) -> tuple[BmcAddress, ...]:
    """Every BMC as a run would reach it, with the pin where one is kept, but without a password: nobody logs in."""
    said = site.settings.bmc
    plain = said.scheme == "http"
    port = said.port or (80 if plain else 443)
    ca_file = site.path(said.ca_file)
    given = (
        BmcAddress(node.bmc, "", "", port, ca_file=ca_file, fingerprint=node.tls_fingerprint, plain_http=plain)
        for node in site.nodes
    )
    soon = Deadline.after(PINS_SECONDS)
    return tuple(address if pins is None else pins.trusted(address, soon)[0] for address in given)


def _check_site(site: Site) -> Diagnosis:
    check_files(site)
    return ok("site", f"{site.settings.name}: {len(site.nodes)} nodes; all that it names can be read")


def _maas_url(site: Site) -> str:
    return site.settings.maas.url if site.settings.maas is not None else ""


def _names(site: Site) -> dict[str, str]:
    return {node.bmc: node.name for node in site.nodes}
