"""Adoption: take in machines that are installed already. Nothing is installed, and no disk is written.

A node is refused by itself: the others go on.
"""

from __future__ import annotations

import base64
import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace

from clusterctl.edges.clock import CLOCK
from clusterctl.edges.site.host_networks import host_networks
from clusterctl.fleet.decisions.adopt import adoptable, adopted, require_same_key
from clusterctl.fleet.errors import ClusterctlError, EdgeError, UsageError
from clusterctl.fleet.finding import Digest, Evidence, Observed
from clusterctl.fleet.node import Serial, Stage, Step
from clusterctl.fleet.payloads.node import HostKeyTrust
from clusterctl.fleet.state import NodeState, NodeSummary
from clusterctl.operations import bootstrap
from clusterctl.operations.adapters import Access, Adapters
from clusterctl.operations.bootstrap import RunRequest, RunResult
from clusterctl.operations.context import SiteContext
from clusterctl.operations.gold_pool import publish
from clusterctl.operations.operation import Control, Effect, Failure, Preview
from clusterctl.operations.selection import require_listed, selected
from clusterctl.ports import Deadline, HostAddress, OfferedKey
from clusterctl.ports.isolation import peer_error
from clusterctl.steps.install.adopt import WORKERS, read_serial, same_serial

NAME = "adopt"
LOOK_S = 300.0
"""Seconds for one node's host and BMC to answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptRequest:
    """`nodes`: names and patterns; `new_host_key`: their hosts were installed again by hand, and have new keys."""

    nodes: tuple[str, ...]
    new_host_key: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidate:
    """A node that may be adopted: what its host offers, and the serial that host and BMC agree on.

    Of a node without a BMC, `serial` is the host's own word: the operator confirms it. `machine`: the serial that the
    BMC calls its machine's; hosts of one enclosure may show the enclosure's.
    """

    node: NodeState
    host: HostAddress
    offered: OfferedKey
    serial: str
    machine: str
    evidence: tuple[Evidence, ...]

    @property
    def trust(self) -> HostKeyTrust:
        return HostKeyTrust.AUTHORITY if self.offered.certified else HostKeyTrust.OPERATOR

    @property
    def effect(self) -> str:
        key = f"host key {fingerprint(self.offered.public)}"
        proven = "certified by the site's authority" if self.offered.certified else "confirmed by you"
        refused = f" ({self.offered.refused})" if self.offered.refused else ""
        shown = "by BMC and host" if self.node.bmc else "by its host alone"
        return (
            f"serial {self.serial} {shown}, at {self.host.address}, {key} {proven}{refused}; "
            "then discover and install verify it, and no disk is written"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    candidates: tuple[_Candidate, ...]
    refused: Mapping[str, str]

    @property
    def preview(self) -> Preview:
        by_operator = [one for one in self.candidates if not one.offered.certified]
        without_bmc = [one for one in self.candidates if not one.node.bmc]
        warnings = []
        if by_operator:
            warnings.append(
                f"no certificate vouches for {len(by_operator)} host keys: compare them with what `ssh-keygen -lf "
                "/etc/ssh/ssh_host_ed25519_key.pub` prints on the hosts' consoles"
            )
        if without_bmc:
            warnings.append(
                f"no BMC shows {len(without_bmc)} of these serials: compare them with the machines' labels or your "
                "inventory"
            )
        return Preview(
            operation=NAME,
            question=f"Adopt {len(self.candidates)} nodes with these serials and host keys?",
            effects=tuple(Effect(node=one.node.name, text=one.effect) for one in self.candidates),
            skipped=self.refused,
            warnings=tuple(warnings),
        )


def fingerprint(public: str) -> str:
    """Return the fingerprint of a public key as `ssh-keygen -l` prints it: `SHA256:…`."""
    digest = hashlib.sha256(base64.b64decode(public.split()[1])).digest()
    return f"SHA256:{base64.b64encode(digest).decode().rstrip('=')}"


def preview(context: SiteContext, request: AdoptRequest) -> Preview:
    """Return each node's serial and host key, read now, and the nodes that are refused. Changes nothing."""
    return _plan(context, request, Control()).preview.of(request)


