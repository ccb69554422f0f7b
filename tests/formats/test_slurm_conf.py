"""Slurm's files: the text of golden cases, short host lists, and settings that a site must not give."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.fabric.switch_tree import SwitchGroup
from clusterctl.formats.slurm_conf import ClusterFacts, ComputeNode, feature_name, gpu_type, host_lists, slurm_files

DATA = Path(__file__).parent / "data/slurm_conf"


def node(name: str, address: str = "", gpus: int = 8, features: tuple[str, ...] = ()) -> ComputeNode:
    return ComputeNode(
        name=name,
        address=address,
        sockets=2,
        cores_per_socket=56,
        threads_per_core=2,
        memory_mib=1992294,
        gpu_count=gpus,
        gpu_type="h100" if gpus else "",
        features=features,
    )


RAILS = ClusterFacts(
    name="west",
    controllers=("slurm1(10.0.0.2)", "slurm2"),
    accounting="slurm1",
    partition="main",
    nodes=(
        *(
            node(f"node{number:03}", f"10.0.1.{number}", features=("dell-xe9680-h100", "unit1", "gold"))
            for number in (2, 1)
        ),
        node("node099", features=("unit2",)),
        node("node100", features=("unit2",)),
        node("gpu1", gpus=1),
        node("login", gpus=0),
    ),
    tree=(
        SwitchGroup(name="unit1", tier=0, switches=("leaf r1", "leaf-r2"), hosts=("node001", "node002")),
        SwitchGroup(name="unit2", tier=0, switches=("leaf-r3",), hosts=("node099", "node100")),
        SwitchGroup(name="fabric", tier=1, switches=tuple(f"s{n}" for n in range(9)), groups=("unit1", "unit2")),
        SwitchGroup(name="unplanned", tier=0, switches=(), hosts=("gpu1", "login")),
    ),
    settings={"SlurmdTimeout": "600", "slurmctldport": "6820", "MaxArraySize": "2000"},
    plugins=("optional /usr/local/lib/slurm/spank_pyxis.so",),
)
PLAIN = ClusterFacts(
    name="lab", controllers=("c1",), accounting="db", partition="p", nodes=(node("n1", "fd00::1", gpus=0),)
)


@pytest.mark.parametrize(("case", "facts"), [("rails", RAILS), ("plain", PLAIN)])
def test_the_files_are_what_they_always_were(case: str, facts: ClusterFacts) -> None:
    """Two controllers, nodes in natural order, a site's values in place of ours; and a cluster without GPUs or a fabric."""
    assert slurm_files(facts) == {path.name: path.read_text() for path in (DATA / case).iterdir()}


@pytest.mark.parametrize(
    "settings", [{"ReturnToService": "2"}, {"nodename": "x"}, {"PartitionName": "x"}, {"Include": "/etc/x"}]
)
def test_a_setting_that_undoes_the_inventory_is_refused(settings: dict[str, str]) -> None:
    """ReturnToService=2, too: it returns broken nodes without a question."""
    facts = ClusterFacts(name="x", controllers=("c",), accounting="c", partition="p", nodes=(), settings=settings)
    with pytest.raises(UsageError) as caught:
        slurm_files(facts)
    assert caught.value.where == next(iter(settings))


def expanded(text: str) -> list[str]:
    """The names of one short form, by an independent reading."""
    if "[" not in text:
        return [text]
    prefix, _, rest = text.partition("[")
    names = []
    for part in rest.rstrip("]").split(","):
        first, _, last = part.partition("-")
        names += [f"{prefix}{number:0{len(first)}d}" for number in range(int(first), int(last or first) + 1)]
    return names


@given(st.sets(st.from_regex(r"\A(node|n|rack1-)[0-9]{1,4}\Z|\Alogin\Z")))
def test_short_forms_name_each_host_once(names: set[str]) -> None:
    """Nothing is lost and nothing is added, whatever the numbers' width."""
    assert sorted(name for text in host_lists(names) for name in expanded(text)) == sorted(names)


def test_short_forms_are_short() -> None:
    assert host_lists(f"node{number:03}" for number in (1, 2, 3, 99, 100, 7)) == ("node[001-003,007,099-100]",)
    assert host_lists(["n9", "n10", "n11", "x"]) == ("x", "n9", "n[10-11]")


def test_names_of_features_and_types_are_slurms() -> None:
    """Commas and spaces would begin another feature."""
    assert feature_name("rack_A 01,x=y") == "rack_A_01_x_y"
    assert [gpu_type(model) for model in ("H100", "H100 SXM", "H100 NVL", "Instinct MI300X")] == [
        *("h100", "h100", "h100"),
        "instinct_mi300x",
    ]
    assert gpu_type("") == "gpu"
