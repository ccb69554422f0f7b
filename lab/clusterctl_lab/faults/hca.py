"""Faults of HCAs, their ports and transceivers, and of the PCIe switches above them."""

from __future__ import annotations

from dataclasses import replace

from clusterctl.fleet.errors import UsageError
from clusterctl_lab.faults.fault import Fault, hca_fault, hca_named, with_hca
from clusterctl_lab.machine import Machine, PortErrors, Shaping

SLOW_MBIT_S = 20
SHARE, MIN_SHARE, MAX_SHARE = 0.5, 0.1, 0.9
CYCLE_S, MIN_CYCLE_S, MAX_CYCLE_S = 10.0, 1.0, 86_400.0
RATE_GBPS = 200
FLAPS = 9
DIRTY = PortErrors(symbol_per_hour=36_000.0, receive_per_hour=108_000.0)
"""Ten symbol errors and thirty broken packets a second, as from a dirty connector."""


def _missing_hca(machine: Machine, part: str) -> Machine:
    removed = hca_named(machine, part)
    hcas = tuple(hca for hca in machine.hcas if hca is not removed)
    return replace(machine, hcas=hcas).with_fault(f"missing-hca:{removed.name}")


def _intermittent_slow_nic(machine: Machine, part: str) -> Machine:
    name, _, options = part.partition("=")
    share, _, cycle = options.partition("/")
    hca = hca_named(machine, name)
    slow = Shaping(SLOW_MBIT_S, _share(machine, share), _cycle(machine, cycle))
    label = f"intermittent-slow-nic:{hca.name}={slow.share:g}/{slow.cycle_s:g}"
    return with_hca(machine, replace(hca, shaping=slow)).with_fault(label)


def _no_flow_control(machine: Machine, part: str) -> Machine:
    hca = hca_named(machine, part)
    if not hca.ethernet:
        remedy = "start a lab whose adapters are in Ethernet mode: clusterctl lab up --fabric roce"
        raise UsageError(f"{hca.name} is in InfiniBand mode", where=machine.name, remedy=remedy)
    return with_hca(machine, replace(hca, lossless=False)).with_fault(f"no-flow-control:{hca.name}")


def _share(machine: Machine, text: str) -> float:
    share = _number(text) if text else SHARE
    if not MIN_SHARE <= share <= MAX_SHARE:
        remedy = f"write a share of the time from {MIN_SHARE} to {MAX_SHARE}, like {machine.name}:mlx5_0=0.5"
        raise UsageError(f"{text!r} is no share of the time", where=machine.name, remedy=remedy)
    return share


def _cycle(machine: Machine, text: str) -> float:
    seconds = _number(text) if text else CYCLE_S
    if not MIN_CYCLE_S <= seconds <= MAX_CYCLE_S:
        remedy = (
            f"write the mean length of a slow and a fast period together, from {MIN_CYCLE_S:g} to {MAX_CYCLE_S:g} "
            f"seconds, like {machine.name}:mlx5_0=0.5/60"
        )
        raise UsageError(f"{text!r} is no cycle in seconds", where=machine.name, remedy=remedy)
    return seconds


def _number(text: str) -> float:
    """Return 0, which is never allowed here, for a text that is no number."""
    try:
        return float(text)
    except ValueError:
        return 0.0


