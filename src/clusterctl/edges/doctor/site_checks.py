"""Checks of a site's files, secrets, journal and names. They need a site and no answer from the network but DNS's."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from sqlalchemy import create_engine, inspect, text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from clusterctl.edges.ansible.run_folders import places
from clusterctl.edges.ansible.workspace import CONTROL_NAME, SOCKET_PATH_MAX
from clusterctl.edges.doctor.netbox import check_netbox
from clusterctl.edges.doctor.replica import NAME as REPLICA
from clusterctl.edges.doctor.replica import check_replica
from clusterctl.edges.journal.database import users_of
from clusterctl.edges.journal.integrity import JournalDamagedError
from clusterctl.edges.journal.tables import SCHEMA_VERSION
from clusterctl.edges.pxe.accounts import NAME
from clusterctl.edges.pxe.accounts import diagnose as diagnose_accounts
from clusterctl.edges.site import Site
from clusterctl.edges.site.certificate_record import read_certificates
from clusterctl.edges.site.contents import check_files, check_secrets, limits, suite
from clusterctl.edges.site.load import check_journal_file
from clusterctl.edges.site.night_record import read_record
from clusterctl.fleet.bmc.certificates import NAME as CERTIFICATES
from clusterctl.fleet.bmc.certificates import diagnose as diagnose_certificates
from clusterctl.fleet.diagnosis import Diagnosis, broken, enumerated, ok, warn
from clusterctl.fleet.errors import ClusterctlError
from clusterctl.fleet.nightly.record import NAME as NIGHTLY
from clusterctl.fleet.nightly.record import diagnose
from clusterctl.formats.identifiers import is_address
from clusterctl.ports.accounts import Generation
from clusterctl.site.urls import SQLITE, place_of

DATABASE_SECONDS = 4
MIB = 1024 * 1024
LEAST_MIB = 200
PER_NODE_MIB = 4
"""A node's journal after ten bootstraps: 200 events and their evidence, 0.35 MiB measured, tenfold."""
LEAST_INODES = 1000


def check_site(site: Site) -> Diagnosis:
    """Read every file that the site names."""
    check_files(site)
    return ok("site", f"{site.settings.name}: {len(site.nodes)} nodes; every file that it names can be read")


def check_site_secrets(site: Site) -> Diagnosis:
    """Read every secret that the site names once; report only whether it could be read, and its readers."""
    name = "secrets"
    try:
        check_secrets(site)
        site.journal_url()
        site.replica_url()
    except ClusterctlError as error:
        return broken(name, f"{error.where}: {error.message}", error.remedy)
    folder = site.folder / "secrets"
    if folder.is_dir() and stat.S_IMODE(folder.stat().st_mode) & stat.S_IRWXO:
        return warn(name, f"{folder} is open to other users", f"chmod 700 {folder}")
    return ok(name, "all that the site names can be read, and only by you")


def check_passwords(site: Site) -> Diagnosis:
    """Report BMC passwords in doubt: clusterctl began a change and did not see whether the BMC took it."""
    name = "passwords"
    newest: dict[str, Generation] = {}
    for one in site.logins.kept.all():  # oldest first
        newest[one.name] = one
    if not newest:
        return ok(name, "no BMC has a password from clusterctl")
    doubtful = sorted(one.name for one in newest.values() if not one.proven)
    if doubtful:
        remedy = "run clusterctl accounts rotate NODE, or bootstrap: it tries the new password, then the old one"
        return warn(name, f"it is unknown whether the BMC of {enumerated(doubtful)} took its new password", remedy)
    if plain := site.logins.kept.unencrypted():
        remedy = "clusterctl accounts rotate NODE: the new password is kept encrypted"
        return warn(
            name, f"not encrypted by the site's keys: those of {enumerated(sorted(one.name for one in plain))}", remedy
        )
    return ok(name, f"clusterctl gave one to {len(newest)} BMC{'' if len(newest) == 1 else 's'}, and each took it")


def check_certificates(site: Site) -> Diagnosis:
    """Report BMC certificates that are due by the site's rule, as last read; asks no BMC."""
    settings = site.settings.bmc.certificates
    if settings is None:
        return ok(CERTIFICATES, "the site renews none: bmc.certificates is not set")
    seen = read_certificates(site.folder / "state")
    names = [node.name for node in site.with_bmc]
    return diagnose_certificates(seen, names, datetime.now(UTC), settings.renew_days)


# --- journal ----------------------------------------------------------------------------------------------------------


