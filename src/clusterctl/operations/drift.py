"""`configure --check`: what the roles would change on nodes, by Ansible's check mode. Changes and records nothing."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing

import click

from clusterctl.fleet.errors import CancelledError, ClusterctlError
from clusterctl.fleet.node import Stage, Step
from clusterctl.fleet.state import NodeState
from clusterctl.operations.adapters import Edges
from clusterctl.operations.context import CLOCK, Office
from clusterctl.operations.role_variables import role_variables
from clusterctl.ports import Deadline, HostAddress, Playbooks
from clusterctl.steps.configure.step import plays_before
from clusterctl.steps.executor.reachability import SshAccess
from clusterctl_cli.options import matching
from clusterctl_cli.render_drift import Look, drift_json, drift_text
from clusterctl_cli.stopping import stoppable


def check(office: Office, limit: tuple[str, ...], *, as_json: bool) -> int:
    """Look, tell; the exit code: 0 where all is as the site has it, 1 where something would change or was not measured.

    Without `limit` the gold pool is looked at; with it every node that matches and was configured once.
    """
    nodes, passed = select(office, limit)
    settings = office.site.settings
    reach = SshAccess(settings.ssh.user, office.site.path(settings.ssh.private_key))
    hosts, lost = reach.split(nodes, Step.CONFIGURE)
    passed |= {node.name: "its address or host key is unknown" for node in nodes if node.name not in hosts}
    asked = [(node, hosts[node.name]) for node in nodes if node.name in hosts]
    cancelled = threading.Event()
    with closing(Edges(office.site, read_only=True, checking=True)) as outside, stoppable(cancelled):
        looks = list(_looks(office, outside.playbooks, reach, asked, cancelled))
    told = drift_json(looks, passed) if as_json else drift_text(looks, passed)
    click.echo(json.dumps(told) if as_json else told)
    if cancelled.is_set():
        return CancelledError.exit_code
    return 0 if looks and not lost and all(look.clean for look in looks) else 1


def select(office: Office, limit: tuple[str, ...]) -> tuple[list[NodeState], dict[str, str]]:
    """Whom to look at, and why others that were named are not."""
    known = {node.name: node for node in office.nodes() if node.stage is not Stage.RETIRED}
    names = sorted(matching(known, limit))
    if not limit:
        return office.named(name for name in names if known[name].in_pool(CLOCK.now())), {}
    before = (Stage.SEEN, Stage.DISCOVERED, Stage.INSTALLED)
    passed = {name: "it was never configured" for name in names if known[name].stage in before}
    return office.named(name for name in names if name not in passed), passed


def _looks(
    office: Office,
    playbooks: Playbooks,
    reach: SshAccess,
    asked: Sequence[tuple[NodeState, HostAddress]],
    cancelled: threading.Event,
) -> Iterator[Look]:
    """In batches, as the step configures; a host of which nothing was heard is unmeasured."""
    settings = office.site.settings
    size = settings.batch.configure
    for at in range(0, len(asked), size):
        nodes, hosts = zip(*asked[at : at + size], strict=True)
        deadline = Deadline.after(float(settings.deadlines.configure), cancelled)
        variables = {**role_variables(office, reach, hosts), **plays_before(nodes)}
        yield from _batch(playbooks, settings.configure.playbook, hosts, variables, deadline)


def _batch(
    playbooks: Playbooks,
    playbook: str,
    batch: Sequence[HostAddress],
    variables: Mapping[str, object],
    deadline: Deadline,
) -> Iterator[Look]:
    left = {host.name for host in batch}
    why = "the check ended without a word about it"
    try:
        for play in playbooks.run(playbook, batch, variables, deadline):
            left.discard(play.value.host)
            yield Look.of(play.value)
    except CancelledError:
        why = "the check was stopped"
    except ClusterctlError as error:
        why = str(error)
    for name in sorted(left):
        yield Look(name, unmeasured=why)
