"""Plans of rolling changes as text and as documents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from clusterctl.fleet.maintenance.forecast import Forecast
from clusterctl.fleet.maintenance.progress import Progress
from clusterctl.fleet.peer_text import visible
from clusterctl_cli.text import columns, duration, terminal_width

NONE = "No plan has begun. Begin one: clusterctl maintain PLAN.yml"


def plans_text(plans: Sequence[Progress]) -> str:
    """Return one line per plan: how much of it is done."""
    if not plans:
        return NONE
    rows = [(one.name, one.actor, f"{one.ordered:%Y-%m-%d %H:%M}", one.line()) for one in plans]
    return visible(columns(("PLAN", "BY", "BEGUN", "STATE"), rows, width=terminal_width()))


def plan_text(progress: Progress) -> str:
    """Return the plan's line, and one line per node."""
    return visible("\n".join(_lines(progress)))


def _lines(progress: Progress) -> Iterator[str]:
    yield f"{progress.name}: {progress.line()}"
    rows = [
        (name, label, progress.of(name).turn.value, progress.of(name).text)
        for label, wave in zip(progress.labels, progress.waves, strict=True)
        for name in wave
    ]
    rows += [(name, "", "left alone", why) for name, why in progress.skipped.items()]
    yield columns(("NODE", "WAVE", "STATE", ""), rows, width=terminal_width())


def forecast_text(forecast: Forecast) -> str:
    """Return how long the waves take, as one line."""
    if not forecast.waves:
        return "expected time: none"
    if not forecast.steps:
        return "expected time: unknown, no node has had these steps yet"
    each = ", ".join(f"{step.value} {duration(seconds)}" for step, seconds in forecast.steps.items())
    left_out = (*(step.value for step in forecast.unknown), *forecast.without)
    without = f"; without {', '.join(left_out)}" if left_out else ""
    waves = f"{len(forecast.waves)} wave{'s' if len(forecast.waves) > 1 else ''}"
    return f"expected time: {duration(forecast.seconds)} in {waves}, and the jobs' own ({each}{without})"
