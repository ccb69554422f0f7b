"""Reads a site directory into one frozen `Site`."""

from __future__ import annotations

import stat
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

from clusterctl.edges.object_store import StoreKey
from clusterctl.edges.redaction import KNOWN
from clusterctl.edges.site.factory import read_factory
from clusterctl.edges.site.kept_passwords import KeptPasswords
from clusterctl.edges.site.logins import FACTORY, SHEET, BmcLogins
from clusterctl.edges.site.secrets import private_text, resolve
from clusterctl.edges.site.sheet import read_nodes
from clusterctl.edges.site.site_keys import SiteKeys
from clusterctl.edges.site.skus import read_skus
from clusterctl.edges.site.textfile import read_yaml
from clusterctl.fleet.errors import UsageError, no_bmc
from clusterctl.fleet.finding import Origin
from clusterctl.fleet.hardware.sku import Sku
from clusterctl.formats.site.yaml_document import Document, validate
from clusterctl.ports import BmcAddress
from clusterctl.ports.logins import Login
from clusterctl.site.fields import SecretRef
from clusterctl.site.nodes import SiteNode
from clusterctl.site.settings import SiteSettings
from clusterctl.site.urls import SQLITE, journal_url

API_KEY_PARTS = 3
ANONYMOUS = Login("nobody", "", "")


