"""Runs on a node, as the built-in probe `maas-view REQUEST`: asks what a machine of MAAS needs, as that machine would.

Standard library only, Python 3.9. The node's own resolver looks the names up; its own package source is fetched from,
through its proxy; each time server is asked by SNTP (RFC 4330); the metadata service is asked with the node's own key,
which cloud-init keeps, and which is never printed.
"""

from __future__ import annotations

import base64
import json
import re
import secrets
import socket
import struct
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from functools import partial
from pathlib import Path
from typing import Any, Callable, Dict, Iterator

SECONDS = 10.0
"""For each answer."""
MAX_BYTES = 4096
ROOT = Path("/")
EPOCH_1900 = 2208988800
SNTP = struct.Struct("!BBBb11I")
KEYS = ("metadata_url", "consumer_key", "token_key", "token_secret")
SETTING = re.compile(r"""["']?(%s)["']?\s*:\s*["']?([^"'\s,}]+)""" % "|".join(KEYS))
DEB = re.compile(r"^\s*deb\s+(?:\[[^\]]*\]\s+)?(\S+)\s+(\S+)", re.MULTILINE)
Json = Dict[str, Any]
APT_PROXY = ("apt-config", "dump", "Acquire::http::Proxy")


def bounded(work: Callable[[], Json]) -> Json:
    """Return what `work` returns, or why not; a resolver may take longer than we wait."""
    found: list[Json] = []

    def run() -> None:
        try:
            found.append(work())
        except (OSError, ValueError, struct.error) as error:
            found.append({"error": reason(error)})

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(SECONDS * 2)
    return found[0] if found else {"error": "no answer within %g s" % (SECONDS * 2)}


def reason(error: BaseException) -> str:
    """Return the system's reason, without a URL: it may hold a password."""
    inner = getattr(error, "reason", None)
    if isinstance(inner, BaseException):
        return reason(inner)
    if isinstance(error, socket.timeout):
        return "no answer in time"
    return getattr(error, "strerror", None) or type(error).__name__


def look_up(name: str) -> Json:
    """Return the addresses that the node's own resolver has for a name."""
    found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    return {"addresses": sorted({str(one[4][0]) for one in found})}


def ask_time(server: str, port: int) -> Json:
    """Return stratum, leap indicator and offset in seconds of the first address that answers."""
    error = "no address"
    for family, kind, _, _, place in socket.getaddrinfo(server, port, type=socket.SOCK_DGRAM)[:3]:
        mark = secrets.randbits(32), secrets.randbits(32)
        with socket.socket(family, kind) as own:
            own.settimeout(SECONDS / 3)
            try:
                own.connect(place)
                sent = time.time()
                own.send(SNTP.pack(0x23, 0, 0, 0, *([0] * 9), *mark))
                answer = own.recv(512)
                while len(answer) < SNTP.size or SNTP.unpack_from(answer)[9:11] != mark:
                    answer = own.recv(512)
                return time_answer(SNTP.unpack_from(answer), sent, time.time())
            except OSError as failed:
                error = reason(failed)
    return {"error": error}


def time_answer(fields: tuple[int, ...], sent: float, received: float) -> Json:
    """Read an answer: its own time of receipt and of sending against ours (RFC 4330, section 5)."""
    theirs = [fields[at] - EPOCH_1900 + fields[at + 1] / 2**32 for at in (11, 13)]
    offset = ((theirs[0] - sent) + (theirs[1] - received)) / 2
    return {"leap": fields[0] >> 6, "stratum": fields[1], "offset": offset}


def sources(root: Path) -> Iterator[tuple[str, str]]:
    """Yield URI and suite of the node's package sources (sources.list(5)): those of one line, then those of deb822."""
    folder = root / "etc/apt/sources.list.d"
    for file in [root / "etc/apt/sources.list", *sorted(folder.glob("*.list"))]:
        for uri, suite in DEB.findall(text(file)):
            yield uri, suite
    for file in sorted(folder.glob("*.sources")):
        for part in re.split(r"\n\s*\n", text(file)):
            fields = dict(re.findall(r"^(URIs|Suites|Types):[ \t]*(\S+)", part, re.MULTILINE))
            if fields.get("Types") == "deb" and "URIs" in fields and "Suites" in fields:
                yield fields["URIs"], fields["Suites"]


def text(file: Path) -> str:
    try:
        return file.read_text(errors="replace")[: 256 * 1024]
    except OSError:
        return ""


