"""Keeps every processor busy for a while and reports those that do not reach their clock; read by the role from stdin.

Source of the files: Documentation/admin-guide/pm/{cpufreq,cpuidle,intel_pstate}.rst and Documentation/admin-guide/acpi/
cppc_sysfs.rst of the Linux kernel. Exit code 0 and nothing printed: all is well. 1: one complaint a line.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from statistics import median

SAMPLES = 5
SYSFS = Path("/sys/devices/system/cpu")


def main(arguments: list[str]) -> int:
    """Measure, judge, print the complaints."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--governor", required=True)
    parser.add_argument("--latency-us", type=int, required=True)
    parser.add_argument("--percent", type=float, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--sysfs", type=Path, default=SYSFS)
    asked = parser.parse_args(arguments)
    cpus = governed(asked.sysfs)
    complaints = [*of_settings(asked.sysfs, cpus, asked.governor, asked.latency_us)]
    clocks = busy_clocks(asked.sysfs, cpus, asked.seconds)
    complaints += of_clocks(clocks, {cpu: base_khz(asked.sysfs, cpu) for cpu in cpus}, asked.percent)
    for complaint in complaints:
        print(complaint)
    return 1 if complaints else 0


def governed(sysfs: Path) -> list[int]:
    """The processors that are online and whose frequency the kernel governs."""
    numbers = (int(path.parent.name[3:]) for path in sysfs.glob("cpu[0-9]*/cpufreq"))
    return sorted(cpu for cpu in numbers if read(sysfs / f"cpu{cpu}/online") in (None, "1"))


def of_settings(sysfs: Path, cpus: list[int], governor: str, latency_us: int) -> list[str]:
    """What is set otherwise than it should be, and what caps a clock."""
    freq = {cpu: sysfs / f"cpu{cpu}/cpufreq" for cpu in cpus}
    wrong = [cpu for cpu in cpus if read(freq[cpu] / "scaling_governor") != governor]
    capped = [cpu for cpu in cpus if _khz(freq[cpu], "scaling_max_freq") < _khz(freq[cpu], "cpuinfo_max_freq")]
    sleepy = [cpu for cpu in cpus if read(sysfs / f"cpu{cpu}/power/pm_qos_resume_latency_us") != str(latency_us)]
    boost_off = read(sysfs / "intel_pstate/no_turbo") == "1" or read(sysfs / "cpufreq/boost") == "0"
    found = (
        (wrong, f"the governor is not {governor} on processors {ranges(wrong)}"),
        (
            capped,
            f"something caps the clock of processors {ranges(capped)}: scaling_max_freq is below cpuinfo_max_freq",
        ),
        (sleepy, f"the resume latency limit is not {latency_us} us on processors {ranges(sleepy)}"),
        (boost_off, "turbo is switched off (intel_pstate/no_turbo or cpufreq/boost): switch it on in the BIOS"),
    )
    return [text for there, text in found if there]


def of_clocks(clocks: dict[int, int], base: dict[int, int | None], percent: float) -> list[str]:
    """Return the slow ones: against their own base clock, or against the others where that is unknown."""
    if not clocks:
        return ["no processor's clock could be read"]
    usual = int(median(clocks.values()))
    floor = {cpu: (base[cpu] or usual) * percent / 100 for cpu in clocks}
    low = [cpu for cpu, khz in clocks.items() if khz < floor[cpu]]
    if not low:
        return []
    lowest = min(clocks[cpu] for cpu in low)
    against = "base clock" if all(base[cpu] for cpu in low) else "the other processors' clock"
    text = (
        f"{len(low)} of {len(clocks)} busy processors stay below {percent:.0f} % of their {against}: "
        f"{ranges(low)}, down to {lowest // 1000} MHz; look for a power cap, a missing power supply or heat in the BMC"
    )
    return [text]


def busy_clocks(sysfs: Path, cpus: list[int], seconds: float) -> dict[int, int]:
    """Each processor's highest clock in kHz in the second half of a load on all of them."""
    workers = [_busy(cpu) for cpu in cpus]
    highest = dict.fromkeys(cpus, 0)
    try:
        time.sleep(seconds / 2)
        for _ in range(SAMPLES):
            for cpu in cpus:
                highest[cpu] = max(highest[cpu], _khz(sysfs / f"cpu{cpu}/cpufreq", "scaling_cur_freq"))
            time.sleep(seconds / 2 / SAMPLES)
    finally:
        for pid in workers:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    return highest


def _busy(cpu: int) -> int:
    """A process that does nothing but work, on this processor; one that it may not run on shows as low."""
    pid = os.fork()
    if pid:
        return pid
    with suppress(OSError):
        os.sched_setaffinity(0, {cpu})
    while True:
        pass


def base_khz(sysfs: Path, cpu: int) -> int | None:
    """What the processor promises with all cores busy: intel_pstate's base_frequency, or CPPC's nominal_freq (MHz)."""
    reported = read(sysfs / f"cpu{cpu}/cpufreq/base_frequency")
    if reported:
        return int(reported)
    nominal = read(sysfs / f"cpu{cpu}/acpi_cppc/nominal_freq")
    return int(nominal) * 1000 if nominal and int(nominal) else None


def _khz(folder: Path, name: str) -> int:
    return int(read(folder / name) or 0)


def read(path: Path) -> str | None:
    """Return a file of sysfs; None where the kernel has none, or cannot read it."""
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:
        return None


def ranges(numbers: list[int]) -> str:
    """As the kernel writes lists of processors: `0-3,8`."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ",".join(str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