@dataclass(frozen=True, slots=True)
class Site:
    """All of the site's files. Secrets stay references until asked for."""

    folder: Path
    settings: SiteSettings
    nodes: tuple[SiteNode, ...]
    skus: tuple[Sku, ...]
    by_name: Mapping[str, SiteNode]
    document: Document
    logins: BmcLogins
    keys: SiteKeys

    @property
    def origin(self) -> Origin:
        """Return the site's origin of evidence; a marked peer's is simulated anyway (`Origin.of_peer`)."""
        return Origin.SIMULATED if self.settings.simulated else Origin.REAL

    @property
    def with_bmc(self) -> tuple[SiteNode, ...]:
        """Return the machines that have a BMC."""
        return tuple(node for node in self.nodes if node.bmc)

    def where(self, *path: str | int) -> str:
        """Return file, line and field of a setting: `site.yml:12 bmc.password`."""
        return self.document.where(*path)

    def bmc_address(self, node: str) -> BmcAddress:
        """Return the address and login of a node's BMC; reads the secret now. Raises `NoBmcError` where it has none."""
        found = self.by_name[node]
        if not found.bmc:
            raise no_bmc(node)
        address = self._bmc(found.bmc, found.tls_fingerprint, self._login(found))
        by_pin = not (address.fingerprint or address.ca_file or address.plain_http)
        return replace(address, machine=self.logins.serial_of(node)) if by_pin else address

    def bmc_login(self, node: str) -> Login:
        """Return the login of a node's BMC with the name of its source; reads the secret now."""
        return self._login(self.by_name[node])

    def own_logins(self) -> frozenset[str]:
        """Return the nodes with a factory password of their own: it identifies the machine. Reads secrets."""
        given = {node.name: self.logins.given(node.bmc, node) for node in self.with_bmc}
        passwords = Counter(login.password for login in given.values() if login is not None)
        listed = Counter(self.logins.factory.passwords())
        return frozenset(
            name
            for name, login in given.items()
            if login is not None
            and login.name in (SHEET, FACTORY)
            and passwords[login.password] == 1
            and listed[login.password] <= 1
        )

    def knowing(self, serial_of: Callable[[str], str]) -> Site:
        """Return the same site, with the journal's knowledge of which machine a node is."""
        return replace(self, logins=replace(self.logins, serial_of=serial_of))

    def bmc_at(self, host: str) -> BmcAddress:
        """Return the address and trust of any BMC at an address, without a login."""
        pin = next((node.tls_fingerprint for node in self.with_bmc if node.bmc == host), "")
        return self._bmc(host, pin, ANONYMOUS)

    def _bmc(self, host: str, fingerprint: str, login: Login) -> BmcAddress:
        bmc = self.settings.bmc
        return BmcAddress(
            host,
            login.user,
            login.password,
            bmc.reached_at,
            ca_file=self.path(bmc.ca_file),
            fingerprint=fingerprint,
            plain_http=bmc.scheme == "http",
            former=(login.former.user, login.former.password) if login.former is not None else None,
        )

    def _login(self, node: SiteNode) -> Login:
        login = self.logins.choose(node.bmc, node)
        if login is None:
            raise UsageError(
                f"no password for the BMC of {node.name}",
                where=self.where("bmc", "password"),
                remedy="set bmc.password, or a bmc_password column in the sheet",
            )
        return login

    def where_installer(self, backend: str, *path: str) -> str:
        """Return the same as `where` for a backend's section of `provisioning`, which may be one of a list."""
        if not isinstance(self.document.data["provisioning"], list):
            return self.where("provisioning", *path)
        index = next(i for i, item in enumerate(self.settings.provisioning) if item.backend == backend)
        return self.where("provisioning", index, *path)

    def maas_api_key(self) -> str:
        maas = self.settings.maas
        if maas is None:
            raise UsageError("the site has no MAAS", where=self.where("provisioning"), remedy="add backend: maas")
        where = self.where_installer("maas", "api_key")
        key = resolve(maas.api_key, self.folder, where)
        if len(key.split(":")) != API_KEY_PARTS or not all(key.split(":")):
            raise UsageError(
                "MAAS's API key has not the form consumer:token:secret",
                where=where,
                remedy="copy the key from MAAS: Preferences, API keys",
            )
        KNOWN.add(key.split(":"))
        return key

    def store_key(self) -> StoreKey | None:
        """Return the account of the object store, None where the site has none; reads the secrets now."""
        storage = self.settings.storage
        if storage is None or storage.access_key is None or storage.secret_key is None:
            return None
        access = resolve(storage.access_key, self.folder, self.where("storage", "access_key"))
        secret = resolve(storage.secret_key, self.folder, self.where("storage", "secret_key"))
        return StoreKey(access=access, secret=secret, region=storage.region)

    def netbox_token(self) -> str:
        """Return NetBox's token; reads the secret now."""
        netbox = self.settings.netbox
        if netbox is None:
            remedy = "write netbox: with url, token and site (docs/how-to/netbox.md)"
            raise UsageError("the site names no NetBox", where=self.where("netbox"), remedy=remedy)
        return resolve(netbox.token, self.folder, self.where("netbox", "token"))

    def secret_variables(self) -> dict[str, str]:
        """Return the roles' secret variables by name; reads them now."""
        found = self.settings.configure.secrets
        return {
            name: resolve(ref, self.folder, self.where("configure", "secrets", name)) for name, ref in found.items()
        }

    def journal_url(self) -> str:
        """Return the journal's database, with its password where it has one: reads the secret now."""
        url = self._database_url(self.settings.journal, "journal")
        name = url.removeprefix(SQLITE)
        return url if name == url or name.startswith("/") else f"{SQLITE}{self.folder / name}"

    def replica_url(self) -> str:
        """Return the standby that the page and metrics read, with its password; empty where there is none.

        Raise `UsageError` where it, or the journal itself, is no PostgreSQL.
        """
        setting = self.settings.journal_replica
        url = "" if setting is None else self._database_url(setting, "journal_replica")
        if url and (url.startswith(SQLITE) or self.journal_url().startswith(SQLITE)):
            remedy = "name the PostgreSQL of the journal in journal and a standby of it here: postgresql+psycopg://USER@HOST/DATABASE"
            raise UsageError("a SQLite file has no replica", where=self.where("journal_replica"), remedy=remedy)
        return url

    def _database_url(self, setting: str | SecretRef, field: str) -> str:
        """Return the URL of a database, with its password where it has one: reads the secret now."""
        if isinstance(setting, str):
            return setting
        where = self.where(field)
        url = resolve(setting, self.folder, where)
        try:
            journal_url(url)
        except ValueError as error:
            remedy = f"correct the URL in the file that {field} names"
            raise UsageError(str(error), where=where, remedy=remedy) from None
        KNOWN.add([unquote(urlsplit(url).password or "")])
        return url

    def path(self, name: str) -> str:
        """Return a path of the site file, relative to the site directory; empty stays empty."""
        return str((self.folder / name).resolve()) if name else ""

    def check_secrets(self) -> None:
        """Resolve every reference once, so that a missing secret is found before anything is touched."""
        if self.settings.maas is not None:
            self.maas_api_key()
        self.secret_variables()
        self.store_key()
        for ref in self.settings.site_keys:
            resolve(ref, self.folder, self.where("site_keys"))
        private_text(Path(self.path(self.settings.ssh.private_key)), self.where("ssh", "private_key"))
        self.logins.check()
        for node in self.with_bmc:
            self._login(node)


