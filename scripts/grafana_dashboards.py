"""The dashboards of the role grafana, as code: `make dashboards` writes roles/grafana/files/dashboards.

Built with grafana-foundation-sdk, whose types are generated from Grafana's schemas. A test holds the files against this
module, and runs each query on a real Prometheus.
"""

from __future__ import annotations

import json
from pathlib import Path

from grafana_foundation_sdk.builders import stat, timeseries
from grafana_foundation_sdk.builders.common import VizLegendOptions
from grafana_foundation_sdk.builders.dashboard import Dashboard, DashboardLink, QueryVariable
from grafana_foundation_sdk.builders.prometheus import Dataquery
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import LegendDisplayMode, LegendPlacement
from grafana_foundation_sdk.models.dashboard import (
    DashboardLinkType,
    DataSourceRef,
    VariableRefresh,
)

from scripts.grafana_boards import BOARDS, Board, Panel

FOLDER = Path(__file__).parents[1] / "roles/grafana/files/dashboards"
SOURCE = DataSourceRef(type_val="prometheus", uid="prometheus")
"""The role grafana provisions the data source with this uid."""
HEIGHT = 8


def built(board: Board) -> str:
    """Return a dashboard as JSON."""
    made = (
        Dashboard(f"clusterctl: {board.title}")
        .uid(f"clusterctl-{board.name}")
        .tags(["clusterctl"])
        .time("now-6h", "now")
        .refresh("1m")
        .timezone("utc")
        .link(DashboardLink("clusterctl").type(DashboardLinkType.DASHBOARDS).tags(["clusterctl"]).as_dropdown(True))
    )
    if board.variable:
        made = made.with_variable(
            QueryVariable(board.variable)
            .query(f'label_values(up{{job="node_exporter"}}, {board.variable})')
            .datasource(SOURCE)
            .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        )
    for panel in board.panels:
        made = made.with_panel(_stat(panel) if panel.now else _graph(panel))
    return json.dumps(json.loads(JSONEncoder(sort_keys=True).encode(made.build())), indent=1, sort_keys=True) + "\n"


def _graph(panel: Panel) -> timeseries.Panel:
    legend = VizLegendOptions().display_mode(LegendDisplayMode.LIST).placement(LegendPlacement.BOTTOM).show_legend(True)
    made = timeseries.Panel().title(panel.title).unit(panel.unit).description(panel.text).legend(legend)
    made = made.datasource(SOURCE).span(panel.span).height(HEIGHT)
    for number, (expression, series) in enumerate(panel.queries):
        made = made.with_target(_query(number, expression, series))
    return made


def _stat(panel: Panel) -> stat.Panel:
    made = stat.Panel().title(panel.title).unit(panel.unit).description(panel.text)
    made = made.datasource(SOURCE).span(panel.span).height(HEIGHT)
    for number, (expression, series) in enumerate(panel.queries):
        made = made.with_target(_query(number, expression, series).instant())
    return made


def _query(number: int, expression: str, series: str) -> Dataquery:
    return Dataquery().expr(expression).legend_format(series).ref_id(chr(ord("A") + number)).datasource(SOURCE)


def write(folder: Path = FOLDER) -> None:
    """Write all dashboards."""
    folder.mkdir(parents=True, exist_ok=True)
    for board in BOARDS:
        (folder / f"{board.name}.json").write_text(built(board))


if __name__ == "__main__":
    write()
