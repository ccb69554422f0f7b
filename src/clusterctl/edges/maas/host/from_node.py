"""MAAS as one of its machines sees it: what the machine is asked to try, and the diagnoses of what it found.

What MAAS gives a machine is as in its source (src/maasserver/compose_preseed.py, src/maasserver/node_status.py of 3.5).
"""

from __future__ import annotations

import ipaddress
import json
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

from clusterctl.edges.maas.host.facts import HostFacts
from clusterctl.fleet.diagnosis import Diagnosis, broken, enumerated, not_measured, ok, warn
from clusterctl.fleet.peer_text import visible_line
from clusterctl.formats.identifiers import is_address
from clusterctl.formats.maas.node_view import NodeView, PackageFetch
from clusterctl.formats.maas.region import Subnet

NAMES = ("node_dns", "node_proxy", "node_ntp", "node_metadata")
OFFSET_WARN_S, OFFSET_BROKEN_S = 1.0, 240.0
"""MAAS refuses a machine's key at 300 s; TLS and Slurm's munge stumble earlier."""
_LAST_STRATUM, _NOT_SET = 15, 3
_PASSWORD_WANTED = 407
_TRY = "see on the node: "


@dataclass(frozen=True, slots=True)
class NodeRequest:
    """What a machine tries: names, MAAS's proxy (empty: MAAS has none), time servers.

    with_password   MAAS has a password of that proxy: it is not among what a node receives
    """

    names: tuple[str, ...]
    proxy: str
    ntp: tuple[str, ...]
    with_password: bool = False

    @property
    def argument(self) -> str:
        return json.dumps({"names": self.names, "proxy": self.proxy, "ntp": self.ntp})


def node_request(host: HostFacts, address: str) -> NodeRequest:
    """Return what MAAS gives the machine at this address. Raises what `HostFacts` raises."""
    subnet = _subnet_of(host, address)
    proxy = _proxy(host, subnet)
    own = (urlsplit(host.where).hostname, urlsplit(proxy).hostname)
    names = tuple(dict.fromkeys(name for name in own if name and not is_address(name)))
    parts = urlsplit(proxy)
    plain = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    return NodeRequest(names, plain, _time_servers(host, subnet), with_password=plain != proxy)


def _subnet_of(host: HostFacts, address: str) -> Subnet | None:
    own = ipaddress.ip_address(address)
    found = [one for one in host.all_subnets if own in one.network]
    return max(found, key=lambda one: one.network.prefixlen, default=None)


def _proxy(host: HostFacts, subnet: Subnet | None) -> str:
    """Return the proxy that MAAS gives to machines of the subnet; empty for none."""
    if not host.setting("enable_http_proxy") or (subnet is not None and not subnet.proxied):
        return ""
    named = str(host.setting("http_proxy") or "")
    if named and not host.setting("use_peer_proxy"):
        return named
    port = host.setting("maas_proxy_port") or 8000
    if host.setting("use_rack_proxy") and subnet is not None and subnet.dhcp:
        label = str(subnet.network).replace(".", "-").replace(":", "-").replace("/", "--")
        return f"http://{label}.{host.setting('maas_internal_domain') or 'maas-internal'}:{port}/"
    return f"http://{urlsplit(host.where).hostname}:{port}/"


def _time_servers(host: HostFacts, subnet: Subnet | None) -> tuple[str, ...]:
    """Return the time servers of MAAS's machines: its own where only these count, else the racks of the subnet."""
    if host.setting("ntp_external_only"):
        return tuple(str(host.setting("ntp_servers") or "").replace(",", " ").split())
    racks = tuple(dict.fromkeys(address for rack in host.racks for address in rack.addresses))
    near = tuple(one for one in racks if subnet is not None and ipaddress.ip_address(one) in subnet.network)
    return near or racks


def check_view(request: NodeRequest, view: NodeView) -> tuple[Diagnosis, ...]:
    """Return one diagnosis for each of `NAMES`."""
    return (_dns(request, view), _packages(request, view), _ntp(request, view), _metadata(view))


def _dns(request: NodeRequest, view: NodeView) -> Diagnosis:
    name = NAMES[0]
    if not request.names:
        return not_measured(name, "MAAS gives the node no name to look up: its URL is an address, and it has no proxy")
    missing = [one for one in request.names if one not in view.names]
    if missing:
        return not_measured(name, f"the node did not report on {enumerated(missing)}")
    lost = {one: view.names[one].error for one in request.names if not view.names[one].addresses}
    if lost:
        found = enumerated([f"{one} ({_line(error) or 'no address'})" for one, error in lost.items()])
        return broken(
            name, f"the node cannot resolve {found}", f"{_TRY}resolvectl status, then ask each of its servers"
        )
    shown = [f"{one} is {view.names[one].addresses[0]}" for one in request.names]
    return ok(name, f"the node resolves: {enumerated([_line(one) for one in shown])}")