def run(context: SiteContext, request: AdoptRequest, control: Control) -> RunResult:
    """Write the adoption of the nodes, then have discover and install verify them."""
    plan = _plan(context, request, control)
    control.require(plan.preview.of(request))
    context.describe()
    taken, lost = _adopt(context, plan.candidates, request)
    refused = {**plan.refused, **lost}
    if not taken:
        return RunResult(nodes=(), last=Step.INSTALL, skipped=refused, cancelled=control.cancelled.is_set())
    steps = RunRequest(steps=(Step.DISCOVER, Step.INSTALL), limit=taken)
    done = bootstrap.run(context, steps, Control(None, control.on_event, control.cancelled))
    return replace(done, skipped={**refused, **done.skipped})


def _adopt(
    context: SiteContext, candidates: Sequence[_Candidate], request: AdoptRequest
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Write the adoptions; return the adopted nodes, and those that another run has taken or changed meanwhile."""
    known = {node.name: node.id for node in context.journal.summaries()}
    claims = context.journal.claim([known[one.node.name] for one in candidates], context.run)
    taken, lost = [], {}
    try:
        for one in candidates:
            node = context.journal.state(known[one.node.name])
            if node.id in claims.refused:
                lost[node.name] = claims.refused[node.id]
                continue
            try:
                adoptable(node, CLOCK.now(), new_key=request.new_host_key)
            except UsageError as error:
                lost[node.name] = str(Failure.of(error))
                continue
            context.journal.store(one.evidence)
            digests: tuple[Digest, ...] = tuple(item.digest for item in one.evidence)
            events = adopted(node, one.host.address, (one.offered.public, one.trust), one.serial, digests)
            context.journal.append(events, claim=claims.granted[node.id])
            taken.append(node.name)
    finally:
        context.journal.release(claims.granted.values())
    with closing(context.adapters(Access.READ)) as adapters:
        publish(context.journal, adapters.pool)
    return tuple(taken), lost


def _plan(context: SiteContext, request: AdoptRequest, control: Control) -> _Plan:
    names = selected(context, request.nodes)
    require_listed(context, names)
    addresses = host_networks(context.site)
    found: list[_Candidate] = []
    refused: dict[str, str] = {}
    with closing(context.adapters(Access.READ)) as adapters, ThreadPoolExecutor(WORKERS, NAME) as pool:
        reader = _Reader(context, adapters, request, control)
        running = [
            (node, pool.submit(reader.candidate, node, addresses.address(node.name) or node.address))
            for node in _as_listed(context, names)
        ]
        for node, future in running:
            one = future.result()
            if isinstance(one, _Candidate):
                found.append(one)
            else:
                refused[node.name] = str(Failure.of(replace_where(one, node.name)))
    twice = _claimed_twice(found, context.nodes())
    refused |= {name: str(Failure.of(error)) for name, error in twice.items()}
    return _Plan(candidates=tuple(one for one in found if one.node.name not in twice), refused=refused)


def _claimed_twice(found: Sequence[_Candidate], nodes: Iterable[NodeSummary]) -> dict[str, UsageError]:
    """Return the nodes with a serial that another candidate shows, too, or that another node has.

    Two addresses lead to one machine then, or a maker has left the same text in all of its boards.
    """
    owners: dict[str, set[str]] = defaultdict(set)
    for node in nodes:
        if node.serial and node.stage is not Stage.RETIRED:
            owners[node.serial.strip().casefold()].add(node.name)
    for one in found:
        owners[one.machine.strip().casefold()].add(one.node.name)
    remedy = "give each node the address of its own host; set the serial with the vendor's tool where it was never set"
    refused = {}
    for one in found:
        others = sorted(owners[one.machine.strip().casefold()] - {one.node.name})
        if others:
            named = ", ".join(others[:3]) + (f" and {len(others) - 3} more" if others[3:] else "")
            refused[one.node.name] = UsageError(f"it shows serial {one.machine}, as {named} does", remedy=remedy)
    return refused


def _as_listed(context: SiteContext, names: Sequence[str]) -> Iterator[NodeState]:
    """Yield the nodes with BMC and serial as the sheet has them now: the journal may know an earlier sheet's."""
    for node in context.states(names):
        listed = context.site.by_name[node.name]
        yield replace(node, bmc=listed.bmc, expected_serial=Serial(listed.serial) if listed.serial else None)


def replace_where(error: ClusterctlError, name: str) -> ClusterctlError:
    """Return the error without its place where that is the node's name: the list of refused nodes has it already."""
    if error.where == name:
        error.where = ""
    return error


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads hosts and BMCs, many at a time."""

    context: SiteContext
    adapters: Adapters
    request: AdoptRequest
    control: Control

    def candidate(self, node: NodeState, address: str) -> _Candidate | ClusterctlError:
        """Return what would be adopted, or why the node is refused."""
        try:
            return self._read(node, address)
        except Exception as error:  # noqa: BLE001 — peer_error raises what is not the peer's
            return peer_error(error, node.name)

    def _read(self, node: NodeState, address: str) -> _Candidate:
        adoptable(node, CLOCK.now(), new_key=self.request.new_host_key)
        if not address:
            remedy = "give the host's address in the sheet (column address), or by network.rules of site.yml"
            raise UsageError("the address of its host is not known", where=node.name, remedy=remedy)
        deadline = Deadline.after(LOOK_S, self.control.cancelled)
        offered = self.adapters.host_keys.read(node.name, address, deadline)
        require_same_key(node, offered.public, replace=self.request.new_host_key)
        ssh = self.context.site.settings.ssh
        host = HostAddress(node.name, address, ssh.user, offered.public, self.context.site.path(ssh.private_key))
        serial = read_serial(self.adapters.shell, host, deadline)
        if node.bmc:
            machine = self._one_machine(node, address, serial.value, deadline)
        else:
            machine = Observed(serial.value, ())
            _require_expected(node, serial.value, (serial.value,))
        return _Candidate(
            node=node,
            host=host,
            offered=offered,
            serial=serial.value,
            machine=machine.value,
            evidence=(*serial.evidence, *machine.evidence),
        )

    def _one_machine(self, node: NodeState, address: str, serial: str, deadline: Deadline) -> Observed[str]:
        """Return the serial by the BMC, once it is proven that BMC, host and sheet mean one machine. Raises `EdgeError`
        where they do not.
        """
        with self.adapters.bmcs.open(self.context.site.bmc_address(node.name), deadline) as bmc:
            seen = bmc.inventory(deadline)
        shown = (seen.value.serial, *seen.value.aliases)
        if not any(same_serial(serial, one) for one in shown):
            raise EdgeError(
                f"the BMC at {node.bmc} shows the machine {seen.value.serial}, the host at {address} runs on {serial}",
                where=node.name,
                remedy="correct the address of the BMC or of the host in the sheet",
            )
        _require_expected(node, seen.value.serial, shown)
        return Observed(seen.value.serial, seen.evidence)


def _require_expected(node: NodeState, serial: str, shown: Iterable[str]) -> None:
    """Raise `EdgeError` where none of the serials that a machine shows is the one that is expected of the node."""
    expected = node.serial or node.expected_serial
    if expected and not any(same_serial(expected, one) for one in shown):
        raise EdgeError(
            f"the machine has serial {serial}, and {expected} was expected",
            where=node.name,
            remedy="correct the serial in the sheet, or find out which machine stands there",
        )
