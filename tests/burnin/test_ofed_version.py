"""ofed_version: `ofed_info -s`, versions of mlx5_core and of the libraries.

`ofed_info -s` as NVIDIA's documents show it (MLNX_OFED_LINUX-23.10-5.1.4.0 and others; without OFED: command not found,
open-mpi/ompi issue 9957); packages as Ubuntu 22.04 and 24.04 and NVIDIA's repositories name them.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.finding import Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.formats.infiniband.rdma_stack import parse_rdma_stack
from clusterctl_burnin.alike import traits, unlike
from clusterctl_burnin.check import Expected
from clusterctl_burnin.node.programs import rdma_stack
from clusterctl_burnin.registry import CHECKS
from tests.burnin.kit import SKU, expected, healthy_text, readings

MODULE = {"version": "24.10-2.1.8", "source": "6A3B", "next_source": "6A3B"}
KERNEL = {"version": None, "source": "1C2D", "next_source": "1C2D"}
OFED = {"ibverbs-providers": "2410mlnx54-1.2410068"}
UBUNTU = {"ibverbs-providers": "50.0-2build2"}
RELEASE = "MLNX_OFED_LINUX-24.10-2.1.8.0:"


def document(wanted: str = "", ofed: str | None = RELEASE, module: Any = MODULE, packages: Any = OFED) -> str:
    return json.dumps({"wanted": wanted, "ofed": ofed, "module": module, "packages": packages})


def found(text: str, node: Expected | None = None) -> list[tuple[Verdict, Code]]:
    judged = CHECKS["ofed_version"].findings(readings(rdma_stack=lambda _: text), node or expected())
    return [(one.verdict, one.code) for one in judged]


@pytest.mark.parametrize(
    ("printed", "release"),
    [
        ("MLNX_OFED_LINUX-23.10-5.1.4.0:", "23.10-5.1.4.0"),
        ("MLNX_OFED_LINUX-5.4-1.0.3.0:", "5.4-1.0.3.0"),
        ("OFED-internal-25.01-0.6.0:", "25.01-0.6.0"),
        ("MLNX_OFED_LINUX-23.10-5.1.4.0", "23.10-5.1.4.0"),
    ],
)
def test_the_release(printed: str, release: str) -> None:
    assert parse_rdma_stack(document(ofed=printed)).release == release


@pytest.mark.parametrize("printed", ["", "bash: ofed_info: command not found", "MLNX_OFED_LINUX-"])
def test_another_text_is_no_release(printed: str) -> None:
    with pytest.raises(ParseError):
        parse_rdma_stack(document(ofed=printed))


@pytest.mark.parametrize(
    "text",
    [
        document(),
        document(wanted="24.10-2.1.8.0"),
        document(wanted="24.10-2.1.8"),
        document(ofed=None, module=KERNEL, packages=UBUNTU),
        document(wanted="inbox", ofed=None, module=KERNEL, packages=UBUNTU),
        document(ofed=None, module={**KERNEL, "version": "5.0-0"}, packages={"rdma-core": "17.2-3.el7"}),
        document(packages={}),
        healthy_text("rdma_stack"),
    ],
)
def test_a_stack_of_one_source(text: str) -> None:
    """Kernels before 5.17 call their own module 5.0-0; another package manager leaves the libraries open."""
    assert found(text) == [(Verdict.PASS, Code.PASSED)]


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        (document(wanted="23.10-5.1.4.0"), [Code.OFED_VERSION]),
        (document(wanted="24.10-2.1"), [Code.PASSED]),
        (document(wanted="24.1"), [Code.OFED_VERSION]),
        (document(wanted="inbox"), [Code.OFED_VERSION]),
        (document(wanted="24.10-2.1.8.0", ofed=None, module=KERNEL, packages=UBUNTU), [Code.OFED_VERSION]),
        (document(module=KERNEL), [Code.RDMA_STACK_MIXED]),
        (document(module={**MODULE, "version": "23.10-5.1.4"}), [Code.RDMA_STACK_MIXED]),
        (document(packages=UBUNTU), [Code.RDMA_STACK_MIXED]),
        (document(module=KERNEL, packages=UBUNTU), [Code.RDMA_STACK_MIXED]),
        (document(ofed=None, module=KERNEL, packages=OFED), [Code.RDMA_STACK_MIXED]),
        (document(module={**MODULE, "next_source": "9F"}), [Code.RDMA_MODULE_REPLACED]),
    ],
)
def test_what_is_wrong(text: str, codes: list[Code]) -> None:
    assert [code for _, code in found(text)] == codes


def test_what_was_not_measured_is_no_pass() -> None:
    """mlx5_core is not loaded; a SKU without adapters, or with those of another maker, has none."""
    assert found(document(module=None))[0][0] is Verdict.INCONCLUSIVE
    assert found("{}")[0][0] is Verdict.INCONCLUSIVE
    assert found(document(), expected(sku=replace(SKU, hca_count=0)))[0][0] is Verdict.NOT_APPLICABLE
    other = replace(SKU, hca_model="BCM57608")
    assert found(document(module=None), expected(sku=other))[0][0] is Verdict.NOT_APPLICABLE


def test_a_node_that_differs_from_its_batch() -> None:
    """A warning of ofed_version, in addition to the release and the kernel of os_release."""
    usual = traits(readings())
    odd = traits(readings(rdma_stack=lambda _: document(ofed=None, module=KERNEL, packages=UBUNTU)))
    ((node, (warning,)),) = unlike({"a": usual, "b": usual, "c": odd}).items()
    assert (node, warning.check, warning.verdict) == ("c", "ofed_version", Verdict.WARN)
    assert warning.measured == "inbox, mlx5_core of the kernel, libraries 50.0-2build2"


def test_the_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On Debian and on Red Hat, with OFED and without."""
    (tmp_path / "version").write_text("24.10-2.1.8\n")
    (tmp_path / "srcversion").write_text("6A3B\n")
    answers = {
        "ofed_info": (0, f"{RELEASE}\n", ""),
        "modinfo": (0, "6A3B\n", ""),
        "dpkg-query": (
            1,
            "ibverbs-providers 2410mlnx54-1.2410068\nrdma-core \n",
            "no packages found matching libibverbs",
        ),
    }
    assert rdma_stack.main({"ofed": "24.10-2.1.8.0"}, tmp_path, lambda *argv, **_: answers[argv[0]]) == 0
    assert parse_rdma_stack(capsys.readouterr().out) == parse_rdma_stack(document(wanted="24.10-2.1.8.0"))
    red_hat = {
        "rpm": (1, "package ibverbs-providers is not installed\nlibibverbs 48.0-1.el9\nrdma-core 48.0-1.el9\n", "")
    }
    gone = (127, "", "not found")
    assert rdma_stack.main({}, tmp_path / "none", lambda *argv, **_: red_hat.get(argv[0], gone)) == 0
    stack = parse_rdma_stack(capsys.readouterr().out)
    assert (stack.release, stack.module, stack.libraries) == ("", None, "48.0-1.el9")


def test_an_ofed_info_that_fails_is_no_answer(tmp_path: Path) -> None:
    assert rdma_stack.main({}, tmp_path, lambda *_argv, **_: (2, "", "broken")) == 1
