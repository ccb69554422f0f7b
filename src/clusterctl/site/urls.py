"""URLs as they may stand in a site file: whole, of a supported kind, and without a secret in them."""

from __future__ import annotations

from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from pydantic_core import PydanticCustomError

from clusterctl.formats.site.yaml_problems import UNSHOWN

SQLITE = "sqlite:///"
POSTGRESQL = "postgresql+psycopg"
_EXAMPLE = "must be the URL of MAAS, like https://maas.example:5443/MAAS"
_HIDE = "a password never stands in this file: keep the whole URL in a file of mode 0600 and write {file: PATH}"


def web_url(value: str) -> str:
    """Return the URL of MAAS, without a slash at its end; raise ValueError for another value."""
    return plain_url(value, _EXAMPLE, "the key belongs in api_key, by reference")


def plain_url(value: str, example: str, remedy: str = "the secret belongs in a field of its own, by reference") -> str:
    """Return the URL of an HTTP service, without a slash at its end; raise ValueError for another value.

    `example` is the message for what is no URL, `remedy` that for one with a user or password in it.
    """
    parts = _split(value)
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ValueError(example)
    if parts.username or parts.password:
        raise PydanticCustomError(UNSHOWN, f"the url holds a user or password: {remedy}")
    return value.rstrip("/")


def object_url(value: str) -> str:
    """Return the URL of an object of a store, empty for empty; raise ValueError for another value."""
    parts = _split(value)
    if not value:
        return value
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname or len(parts.path) < 2:
        raise ValueError("must be the URL of an object, like https://s3.example/bucket/object")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise PydanticCustomError(UNSHOWN, "the url holds a user or a query: write access_key and secret_key instead")
    return value


def service_url(value: str) -> str:
    """Return the URL of a service that gets a token, without a slash at its end; raise ValueError for another value."""
    parts = _split(value)
    if parts is None or parts.scheme not in ("https", "http") or not parts.hostname or parts.query or parts.fragment:
        raise ValueError("must be a URL such as https://jira.example.com")
    if parts.username or parts.password:
        raise PydanticCustomError(UNSHOWN, "the url holds a user or password: the token belongs in token, by reference")
    if parts.scheme == "http" and parts.hostname not in ("127.0.0.1", "::1", "localhost"):
        raise ValueError("must be https: a token is sent to it")
    return value.rstrip("/")


def journal_url(value: str) -> str:
    """Return a SQLAlchemy URL of a supported database, with or without a password; raise ValueError for another value.

    The value is never repeated: it may hold a password.
    """
    parts = _split(value)
    if value.startswith("sqlite:"):
        if value.startswith(SQLITE) and value.removeprefix(SQLITE).strip("/"):
            return value
        raise PydanticCustomError(UNSHOWN, "must name a file, like sqlite:///state/journal.db")
    if parts is None or parts.scheme != POSTGRESQL:
        allowed = "sqlite:///FILE or postgresql+psycopg://USER@HOST/DATABASE"
        raise PydanticCustomError(UNSHOWN, f"must be the URL of SQLite or PostgreSQL: {allowed}")
    if not parts.path.strip("/"):
        raise PydanticCustomError(UNSHOWN, "must name a database: postgresql+psycopg://USER@HOST/DATABASE")
    return value


def open_journal_url(value: str) -> str:
    """Return the same as `journal_url`, for a URL in the site file, which is no secret."""
    parts = urlsplit(journal_url(value))
    if parts.password or "password" in parse_qs(parts.query):
        raise PydanticCustomError(UNSHOWN, _HIDE)
    return value


def place_of(url: str) -> str:
    """Return where a journal's database is, without a password: the file of SQLite, or the URL of a server."""
    if url.startswith("sqlite"):
        return unquote(url.partition("///")[2].partition("?")[0]).removeprefix("file:")
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname or ''}{parts.path}"


def _split(value: str) -> SplitResult | None:
    """Return the parts of a URL; None where it is none, or its port no port."""
    try:
        parts = urlsplit(value)
        _ = parts.port
    except ValueError:
        return None
    return parts


LOOPBACK = ("localhost", "127.0.0.1", "::1")
_ISSUER = "must be the URL of an issuer: https://id.example.com/realms/site"


def issuer_url(value: str) -> str:
    """Return the URL of an OpenID Connect issuer. Raises `ValueError`: it is https, without query and user."""
    try:
        parts = urlsplit(value)
        host = parts.hostname or ""
    except ValueError:
        raise ValueError(_ISSUER) from None
    if parts.scheme == "http" and host not in LOOPBACK:
        raise ValueError("must begin with https:// (http:// on a loopback address only)")
    if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment or parts.username:
        raise ValueError(_ISSUER)
    return value
