"""BIOS settings and firmware against the SKUs' baselines: read how machines stand, and bring them there in waves."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field

from clusterctl.edges.clock import CLOCK
from clusterctl.fleet.decisions import decision as orders
from clusterctl.fleet.decisions.permissions import settings_permitted
from clusterctl.fleet.errors import CancelledError, UsageError
from clusterctl.fleet.node import Stage
from clusterctl.fleet.settings.baseline import Baseline
from clusterctl.fleet.settings.drift import Drift, in_words, not_right
from clusterctl.fleet.settings.plan import Todo, todo
from clusterctl.fleet.state import NodeState, NodeSummary
from clusterctl.fleet.waves import Machine
from clusterctl.operations.adapters import Access, Adapters
from clusterctl.operations.compose import reboot_cap
from clusterctl.operations.context import SiteContext
from clusterctl.operations.operation import Control, Failure, Preview, Result
from clusterctl.operations.selection import selected
from clusterctl.operations.waves import WavePlan, WaveRequest, WaveRun, node_ids
from clusterctl.ports import Deadline, Images
from clusterctl.steps.settings.apply_baseline import BaselineApplier, BaselineWork
from clusterctl.steps.settings.machine_session import SettingsServices, SettingsTimeouts
from clusterctl.steps.settings.read_baseline import BaselineQuery, BaselineReader, BaselineReading

NAME = "settings apply"
READ_S = 600.0
DONE = "as the baseline has it"


@dataclass(frozen=True, slots=True)
class Selection:
    """`asked`: nodes with a BMC that is read; `skipped`: why others are not, `unknown` those of them that should be."""

    asked: tuple[BaselineQuery, ...]
    skus: Mapping[str, str]
    skipped: Mapping[str, str] = field(default_factory=dict)
    unknown: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineCheck:
    """How one machine differs from its baseline, or why that is unknown."""

    name: str
    sku: str
    drifts: tuple[Drift, ...] = ()
    failure: Failure | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsCheck:
    """How machines differ from their baselines; `skipped`: machines that were not read, with the reason."""

    nodes: tuple[BaselineCheck, ...]
    skipped: Mapping[str, str]
    complete: bool
    cancelled: bool

    @property
    def exit_code(self) -> int:
        if self.cancelled:
            return CancelledError.exit_code
        right = all(not node.failure and not not_right(node.drifts) for node in self.nodes)
        return 0 if self.nodes and self.complete and right else 1


def check(context: SiteContext, patterns: Sequence[str], seconds: float, control: Control) -> SettingsCheck:
    """Read how the machines stand to their baselines; all nodes without patterns."""
    selection = _select(context, patterns)
    with closing(context.adapters(Access.READ)) as adapters:
        read = _read(context, adapters, selection.asked, Deadline.after(seconds, control.cancelled))
    return SettingsCheck(
        nodes=tuple(
            BaselineCheck(
                name=one.name,
                sku=selection.skus[one.name],
                drifts=one.drifts,
                failure=Failure.of(one.error) if one.error else None,
            )
            for one in read
        ),
        skipped=selection.skipped,
        complete=not selection.unknown,
        cancelled=control.cancelled.is_set(),
    )


def preview(context: SiteContext, request: WaveRequest) -> Preview:
    """Return what would be changed, from how the machines stand now."""
    plan, _ = _plan(context, request, Control())
    return plan.preview(NAME).of(request)


def run(context: SiteContext, request: WaveRequest, control: Control) -> Result:
    """Bring the machines to their baselines, wave by wave; interrupted, the same request looks first and goes on."""
    context = context.reporting(control.waiting)
    plan, todos = _plan(context, request, control)
    control.require(plan.preview(NAME).of(request))
    with closing(context.adapters()) as adapters:
        return WaveRun(
            operation=NAME,
            context=context,
            adapters=adapters,
            request=request,
            plan=plan,
            work=baseline_work(context, adapters, request.nodes, todos.values()),
            done=DONE,
        ).run(control)


def baseline_work(
    context: SiteContext, adapters: Adapters, patterns: Sequence[str], todos: Iterable[Todo]
) -> BaselineWork:
    """Return what brings machines to their baselines. `todos`: what they need, for the time that a wave may take."""
    baselines = {one.name: one.baseline for one in _select(context, patterns).asked}
    images = max((len(item.bmc) + len(item.host) for item in todos), default=0)
    timing = context.site.settings.timing
    pace = SettingsTimeouts(poll=timing.settings_poll_s, show=timing.settings_report_s)
    applier = BaselineApplier(
        SettingsServices(
            bmcs=adapters.bmcs,
            address_of=context.site.bmc_address,
            journal=context.journal,
            images=adapters.images,
            pace=pace,
            permits=reboot_cap(context).taken,
        )
    )
    return BaselineWork(applier, baselines, pace.longest * (1 + images))


def todos_of(
    context: SiteContext, adapters: Adapters, names: Sequence[str], control: Control
) -> tuple[dict[str, Todo], Mapping[str, str]]:
    """Return what each of these machines needs, as its BMC reports it now, and why that is unknown of others.

    Raises `UsageError` for a missing image.
    """
    selection = _select(context, names)
    readings = _read(context, adapters, selection.asked, Deadline.after(READ_S, control.cancelled))
    unread = {reading.name: str(reading.error) for reading in readings if reading.error is not None}
    todos = {reading.name: todo(reading.drifts) for reading in readings if reading.error is None}
    _check_images(adapters.images, todos.values())
    return todos, {**selection.skipped, **unread}


def plan_text(plan: Todo) -> list[str]:
    """Return what is done to a machine, in that order."""
    text = [f"BMC firmware {wish.component} {wish.wants}" for wish in plan.bmc]
    text += [f"firmware {wish.component} {wish.wants}" for wish in plan.host]
    text += [f"{name} = {value}" for name, value in (plan.attributes or {}).items()]
    text += ["one reboot"] if plan.reboots else []
    return text + [f"by hand: {in_words(each)}" for each in plan.by_hand]


def _plan(context: SiteContext, request: WaveRequest, control: Control) -> tuple[WavePlan, dict[str, Todo]]:
    """Return the waves, and what each machine needs; machines that may not or need not be changed are skipped."""
    orders.checked_reason(request.reason)
    selection, known = _select(context, request.nodes), node_ids(context)
    nodes = [context.journal.state(known[one.name]) for one in selection.asked]
    begun = {node.name for node in nodes if node.open_acts}
    refused = dict(_refused(nodes, request))
    able = [one for one in selection.asked if one.name not in refused]
    with closing(context.adapters(Access.READ)) as adapters:
        readings = _read(context, adapters, able, Deadline.after(READ_S, control.cancelled))
        todos, left = _todos(readings, begun)
        _check_images(adapters.images, todos.values())
    return WavePlan(
        effects={name: "; ".join(plan_text(plan)) for name, plan in todos.items()},
        machines={name: Machine(known[name], kind=selection.skus[name]) for name in todos},
        policy=request.policy,
        skipped={**selection.skipped, **refused, **left},
    ), todos


def _refused(nodes: Iterable[NodeState], request: WaveRequest) -> Iterator[tuple[str, str]]:
    """Yield the machines that may not be changed, with the reason."""
    for node in nodes:
        try:
            settings_permitted(node, CLOCK.now(), from_pool=request.from_pool)
        except UsageError as error:
            yield node.name, f"{error.message}; {error.remedy}"


def _todos(readings: Iterable[BaselineReading], begun: Collection[str]) -> tuple[dict[str, Todo], Mapping[str, str]]:
    """Return what each machine needs, and why others are left alone. A change that has begun is always finished."""
    todos: dict[str, Todo] = {}
    left: dict[str, str] = {}
    for reading in readings:
        plan = todo(reading.drifts)
        if reading.error is not None:
            left[reading.name] = str(reading.error)
        elif not plan.nothing or reading.name in begun:
            todos[reading.name] = plan
        elif plan.by_hand:
            left[reading.name] = "by hand: " + "; ".join(map(in_words, plan.by_hand))
    return todos, left


def _check_images(images: Images, plans: Iterable[Todo]) -> None:
    """Open each image that would be sent, before any machine is touched. Raises `UsageError` for a missing one."""
    wishes = (wish for plan in plans for wish in (*plan.bmc, *plan.host))
    for image in dict.fromkeys(wish.image for wish in wishes if wish.image is not None):
        with images.opened(image):
            pass


def _read(
    context: SiteContext, adapters: Adapters, asked: Sequence[BaselineQuery], deadline: Deadline
) -> list[BaselineReading]:
    """Return how the machines stand, by name."""
    reader = BaselineReader(adapters.bmcs, context.site.bmc_address, context.site.settings.batch.discover)
    return sorted(reader.read(asked, deadline), key=lambda one: one.name)


def _select(context: SiteContext, patterns: Sequence[str]) -> Selection:
    """Return which nodes are read, and why others are not. Raises `UsageError` where no SKU has a baseline."""
    baselines = _baselines(context)
    nodes = _chosen(context, patterns)
    skipped = dict(_skipped(context, nodes, baselines))
    without_baseline = {name for name, baseline in baselines.items() if baseline is None}
    return Selection(
        asked=tuple(_queries((node for node in nodes if node.name not in skipped), baselines)),
        skus={node.name: node.sku for node in nodes},
        skipped=skipped,
        unknown=frozenset(node.name for node in nodes if node.name in skipped and node.sku not in without_baseline),
    )


def _baselines(context: SiteContext) -> Mapping[str, Baseline | None]:
    """Return the baselines by SKU. Raises `UsageError` where no SKU has one."""
    baselines = {sku.name: sku.baseline for sku in context.site.skus}
    if not any(baselines.values()):
        raise UsageError(
            "none of the site's SKUs has a baseline",
            where=context.site.where("skus"),
            remedy="name one in its file, baseline: NAME, and write baselines/NAME.yml (docs/how-to/settings.md)",
        )
    return baselines


def _chosen(context: SiteContext, patterns: Sequence[str]) -> list[NodeSummary]:
    """Return the nodes that the patterns name, retired ones never; all without patterns."""
    names = set(selected(context, patterns or ("*",)))
    return [node for node in context.nodes() if node.name in names and node.stage is not Stage.RETIRED]


def _queries(nodes: Iterable[NodeSummary], baselines: Mapping[str, Baseline | None]) -> Iterator[BaselineQuery]:
    for node in nodes:
        baseline = baselines.get(node.sku)
        if node.serial is not None and baseline is not None:
            yield BaselineQuery(node.name, node.serial, baseline)


def _skipped(
    context: SiteContext, nodes: Sequence[NodeSummary], baselines: Mapping[str, Baseline | None]
) -> Iterator[tuple[str, str]]:
    """Yield node names, each with the reason why its BMC is not read."""
    listed = {node.name for node in context.site.nodes}
    for node in nodes:
        if node.name not in listed:
            yield node.name, "the sheet no longer names it"
        elif not node.bmc:
            yield node.name, "the site gives it no BMC"
        elif node.serial is None or not node.sku:
            yield node.name, f"its SKU is unknown: clusterctl discover --limit {node.name} first"
        elif node.sku not in baselines:
            yield node.name, f"the site no longer has its SKU {node.sku}"
        elif baselines[node.sku] is None:
            yield node.name, f"its SKU {node.sku} has no baseline"
