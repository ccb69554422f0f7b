"""What healthy machines look like: never exactly alike. Every measured value is drawn from a healthy spread, seeded.

A check that is too sharp, or that judges what it should not, finds something on these machines: that is what they are
for. Pure: the same seed and name give the same machine. The spreads and where they come from:

GPU temperature 24–38 °C, memory 8–14 °C above   recorded on an idle XE9680 (leptonai/gpud): 29 and 39; other idle
                                                 air-cooled H100 at 25 to 40
GPU memory in use 0–6 MiB                        recorded 0; other drivers report 1 to 4 of an idle H100
GPU temperature under load 56–76 °C              air-cooled H100 at 700 W, below the 87 at which they slow down (the
                                                 maximum operating temperature that nvidia-smi reports)
GPU speed ±2 %                                   chips differ in the clock that their power limit allows them
PCIe replays 0–120                               recorded 67 since the reset on a GPU without any complaint
correctable ECC errors, rows remapped for them   few GPUs, few rows: what ECC and spare rows are for
                                                 (NVIDIA GPU memory error management)
symbol errors 0–1 an hour                        a healthy NDR link behind FEC: an effective bit error rate below 1e-15
link downs 0–1                                   bring-up takes a link down once
HCA temperature 42–58 °C, air 18–27 °C           ConnectX-7 below its warning at 65; ASHRAE's recommended envelope
clock under load 2950–3100 MHz                   all-core turbo of the Xeon Platinum 8468 and 8480+ (Intel)
kernel lines                                     harmless ones that every fleet has: corrected PCIe errors, restricted
                                                 firmware commands, slow interrupts
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from clusterctl_lab.machine import Gpu, Hca, Machine, PortErrors

RARE = 0.1
"""Of the GPUs, those that have had a correctable memory error; of the ports, those that have had a symbol error."""
HARMLESS = (
    "mlx5_core {hca}: mlx5_cmd_out_err:808:(pid 1123): ACCESS_REG(0x805) op_mod(0x1) failed, status bad operation(0x2)",
    "pcieport {bridge}: AER: Corrected error received: {hca}",
    "pcieport {bridge}: AER: Multiple Corrected error received: {hca}",
    "perf: interrupt took too long (2511 > 2500), lowering kernel.perf_event_max_sample_rate to 79500",
    "systemd[1]: systemd-journald.service: Watchdog timeout (limit 3min) extended while logs are flushed",
    "EXT4-fs (sda2): mounted filesystem with ordered data mode. Quota mode: none.",
    "nvme nvme0: 96/0/0 default/read/poll queues",
    "IPv6: ADDRCONF(NETDEV_CHANGE): ib0: link becomes ready",
)


def healthy(machine: Machine, seed: int) -> Machine:
    """Return the machine with all measured values drawn again; its parts and its faults stay as they are."""
    random = Random(f"{seed}:{machine.name}")  # noqa: S311 — noise, not a secret
    at_work = Random(f"{seed}:{machine.name}:load")  # noqa: S311
    return replace(
        machine,
        seed=seed,
        gpus=tuple(_at_work(_gpu(gpu, random), at_work) for gpu in machine.gpus),
        hcas=tuple(_hca(hca, random) for hca in machine.hcas),
        inlet_c=random.randint(18, 27),
        busy_mhz=random.randint(2950, 3100),
        kernel_log=_kernel_log(machine, random),
    )


def _gpu(gpu: Gpu, random: Random) -> Gpu:
    temperature = random.randint(24, 38)
    return replace(
        gpu,
        memory_used_mib=random.choice((0, 0, 0, 1, 4, 6)),
        temperature_c=temperature,
        memory_temperature_c=temperature + random.randint(8, 14),
        correctable_ecc=random.randint(1, 40) if random.random() < RARE else 0,
        remapped_rows=random.randint(1, 2) if random.random() < RARE else 0,
        pcie_replays=random.randint(0, 120),
    )


def _at_work(gpu: Gpu, random: Random) -> Gpu:
    return replace(gpu, load_c=gpu.temperature_c + random.randint(32, 38), speed_percent=random.randint(98, 102))


def _hca(hca: Hca, random: Random) -> Hca:
    errors = PortErrors(
        symbol_per_hour=round(random.uniform(0.0, 1.0), 2) if random.random() < RARE else 0.0,
        link_downed=random.randint(0, 1),
    )
    return replace(hca, temperature_c=random.randint(42, 58), errors=errors)


def _kernel_log(machine: Machine, random: Random) -> tuple[str, ...]:
    lines = random.sample(HARMLESS, random.randint(2, len(HARMLESS)))
    hca = random.choice(machine.hcas).pci if machine.hcas else "0000:00:00.0"
    bridge = f"{hca[:5]}{int(hca[5:7], 16) - 1 & 0xFF:02x}:01.0"
    return tuple(line.format(hca=hca, bridge=bridge) for line in lines)