def _not_fetched(request: NodeRequest, found: PackageFetch) -> str:
    """Return why the fetch shows nothing; empty where it does."""
    if not found.url:
        return "the node has no package source by HTTP: nothing could be fetched"
    if found.status == _PASSWORD_WANTED and request.with_password and not found.own_proxy:
        return f"MAAS's proxy {_line(found.proxy)} wants its password, which is not sent to a node"
    return ""


def _packages(request: NodeRequest, view: NodeView) -> Diagnosis:
    name, found = NAMES[1], view.packages
    way = f"through {_line(found.proxy)}" if found.proxy else "without a proxy"
    what = f"{_line(found.url)} {way}"
    unseen = _not_fetched(request, found)
    if unseen:
        return not_measured(name, unseen)
    if found.status is None:
        remedy = f"{_TRY}apt-get update; allow the node's network to reach the proxy, or the archive without one"
        return broken(name, f"the node cannot fetch {what}: {_line(found.error) or 'no answer'}", remedy)
    if found.status in (403, 407):
        return broken(
            name,
            f"the node is refused (HTTP {found.status}) at {what}",
            "maas PROFILE subnet update CIDR allow_proxy=true, or let the proxy serve the node's network",
        )
    if found.status >= 300:
        remedy = "correct the node's package source, or the proxy's way to it"
        return broken(name, f"the node gets HTTP {found.status} for {what}", remedy)
    if request.proxy and not found.own_proxy:
        message = f"the node fetches packages without MAAS's proxy, which works ({what})"
        return warn(name, message, "give its apt the proxy: Acquire::http::Proxy in /etc/apt/apt.conf.d")
    return ok(name, f"the node fetches {what}")


def _ntp(request: NodeRequest, view: NodeView) -> Diagnosis:
    name = NAMES[2]
    if not request.ntp:
        return not_measured(name, "MAAS names no time server")
    wrong = {server: _clock_error(view, server) for server in request.ntp}
    bad = [f"{server} ({error})" for server, error in wrong.items() if error]
    if len(bad) == len(request.ntp):
        remedy = "open UDP port 123 to the node, and start chrony on the racks (sudo snap restart maas)"
        return broken(name, f"the node gets no time: {enumerated(bad)}", remedy)
    offsets = {server: view.time[server].offset for server, error in wrong.items() if not error}
    worst = max(offsets, key=lambda one: abs(offsets[one]))
    message = f"{worst} is {abs(offsets[worst]):.3f} s {'ahead of' if offsets[worst] > 0 else 'behind'} the node"
    remedy = f"{_TRY}chronyc tracking, or timedatectl timesync-status; set its clock"
    if abs(offsets[worst]) > OFFSET_BROKEN_S:
        return broken(name, message, remedy)
    if bad:
        return warn(name, f"{message}; others give no time: {enumerated(bad)}", "start chrony on them")
    return warn(name, message, remedy) if abs(offsets[worst]) > OFFSET_WARN_S else ok(name, message)


def _clock_error(view: NodeView, server: str) -> str:
    """Return why a server's answer sets no clock; empty where it does."""
    answer = view.time.get(server)
    if answer is None:
        return "not asked"
    if answer.error:
        return _line(answer.error)
    if answer.leap == _NOT_SET or not 1 <= answer.stratum <= _LAST_STRATUM:
        return f"its own clock is not set, stratum {answer.stratum}"
    return ""


def _metadata(view: NodeView) -> Diagnosis:
    name, found = NAMES[3], view.metadata
    if not found.configured:
        message = "cloud-init on the node has no URL and key of MAAS: MAAS did not install it, or they were removed"
        return not_measured(name, message)
    where = _line(found.url)
    if found.status is None:
        remedy = "open the racks' port 5248 (the region's 5240) to the node; start MAAS"
        return broken(name, f"the metadata service {where} does not answer: {_line(found.error) or 'nothing'}", remedy)
    if found.status in (401, 403):
        return broken(
            name,
            f"the metadata service {where} rejects the node's own key (HTTP {found.status})",
            "compare the clocks of both; where MAAS has released or deleted the machine, install it again",
        )
    if found.status != 200 or not found.named:
        remedy = "see regiond.log and rackd.log on the MAAS host"
        return broken(name, f"the metadata service {where} gives no instance ID (HTTP {found.status})", remedy)
    return ok(name, f"the metadata service {where} gives the node its instance ID")


def _line(text: str) -> str:
    return visible_line(text, 160)


def unseen(why: str, remedy: str) -> tuple[Diagnosis, ...]:
    """Return the diagnoses of a node that tried nothing."""
    return tuple(not_measured(name, why, remedy if name == NAMES[0] else "") for name in NAMES)