def load_site(folder: Path, *, may_be_empty: bool = False) -> Site:
    """Read and validate `folder/site.yml`, the machines and the SKUs. Raises `UsageError`.

    `may_be_empty`: a site without machines in its sheet, or without a sheet, is fine: they are to be found.
    """
    _require_folder(folder)
    document = read_yaml(folder / "site.yml")
    settings = validate(document, SiteSettings, "docs/reference/site-file.md")
    nodes = read_nodes(folder, settings.nodes, document, may_be_empty=may_be_empty)
    _require_bmcs(settings, nodes)
    KNOWN.add(node.password for node in nodes if node.password)
    skus = read_skus(folder, settings.skus, document)
    factory = read_factory(folder, settings.bmc.factory, document.where("bmc", "factory"))
    keys = _site_keys(settings, folder, document)
    kept = KeptPasswords(folder / "state" / "bmc_passwords", keys)
    logins = BmcLogins(settings.bmc, factory, folder, document, kept)
    return Site(folder.resolve(), settings, nodes, skus, {node.name: node for node in nodes}, document, logins, keys)


def _require_bmcs(settings: SiteSettings, nodes: Iterable[SiteNode]) -> None:
    """Raise `UsageError` for the first machine without a BMC that clusterctl would install: it cannot be switched."""
    for node in nodes:
        backend = next((item.backend for item in settings.provisioning if item.serves(node.name)), "")
        if not node.bmc and backend != "existing":
            raise UsageError(
                f"{node.name} has no address of its BMC",
                where=f"{node.where} bmc_address",
                remedy="write its IP address; only machines of provisioning backend existing can do without",
            )


def _site_keys(settings: SiteSettings, folder: Path, document: Document) -> SiteKeys:
    where = document.where("site_keys")
    return SiteKeys(len(settings.site_keys), lambda: [resolve(ref, folder, where) for ref in settings.site_keys], where)


def _require_folder(folder: Path) -> None:
    if folder.is_dir():
        return
    if folder.exists():
        raise UsageError(f"{folder} is no directory", where="--site", remedy="name the directory that holds site.yml")
    remedy = f"write a new site with clusterctl init {folder}, or name another --site"
    raise UsageError(f"there is no directory {folder}", where="--site", remedy=remedy)


MAGIC = b"SQLite format 3\0"
"""The first 16 bytes of a SQLite database (https://www.sqlite.org/fileformat.html); a new one is empty."""


_CONNECTED: set[tuple[int, int]] = set()
"""Device and inode of the databases that this process may have connections to."""
_LOOKING = threading.Lock()


def check_journal_file(site: Site) -> None:
    """Raise `UsageError` where the journal's file is there and no SQLite database; other engines are not looked at."""
    url = site.journal_url()
    if not url.startswith(SQLITE):
        return
    where, file = site.where("journal"), Path(url.removeprefix(SQLITE).partition("?")[0])
    try:
        mode = file.stat().st_mode
        head = _head(file) if stat.S_ISREG(mode) else b""
    except FileNotFoundError:
        return
    except OSError as error:
        raise UsageError(
            f"{file} cannot be read: {error.strerror}", where=where, remedy="correct its path or mode"
        ) from None
    if stat.S_ISDIR(mode):
        raise UsageError(f"{file} is a directory, not a file", where=where, remedy="name a file in it: …/journal.db")
    if not stat.S_ISREG(mode):
        raise UsageError(f"{file} is no regular file but a pipe or device", where=where, remedy="name a file")
    if head and head != MAGIC:
        remedy = "name another file; clusterctl never writes over one that is not its own"
        raise UsageError(f"{file} is no SQLite database", where=where, remedy=remedy)


def _head(file: Path) -> bytes:
    """Return the first bytes of a file, once in this process: afterwards `MAGIC`, without a look.

    To close a file drops all locks that this process has on it (fcntl(2)), those of SQLite's open connections, too:
    other processes would then remove the write-ahead log that these write to.
    """
    with _LOOKING:
        if _identity(file) in _CONNECTED:
            return MAGIC
        with file.open("rb") as stream:
            head = stream.read(len(MAGIC))
        if head == MAGIC:
            _CONNECTED.add(_identity(file))
        return head


def journal_connected(site: Site) -> None:
    """Note that this process has a connection to the journal's file: `check_journal_file` opens it no more."""
    url = site.journal_url()
    if url.startswith(SQLITE):
        file = Path(url.removeprefix(SQLITE).partition("?")[0])
        with _LOOKING, suppress(OSError):
            _CONNECTED.add(_identity(file))


def _identity(file: Path) -> tuple[int, int]:
    found = file.stat()
    return found.st_dev, found.st_ino