FAULTS = (
    Fault(
        name="missing-hca",
        does="removes one HCA from the machine (default: the first HCA)",
        shows="the BMC's network adapters, the PCI bus, ibstat: one fewer than the SKU has; the fabric: a port less",
        target="NODE or NODE:mlx5_3",
        apply=_missing_hca,
    ),
    Fault(
        name="intermittent-slow-nic",
        does=f"shapes one HCA's traffic to {SLOW_MBIT_S} Mbit/s for a share of the time, at random, beginning with a "
        f"slow period (default: the first HCA, half of the time, a slow and a fast period about {CYCLE_S:g} s)",
        shows="ib_write_bw over that HCA is slow with some partners and at some times",
        target="NODE or NODE:mlx5_3=0.3 or NODE:mlx5_3=0.3/60",
        apply=_intermittent_slow_nic,
    ),
    Fault(
        name="no-flow-control",
        does="priority flow control is off on one HCA in Ethernet mode (default: the first HCA; --fabric roce)",
        shows="dcb pfc show of its interface: no priority, where the other HCAs have one",
        target="NODE or NODE:mlx5_3",
        apply=_no_flow_control,
    ),
    hca_fault(
        "acs-on",
        does="PCIe Access Control Services are on in the switch above an HCA and a GPU",
        shows="lspci -vvv and setpci for the switch's lower ports",
        change=lambda hca: replace(hca, switch_redirects=True),
    ),
    hca_fault(
        "adapter-in-other-slot",
        does="an HCA is in a slot that belongs to no GPU",
        shows="nvidia-smi topo -m: SYS or NODE instead of PIX",
        change=lambda hca: replace(hca, pci="0000:ee:00.0"),
    ),
    hca_fault(
        "down-speed-link",
        does=f"the link of an HCA trains to {RATE_GBPS} Gb/s only",
        shows="ibnetdiscover: 4xHDR instead of 4xNDR; ibstat: Rate 200",
        change=lambda hca: replace(hca, rate_gbps=RATE_GBPS),
    ),
    hca_fault(
        "flapping-port",
        does="the link of an HCA has gone down and up again and again",
        shows="perfquery (LinkDownedCounter), the kernel log (Link DOWN, Link ACTIVE)",
        change=lambda hca: replace(hca, errors=replace(hca.errors, link_downed=hca.errors.link_downed + FLAPS)),
    ),
    hca_fault(
        "flap-under-load",
        does="the link of an HCA goes down and up once as soon as the fabric has been loaded",
        shows="perfquery before and after the load: LinkDownedCounter; the kernel log",
        change=lambda hca: replace(hca, errors=replace(hca.errors, load_downs=1)),
    ),
    hca_fault(
        "hot-adapter-under-load",
        does="the chip of an HCA reaches 108 °C once the fabric has been loaded",
        shows="the sensors of the mlx5 driver while a load runs: temp1_input",
        change=lambda hca: replace(hca, load_hot=True),
    ),
    hca_fault(
        "old-nic-firmware",
        does="an HCA runs firmware of 2022",
        shows="ibstat, the kernel log, the BMC's firmware inventory",
        change=lambda hca: replace(hca, firmware="28.35.2000"),
    ),
    hca_fault(
        "other-module-firmware",
        does="the transceiver of an HCA has older firmware than the others, and than the limits list",
        shows="mlxlink -m: FW Version",
        change=lambda hca: replace(hca, module_firmware="47.160.0512"),
    ),
    hca_fault(
        "other-psid",
        does="an HCA is another board than was ordered",
        shows="/sys/class/infiniband/*/board_id; mstflint query",
        change=lambda hca: replace(hca, psid="MT_0000000834"),
    ),
    hca_fault(
        "pcie-switch-width",
        does="the PCIe switch above an HCA and a GPU has 8 of its 16 lanes to the processor",
        shows="lspci for the switch's upper port and the root port; the kernel log for the HCA",
        change=lambda hca: replace(hca, switch_width=8),
    ),
    hca_fault(
        "port-errors",
        does="the error counters of an HCA's port grow all the time",
        shows="perfquery, read twice",
        change=lambda hca: replace(hca, errors=DIRTY),
    ),
    hca_fault(
        "port-not-active",
        does="the host's port stays in the state Initializing",
        shows="ibstat: State: Initializing, Physical state: LinkUp",
        change=lambda hca: replace(hca, configured=False),
    ),
    hca_fault(
        "slow-adapter-under-load",
        does="an HCA writes at less than a hundredth of its rate while the processors of its host work",
        shows="ib_write_bw of each HCA to itself under all loads at once: this one is far slower; alone it is normal",
        change=lambda hca: replace(hca, load_slow=True),
    ),
    hca_fault(
        "slow-gpu-path",
        does="an HCA reads and writes GPU memory slowly",
        shows="all_reduce_perf over that rail alone: low bus bandwidth; ib_write_bw of host memory is normal",
        change=lambda hca: replace(hca, gpu_path_slow=True),
    ),
    hca_fault(
        "slow-nic",
        does=f"shapes an HCA's traffic to {SLOW_MBIT_S} Mbit/s in both directions",
        shows="ib_write_bw over that HCA is slow with every partner; its link is up at its full rate",
        change=lambda hca: replace(hca, shaping=Shaping(SLOW_MBIT_S)),
    ),
    hca_fault(
        "weak-light",
        does="an HCA's transceiver receives too little light",
        shows="mlxlink -m: Rx power below the module's own range",
        change=lambda hca: replace(hca, rx_dbm=-11.0),
    ),
)