def check_journal(site: Site) -> Diagnosis:
    """Open the journal for reading and compare its version; create and migrate nothing."""
    check_journal_file(site)
    url = site.journal_url()
    if not url.startswith(SQLITE):
        return probe_journal(url, {"connect_timeout": DATABASE_SECONDS})
    file = Path(url.removeprefix(SQLITE))
    if not file.exists() or not file.stat().st_size:
        return ok("journal", f"{file} is not there yet: the first command creates it")
    # Without a write-ahead log the file has no writer: it is read as it is, and no lock file is created.
    quiet = "" if file.with_name(f"{file.name}-wal").exists() else "&immutable=1"
    return probe_journal(f"{SQLITE}file:{file}?mode=ro{quiet}&uri=true", {"timeout": DATABASE_SECONDS})


def probe_journal(url: str, options: dict[str, int]) -> Diagnosis:
    """Read the schema version of the database at `url`."""
    engine = create_engine(url, connect_args=options, poolclass=NullPool)
    where = place_of(url)
    pages: object = "ok"
    running: tuple[str, ...] = ()
    try:
        with engine.connect() as connection:
            exists = inspect(connection).has_table("alembic_version")
            version = connection.execute(text("SELECT version_num FROM alembic_version")).scalar() if exists else None
            if engine.dialect.name == "sqlite":
                pages = connection.execute(text("PRAGMA quick_check(1)")).scalar()
            if pages == "ok" and version is not None and version < SCHEMA_VERSION:
                running = users_of(connection, version)
    except JournalDamagedError as error:
        return broken("journal", f"{where} is damaged: {error.message} ({error.where})", error.remedy)
    except SQLAlchemyError as error:
        cause = str(getattr(error, "orig", None) or type(error).__name__).strip().splitlines()[0]
        remedy = "check that the database runs, that the URL in journal is right, and that this user may log in"
        return broken("journal", f"{where} does not open: {cause}", remedy)
    finally:
        engine.dispose()
    return judge_journal(where, version, str(pages), running)


def judge_journal(where: str, version: str | None, pages: str = "ok", running: Sequence[str] = ()) -> Diagnosis:
    """Judge a schema version, None where the database is empty, and what SQLite's `quick_check` answered.

    running: the programs that work with this version now
    """
    name = "journal"
    if pages != "ok":
        remedy = "check the disk under it, then run clusterctl journal verify, and journal restore with the last backup"
        return broken(name, f"{where} is damaged: {pages.splitlines()[-1]}", remedy)
    if version is None:
        return ok(name, f"{where} opens and is empty")
    if version > SCHEMA_VERSION:
        message = f"{where} has version {version}, this clusterctl knows {SCHEMA_VERSION}"
        return broken(name, message, "use the newer clusterctl that wrote it")
    if version < SCHEMA_VERSION and running:
        message = f"{where} has version {version}, this clusterctl needs {SCHEMA_VERSION}; {', '.join(running)} works"
        remedy = (
            "stop those before the first command of this clusterctl: until then each is refused, nothing is changed"
        )
        return warn(name, f"{message} with it as it is", remedy)
    if version < SCHEMA_VERSION:
        return ok(name, f"{where} opens; the next command upgrades it from version {version} to {SCHEMA_VERSION}")
    return ok(name, f"{where} opens, version {version}")


def check_nightly(site: Site) -> Diagnosis:
    """Report whether the nightly burn-in ran in time."""
    settings = site.settings.nightly
    if settings is None:
        return ok(NIGHTLY, "the site has no nightly burn-in")
    record = read_record(site.folder / "state")
    return diagnose(record, timedelta(hours=settings.alarm_hours), datetime.now(UTC))


# --- disk -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Space:
    """Free space for us in `where`; `inodes` is None where the file system has no fixed number of them."""

    where: str
    free_mib: int
    inodes: int | None
    writable: bool


