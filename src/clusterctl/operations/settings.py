"""BIOS settings and firmware against the SKUs' baselines: read how machines stand, and bring them there in waves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field

from clusterctl.edges.clock import CLOCK
from clusterctl.fleet.decisions import decision as orders
from clusterctl.fleet.decisions.permissions import settings_permitted
from clusterctl.fleet.errors import CancelledError, UsageError
from clusterctl.fleet.hardware.sku import Sku
from clusterctl.fleet.node import Stage
from clusterctl.fleet.settings.drift import Drift, in_words, not_right
from clusterctl.fleet.settings.plan import Todo, todo
from clusterctl.fleet.state import NodeSummary
from clusterctl.fleet.waves import Machine
from clusterctl.operations.adapters import Access, Adapters
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
    """`asked`: nodes whose BMC is read; `skipped`: why others are not, `unknown` those of them that should be."""

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
class Check:
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


def check(context: SiteContext, patterns: Sequence[str], seconds: float, control: Control) -> Check:
    """Read how the machines stand to their baselines; all nodes without patterns."""
    selection = _select(context, patterns)
    with closing(context.adapters(Access.READ)) as adapters:
        read = _read(context, adapters, selection.asked, Deadline.after(seconds, control.cancelled))
    return Check(
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
    return plan.preview(NAME)


def run(context: SiteContext, request: WaveRequest, control: Control) -> Result:
    """Bring the machines to their baselines, wave by wave; interrupted, the same request looks first and goes on."""
    plan, todos = _plan(context, request, control)
    control.require(plan.preview(NAME))
    baselines = {one.name: one.baseline for one in _select(context, request.nodes).asked}
    images = max((len(item.bmc) + len(item.host) for item in todos.values()), default=0)
    timing = context.site.settings.timing
    pace = SettingsTimeouts(poll=timing.settings_poll_s, show=timing.settings_report_s)
    with closing(context.adapters()) as adapters:
        applier = BaselineApplier(
            SettingsServices(adapters.bmcs, context.site.bmc_address, context.journal, adapters.images, pace)
        )
        return WaveRun(
            operation=NAME,
            context=context,
            adapters=adapters,
            request=request,
            plan=plan,
            work=BaselineWork(applier, baselines, pace.longest * (1 + images)),
            done=DONE,
        ).run(control)


def plan_text(plan: Todo) -> list[str]:
    """Return what is done to a machine, in that order."""
    text = [f"BMC firmware {wish.component} {wish.wants}" for wish in plan.bmc]
    text += [f"firmware {wish.component} {wish.wants}" for wish in plan.host]
    text += [f"{name} = {value}" for name, value in (plan.attributes or {}).items()]
    text += ["one reboot"] if plan.reboots else []
    return text + [f"by hand: {in_words(each)}" for each in plan.by_hand]


def _plan(context: SiteContext, request: WaveRequest, control: Control) -> tuple[WavePlan, dict[str, Todo]]:
    """Return the waves, and what each machine needs; machines that may not or need not be changed are skipped."""
    orders.said(request.reason)
    selection = _select(context, request.nodes)
    skipped = dict(selection.skipped)
    able, begun, known = [], set[str](), node_ids(context)
    for one in selection.asked:
        node = context.journal.state(known[one.name])
        begun |= {node.name} if node.open_acts else set()
        try:
            settings_permitted(node, CLOCK.now(), from_pool=request.from_pool)
        except UsageError as error:
            skipped[one.name] = f"{error.message}; {error.remedy}"
        else:
            able.append(one)
    todos: dict[str, Todo] = {}
    with closing(context.adapters(Access.READ)) as adapters:
        for seen in _read(context, adapters, able, Deadline.after(READ_S, control.cancelled)):
            plan = todo(seen.drifts)
            if seen.error is not None:
                skipped[seen.name] = str(seen.error)
            elif not plan.nothing or seen.name in begun:
                todos[seen.name] = plan
            elif plan.by_hand:
                skipped[seen.name] = "by hand: " + "; ".join(map(in_words, plan.by_hand))
        _check_images(adapters.images, todos.values())
    effects = {name: "; ".join(plan_text(plan)) for name, plan in todos.items()}
    machines = {name: Machine(known[name], kind=selection.skus[name]) for name in todos}
    return WavePlan(effects=effects, machines=machines, policy=request.policy, skipped=skipped), todos


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
    skus = {sku.name: sku for sku in context.site.skus}
    if not any(sku.baseline for sku in skus.values()):
        raise UsageError(
            "none of the site's SKUs has a baseline",
            where=context.site.where("skus"),
            remedy="name one in its file, baseline: NAME, and write baselines/NAME.yml (docs/how-to/settings.md)",
        )
    names = set(selected(context, patterns or ("*",)))
    nodes = [node for node in context.nodes() if node.name in names and node.stage is not Stage.RETIRED]
    skipped = dict(_skipped(context, nodes, skus))
    asked = []
    for node in nodes:
        baseline = skus[node.sku].baseline if node.sku in skus else None
        if node.name not in skipped and node.serial is not None and baseline is not None:
            asked.append(BaselineQuery(node.name, node.serial, baseline))
    exempt = {node.name for node in nodes if node.sku in skus and skus[node.sku].baseline is None}
    return Selection(tuple(asked), {node.name: node.sku for node in nodes}, skipped, frozenset(skipped) - exempt)


def _skipped(context: SiteContext, nodes: Sequence[NodeSummary], skus: Mapping[str, Sku]) -> Iterator[tuple[str, str]]:
    """Return node names, each with the reason why its BMC is not read."""
    listed = {node.name for node in context.site.nodes}
    for node in nodes:
        if node.name not in listed:
            yield node.name, "the sheet no longer names it"
        elif node.serial is None or not node.sku:
            yield node.name, f"its SKU is unknown: clusterctl discover --limit {node.name} first"
        elif node.sku not in skus:
            yield node.name, f"the site no longer has its SKU {node.sku}"
        elif skus[node.sku].baseline is None:
            yield node.name, f"its SKU {node.sku} has no baseline"