def index_of(root: Path) -> str:
    """Return the URL of the index of the node's first package source by HTTP; empty where it has none."""
    found = [one for one in sources(root) if one[0].startswith(("http://", "https://"))]
    found.sort(key=lambda one: one[0].startswith("https://"))
    for uri, suite in found[:1]:
        place = suite.lstrip("/") if suite.endswith("/") else "dists/%s/" % suite
        return "%s/%sInRelease" % (uri.rstrip("/"), place)
    return ""


def own_proxy() -> str:
    """Return the proxy that apt is configured with; empty for none."""
    try:
        ran = subprocess.run(APT_PROXY, check=False, capture_output=True, timeout=SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    found = re.search(rb'^Acquire::http::Proxy "(.*)";', ran.stdout, re.MULTILINE)
    return found[1].decode(errors="replace") if found and found[1] != b"DIRECT" else ""


class NotRedirected(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: a key is for the service that MAAS named."""

    def redirect_request(self, *_: Any) -> None:
        return None


def get(url: str, proxy: str = "", headers: dict[str, str] | None = None) -> Json:
    """Return the HTTP status of a URL, and the first bytes of its answer."""
    if not url.startswith(("http://", "https://")):
        return {"error": "no URL of HTTP"}
    handler = urllib.request.ProxyHandler({"http": proxy, "https": proxy} if proxy else {})
    request = urllib.request.Request(url, headers=headers or {})  # noqa: S310 — HTTP only, see above
    try:
        opener = urllib.request.build_opener(handler, NotRedirected())
        with opener.open(request, timeout=SECONDS) as answer:
            return {"status": answer.status, "body": answer.read(MAX_BYTES).decode(errors="replace")}
    except urllib.error.HTTPError as error:
        return {"status": error.code, "body": ""}


def plain(url: str) -> str:
    """Return a URL without user and password."""
    parts = urllib.parse.urlsplit(url)
    return urllib.parse.urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def fetch_package_index(root: Path, wanted: str) -> Json:
    """Fetch from the node's package source: through its apt's proxy, else through `wanted`, if there is one."""
    url, own = index_of(root), own_proxy()
    found = {"url": plain(url), "own_proxy": plain(own), "proxy": plain(own or wanted)}
    if not url:
        return {**found, "error": ""}
    answer = bounded(lambda: get(url, own or wanted))
    answer.pop("body", None)
    return {**found, **answer}


def settings(root: Path) -> dict[str, str]:
    """Return the metadata service and the key of this machine, as MAAS gave them to cloud-init."""
    found: dict[str, str] = {}
    for file in sorted((root / "etc/cloud/cloud.cfg.d").glob("*.cfg")):
        if "MAAS" in text(file):
            found.update(dict(SETTING.findall(text(file))))
    return found


def signed(found: dict[str, str]) -> dict[str, str]:
    """Return the header of OAuth 1.0 with PLAINTEXT, as cloud-init's MAAS data source sends it."""
    values = {
        "oauth_version": "1.0",
        "oauth_signature_method": "PLAINTEXT",
        "oauth_consumer_key": found["consumer_key"],
        "oauth_token": found["token_key"],
        "oauth_signature": "&" + found["token_secret"],
        "oauth_nonce": base64.b32encode(secrets.token_bytes(15)).decode(),
        "oauth_timestamp": str(int(time.time())),
    }
    pairs = ('%s="%s"' % (name, urllib.parse.quote(value, safe="")) for name, value in values.items())
    return {"Authorization": "OAuth " + ", ".join(pairs)}


def ask_metadata(root: Path) -> Json:
    """Ask the metadata service for this machine's instance ID, with its own key."""
    found = settings(root)
    url = found.get("metadata_url", "")
    if len(found) < len(KEYS):
        return {"url": plain(url), "configured": False}
    path = "%s/2012-03-01/meta-data/instance-id" % url.rstrip("/")
    answer = bounded(lambda: get(path, headers=signed(found)))
    named = bool(str(answer.pop("body", "")).strip())
    return {"url": plain(url), "configured": True, "named": named, **answer}


def view(request: Json, root: Path = ROOT) -> Json:
    """Return what this machine sees of MAAS."""
    port = int(request.get("ntp_port", 123))
    return {
        "names": {name: bounded(partial(look_up, name)) for name in request["names"]},
        "packages": fetch_package_index(root, request["proxy"]),
        "time": {server: bounded(partial(ask_time, server, port)) for server in request["ntp"]},
        "metadata": ask_metadata(root),
    }


if __name__ == "__main__":
    print(json.dumps(view(json.loads(sys.argv[1]))))