def check_disk(site: Site) -> Diagnosis:
    """Check free bytes and inodes where the site keeps its state."""
    state = site.folder / "state"
    place = state if state.is_dir() else site.folder
    info = os.statvfs(place)
    inodes = info.f_favail if info.f_files else None
    writable = os.access(place, os.W_OK | os.X_OK)
    return judge_disk(Space(str(place), info.f_bavail * info.f_frsize // MIB, inodes, writable), len(site.nodes))


def judge_disk(space: Space, nodes: int) -> Diagnosis:
    """Judge the space for the journal of this many nodes and for the files of their runs."""
    name, free = "disk", f"{space.free_mib} MiB free in {space.where}"
    if not space.writable:
        return broken(name, f"{space.where} is not writable", "run as its owner, or correct its owner and mode")
    if space.free_mib < LEAST_MIB:
        return broken(name, f"only {free}", f"free at least {LEAST_MIB} MiB")
    if space.inodes is not None and space.inodes < LEAST_INODES:
        return broken(name, f"only {space.inodes} inodes free in {space.where}", "remove files that are not needed")
    needed = LEAST_MIB + PER_NODE_MIB * nodes
    if space.free_mib < needed:
        return warn(
            name, f"{free}; {nodes} nodes will need about {needed} in time", "free space before a long campaign"
        )
    return ok(name, free)


def check_control_path(site: Site) -> Diagnosis:
    """Check that the path of ssh's control sockets fits into a socket's name."""
    return judge_control_path(places(site.folder / "state" / "ansible"))


def judge_control_path(folders: tuple[Path, ...]) -> Diagnosis:
    """Judge the folders, in the order in which a run tries them."""
    name, room = "control_path", SOCKET_PATH_MAX - CONTROL_NAME
    fitting = next((folder for folder in folders if len(os.fsencode(folder)) <= room), None)
    if fitting is None:
        message = f"{folders[0]} is longer than {room} bytes, and so is {folders[-1]}"
        return broken(name, message, "set TMPDIR to a short path, such as /tmp")
    return ok(name, f"{fitting} has {len(os.fsencode(fitting))} of at most {room} bytes")


# --- dns --------------------------------------------------------------------------------------------------------------


def check_dns(site: Site) -> Diagnosis:
    """Resolve every host name that the site file uses for a service."""
    return judge_dns({name: _resolve(name) for name in dict.fromkeys(_service_names(site))})


def judge_dns(found: Mapping[str, str]) -> Diagnosis:
    """Judge a map of names to addresses; an empty address: the name does not resolve."""
    unknown = [name for name, address in found.items() if not address]
    if unknown:
        message = f"does not resolve: {', '.join(unknown)}"
        return broken("dns", message, "add the name to DNS or /etc/hosts, or write an address in the site file")
    if not found:
        return ok("dns", "the site file names services by their addresses")
    return ok("dns", ", ".join(f"{name} is {address}" for name, address in found.items()))


def _service_names(site: Site) -> Iterator[str]:
    """Yield the host names of MAAS, of the journal's servers and of its replica's; addresses need no DNS."""
    maas = site.settings.maas
    for url in (*([maas.url] if maas is not None else []), site.journal_url(), site.replica_url()):
        parts = urlsplit(url)
        named = [host.rpartition(":")[0] or host for host in parse_qs(parts.query).get("host", [])]
        for name in (parts.hostname, *named):
            if name and not name.startswith("/") and not is_address(name.strip("[]")):
                yield name


def _resolve(name: str) -> str:
    """Return the first address, empty where there is none. The resolver's own time-out applies (resolv.conf(5))."""
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return ""
    return str(found[0][4][0])


def check_service_accounts(site: Site) -> Diagnosis:
    """Report as which users the services of our own PXE run, where the site installs by it."""
    if site.settings.pxe is None:
        return ok(NAME, "the site installs nothing through our own PXE")
    return diagnose_accounts()


def check_gpu_perftest(site: Site) -> Diagnosis:
    """Report whether a role brings a perftest that can use GPU memory, where the burn-in's ib_write_bw is to use it."""
    runs = "ib_write_bw" in suite(site).loads
    kinds = [sku.name for sku in site.skus if limits(site, sku.limits).methods.ib_write_bw.gpu_memory != "none"]
    configure = site.settings.configure
    source = configure.variables.get("ofed_source", "doca") if "ofed" in configure.roles else ""
    return judge_gpu_perftest(kinds if runs else (), str(source))


def judge_gpu_perftest(kinds: Sequence[str], ofed_source: str) -> Diagnosis:
    """Judge the SKUs whose pairs write to GPU memory; `ofed_source` is empty where no role installs an OFED."""
    name = "gpu_perftest"
    if not kinds:
        return ok(name, "no pair of the burn-in writes to GPU memory")
    wanted = f"ib_write_bw writes to GPU memory on {enumerated(sorted(kinds))}"
    if ofed_source in ("", "inbox"):
        remedy = (
            "install a perftest that is built with CUDA (role ofed with NVIDIA's repository, or one built on site), or "
            "set gpu_memory: none under methods.ib_write_bw of the site's limits file"
        )
        found = f"{wanted}, and no role brings a perftest with CUDA: the distributions build it without"
        return warn(name, f"{found}; the load will be INCONCLUSIVE", remedy)
    return ok(name, f"{wanted}; perftest comes with {ofed_source}, and the burn-in reports where it lacks CUDA")


CHECKS: Mapping[str, Callable[[Site], Diagnosis]] = {
    "site": check_site,
    "secrets": check_site_secrets,
    "passwords": check_passwords,
    CERTIFICATES: check_certificates,
    "journal": check_journal,
    REPLICA: check_replica,
    "nightly": check_nightly,
    "disk": check_disk,
    "control_path": check_control_path,
    "dns": check_dns,
    NAME: check_service_accounts,
    "gpu_perftest": check_gpu_perftest,
    "netbox": check_netbox,
}
