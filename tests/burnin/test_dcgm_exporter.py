"""dcgm_exporter: it answers, has each GPU, and its values move.

Lines of V100 from NVIDIA/dcgm-exporter issue 250 (not all GPUs were reported) and of an A30 with MIG from issue 317.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.finding import Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.formats.nvidia.dcgm_exporter import parse_dcgm_metrics
from clusterctl_burnin.check import Expected
from clusterctl_burnin.node.programs import dcgm_metrics
from clusterctl_burnin.probe import Readings
from clusterctl_burnin.registry import CHECKS
from clusterctl_burnin.watch import EVENTS
from tests.burnin.kit import SKU, expected, healthy_text, readings

V100 = tuple(
    f'DCGM_FI_DEV_SM_CLOCK{{gpu="{at}",UUID="{uuid}",device="nvidia{at}",modelName="Tesla V100-SXM2-32GB",Hostname="r6i3n0"}} 135'
    for at, uuid in enumerate(("GPU-a6158b59-2c1e-1e63-0068-9178c4298abd", "GPU-8d5053b3-9280-7d1a-751b-4fd2fdd547c5"))
)
MIG = tuple(
    'DCGM_FI_DEV_SM_CLOCK{gpu="0",UUID="GPU-265c9814-6156-355b-e589-ff2064894f16",device="nvidia0",'
    f'modelName="NVIDIA A30",GPU_I_PROFILE="1g.6gb",GPU_I_ID="{number}",Hostname="a30-node"}} 1440'
    for number in (3, 4)
)
CHECK = CHECKS["dcgm_exporter"]


def document(**changes: Any) -> str:
    return json.dumps({**json.loads(healthy_text("dcgm_metrics")), **changes})


def lines() -> list[str]:
    found: list[str] = json.loads(healthy_text("dcgm_metrics"))["metrics"]
    return found


def found(text: str, node: Expected | None = None) -> list[tuple[str, Verdict, Code]]:
    judged = CHECK.findings(readings(dcgm_metrics=lambda _: text), node or expected())
    return [(one.subject, one.verdict, one.code) for one in judged]


def test_each_line_is_of_a_gpu() -> None:
    """Two of MIG are two values of one GPU; a line without a UUID (of a switch) is none."""
    read = parse_dcgm_metrics(document(metrics=[*V100, *MIG, 'DCGM_FI_DEV_NVSWITCH_X{nvswitch="0"} 3']))
    assert {uuid[:8]: len(values) for uuid, values in read.gpus.items()} == {
        "GPU-a615": 1,
        "GPU-8d50": 1,
        "GPU-265c": 2,
    }


@pytest.mark.parametrize("line", ["DCGM_FI_DEV_SM_CLOCK 135", "DCGM_X{", "# HELP", "DCGM_X{a=1} 1 2 3"])
def test_another_line_is_refused(line: str) -> None:
    with pytest.raises(ParseError):
        parse_dcgm_metrics(document(metrics=[line]))


def test_a_healthy_exporter() -> None:
    assert found(healthy_text("dcgm_metrics")) == [("node", Verdict.PASS, Code.PASSED)]


def test_where_the_site_names_none() -> None:
    """Nor where the SKU has no GPU."""
    assert [one[1] for one in found(document(url="", metrics=[]))] == [Verdict.NOT_APPLICABLE]
    assert [one[1] for one in found(document(), expected(sku=replace(SKU, gpu_count=0)))] == [Verdict.NOT_APPLICABLE]


def test_one_that_does_not_answer() -> None:
    text = document(complaint="<urlopen error [Errno 111] Connection refused>", metrics=[])
    assert found(text) == [("node", Verdict.FAIL, Code.SERVICE_MUTE)]


def test_one_without_any_gpu() -> None:
    """As where its host engine is gone: it answers with its own figures."""
    assert found(document(metrics=[])) == [("node", Verdict.FAIL, Code.EXPORTER_GPUS)]


def test_a_gpu_that_it_does_not_report() -> None:
    assert found(document(metrics=lines()[::2])) == [("gpu 1", Verdict.FAIL, Code.EXPORTER_GPUS)]


def test_a_gpu_that_was_replaced() -> None:
    """It still has the old one: it was not started again."""
    old = [line.replace("000000000001", "00000000000f") for line in lines()]
    assert found(document(metrics=old)) == [
        ("gpu 1", Verdict.FAIL, Code.EXPORTER_GPUS),
        ("node", Verdict.FAIL, Code.EXPORTER_STALE),
    ]


def during(first: str, second: str, seconds: float) -> list[Code]:
    """Return what the watch of a load finds."""

    def reading(text: str, after: float) -> Readings:
        read = readings(dcgm_metrics=lambda _: text)
        moved = replace(read.probes["dcgm_metrics"], started=read.started + timedelta(seconds=after))
        return replace(read, probes={**read.probes, "dcgm_metrics": moved})

    return [one.code for one in CHECK.found_during(reading(first, 0), reading(second, seconds), expected())]


def test_values_that_do_not_move_during_a_load() -> None:
    """The same power of each GPU to the last digit; a short load, or one GPU that moved, proves nothing."""
    moved = document(metrics=[line.replace("70.214", "691.8") for line in lines()])
    assert during(document(), document(), 300) == [Code.EXPORTER_STALE]
    assert during(document(), document(), 60) == []
    assert during(document(), moved, 300) == []
    assert during(document(url="", metrics=[]), document(url="", metrics=[]), 300) == []


def counting(uuid: str = "GPU-00000001-0000-4000-8000-000000000001", **fields: object) -> str:
    """Return what the exporter reports, with further fields of one GPU."""
    more = [f'DCGM_FI_DEV_{name}{{gpu="1",UUID="{uuid}",device="nvidia1"}} {value}' for name, value in fields.items()]
    return document(metrics=[*lines(), *more])


@pytest.mark.parametrize(
    ("field", "by", "seconds", "code"),
    [
        ("ECC_DBE_VOL_TOTAL", 1, 60, Code.GPU_ECC_UNCORRECTABLE),
        ("ROW_REMAP_FAILURE", 1, 60, Code.GPU_REMAP_FAILED),
        ("NVLINK_REPLAY_ERROR_COUNT_TOTAL", 1, 60, Code.NVLINK_ERRORS),
        ("NVLINK_RECOVERY_ERROR_COUNT_TOTAL", 1, 80, Code.NVLINK_ERRORS),
        ("NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", 50 * 60, 60, None),
        ("NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", 200 * 60, 60, Code.NVLINK_ERRORS),
        ("NVLINK_CRC_DATA_ERROR_COUNT_TOTAL", 200 * 60, 60, Code.NVLINK_ERRORS),
        ("PCIE_REPLAY_COUNTER", 8, 60, None),
        ("PCIE_REPLAY_COUNTER", 40, 60, Code.GPU_PCIE_REPLAYS),
        ("XID_ERRORS", 79, 60, Code.XID),
        ("GPU_TEMP", 40, 60, None),
    ],
)
def test_what_dcgm_counts_during_a_load(field: str, by: int, seconds: float, code: Code | None) -> None:
    """On the GPU with that UUID, whatever number the exporter gives it; what was counted before the load is none."""
    first, last = counting(**{field: 7}), counting(**{field: 7 + by})
    assert during(first, last, seconds) == ([code] if code else [])
    assert during(last, last, 60) == []


def test_two_fields_of_one_gpu_are_two_findings_and_the_load_does_not_pass() -> None:
    """A new Xid by itself is a warning, since the kernel log judges it; a load with one does not pass."""
    first = counting(XID_ERRORS=0, NVLINK_REPLAY_ERROR_COUNT_TOTAL=0)
    last = counting(XID_ERRORS=79, NVLINK_REPLAY_ERROR_COUNT_TOTAL=3)
    assert during(first, last, 60) == [Code.NVLINK_ERRORS, Code.XID]
    assert {Code.NVLINK_ERRORS, Code.XID} <= EVENTS


@pytest.mark.parametrize("value", ["nan", "inf", "many", "-"])
def test_a_field_without_a_number_is_not_judged(value: str) -> None:
    assert during(counting(ECC_DBE_VOL_TOTAL=0), counting(ECC_DBE_VOL_TOTAL=value), 60) == []


def test_a_field_that_fell_or_an_exporter_that_is_gone_proves_nothing() -> None:
    """INCONCLUSIVE in both cases."""
    assert during(counting(ECC_DBE_VOL_TOTAL=3), counting(ECC_DBE_VOL_TOTAL=0), 60) == [Code.NOT_MEASURED]
    gone = document(complaint="Connection refused", metrics=[])
    assert during(counting(ECC_DBE_VOL_TOTAL=3), gone, 60) == [Code.NOT_MEASURED]


def test_a_gpu_that_the_exporter_reports_no_longer() -> None:
    """It answers after the load, without one GPU or without any: nothing is known of what these counted."""
    one = document(metrics=[line for line in lines() if 'gpu="1"' not in line])
    assert during(document(), one, 60) == [Code.NOT_MEASURED]
    assert during(document(), document(metrics=[]), 60) == [Code.NOT_MEASURED, Code.NOT_MEASURED]


class Exporter(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/metrics" else 404)
        self.end_headers()
        text = f"# HELP DCGM_FI_DEV_SM_CLOCK SM clock\n{V100[0]}\nprocess_cpu_seconds_total 3\n"
        self.wfile.write(text.encode())

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def exporter() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Exporter) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_the_program_asks_what_the_site_names(exporter: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert dcgm_metrics.main({"dcgm_exporter": f"{exporter}/metrics"}, 5.0) == 0
    read = parse_dcgm_metrics(capsys.readouterr().out)
    assert (read.error_output, len(read.gpus)) == ("", 1)
    assert dcgm_metrics.main({"dcgm_exporter": f"{exporter}/other"}, 5.0) == 0
    assert "404" in parse_dcgm_metrics(capsys.readouterr().out).error_output
    assert dcgm_metrics.main({}, 5.0) == 0
    assert parse_dcgm_metrics(capsys.readouterr().out).url == ""
