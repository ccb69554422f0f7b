"""Runs all checks of a controller side by side, within seconds. A check that fails does not hide the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from clusterctl.edges.doctor import controller, services, site_checks
from clusterctl.edges.doctor.services import ControllerProbe
from clusterctl.edges.redfish import KnownBmcs
from clusterctl.edges.site import Site
from clusterctl.fleet.diagnosis import Diagnosis, broken, not_measured
from clusterctl.fleet.errors import ClusterctlError, UsageError
from clusterctl.ports import BmcAddress, Clock, Deadline

Check = tuple[str, Callable[[], Diagnosis]]
"""A check's name, and the function that makes its diagnosis."""
AT_ONCE = 6
PINS_SECONDS = 60.0
"""Limit for reading small files; no pin is learnt here, so that no request is sent."""


class NoSiteError(UsageError):
    """The operator named no site, and the current directory is none: no fault of the controller."""


def examine(
    site: Site | ClusterctlError, pins: KnownBmcs | None, now: Clock, more: Sequence[Check] = ()
) -> tuple[Diagnosis, ...]:
    """Return every check's diagnosis, in a fixed order.

    `site` is the error where there is none, or a wrong one; `pins` are the certificates pinned on first use.
    """
    given = None if isinstance(site, ClusterctlError) else site
    checks: list[Check] = [(name, partial(check, given)) for name, check in controller.CHECKS.items()]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        checks += _without_site(site) if isinstance(site, ClusterctlError) else _with_site(pool, site, pins, now)
        return tuple(future.result() for future in [pool.submit(_guarded, *check) for check in [*checks, *more]])


def _with_site(pool: ThreadPoolExecutor, site: Site, pins: KnownBmcs | None, now: Clock) -> list[Check]:
    """Send all requests at once, in the pool: only the checks that judge the answers wait for them."""
    first_use = site.settings.bmc.first_use == "pin"
    probe = ControllerProbe(
        site,
        pool.submit(services.ask_bmcs, addresses(site, pins), first_use=first_use),
        pool.submit(services.ask_maas, site, now),
        pool.submit(services.ask_ufm, site, now),
    )
    return [
        *((name, partial(check, site)) for name, check in site_checks.CHECKS.items()),
        *((name, partial(check, probe)) for name, check in services.CHECKS.items()),
    ]


def _without_site(error: ClusterctlError) -> list[Check]:
    """Report the site's error once; the checks that need a site were not measured."""
    message = f"{error.where}: {error.message}" if error.where else error.message
    failed = not_measured if isinstance(error, NoSiteError) else broken
    others = [name for name in (*site_checks.CHECKS, *services.CHECKS) if name != "site"]
    skipped = [(name, partial(not_measured, name, "needs a site that can be read")) for name in others]
    return [("site", partial(failed, "site", message, error.remedy)), *skipped]


def _guarded(name: str, check: Callable[[], Diagnosis]) -> Diagnosis:
    try:
        return check()
    except ClusterctlError as error:
        return broken(name, f"{error.where}: {error.message}" if error.where else error.message, error.remedy)
    except OSError as error:
        return not_measured(name, f"{error.strerror or error}", "correct that, then run it again")


def addresses(site: Site, pins: KnownBmcs | None) -> tuple[BmcAddress, ...]:
    """Return every BMC as a run reaches it, with its pin where one is kept, and without a password."""
    settings = site.settings.bmc
    plain = settings.scheme == "http"
    port = settings.port or (80 if plain else 443)
    ca_file = site.path(settings.ca_file)
    given = (
        BmcAddress(node.bmc, "", "", port, ca_file=ca_file, fingerprint=node.tls_fingerprint, plain_http=plain)
        for node in site.with_bmc
    )
    soon = Deadline.after(PINS_SECONDS)
    return tuple(address if pins is None else pins.trusted(address, soon)[0] for address in given)
