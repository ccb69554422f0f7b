"""What `cpu_power` proves: the program that it runs on hosts, over a made-up sysfs, and its settings, by systemd-tmpfiles."""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from clusterctl.edges.resources import resource
from tests.edges.ansible.role_cases import CASES

PROGRAM = resource("roles") / "cpu_power/files/cpu_clocks.py"
BASE_KHZ, TURBO_KHZ, LOW_KHZ = 2_000_000, 3_800_000, 800_000


@pytest.fixture(scope="module")
def program() -> Mapping[str, Callable[..., Any]]:
    return runpy.run_path(str(PROGRAM))


def machine(root: Path, *, cpus: int = 4, base: bool = True, **files: str) -> Path:
    """A sysfs of healthy processors under load; `files` replaces: path below `cpu/`, slashes as two underscores."""
    for cpu in range(cpus):
        freq = root / f"cpu{cpu}/cpufreq"
        freq.mkdir(parents=True)
        (root / f"cpu{cpu}/power").mkdir()
        (root / f"cpu{cpu}/power/pm_qos_resume_latency_us").write_text("10\n")
        values = {"scaling_governor": "performance", "scaling_max_freq": TURBO_KHZ, "cpuinfo_max_freq": TURBO_KHZ}
        values |= {"scaling_cur_freq": 3_500_000} | ({"base_frequency": BASE_KHZ} if base else {})
        for name, value in values.items():
            (freq / name).write_text(f"{value}\n")
    for name, value in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{value}\n")
    return root


def run(sysfs: Path) -> tuple[int, str]:
    """As the role runs it: by stdin."""
    argv = [sys.executable, "-I", "-", "--governor=performance", "--latency-us=10", "--percent=90", "--seconds=0.2"]
    result = subprocess.run(
        [*argv, f"--sysfs={sysfs}"], input=PROGRAM.read_text(), capture_output=True, text=True, timeout=600, check=False
    )
    assert result.stderr == ""
    return result.returncode, result.stdout


def test_a_healthy_machine_has_no_finding(tmp_path: Path) -> None:
    """Every processor above its base clock, governed as asked, uncapped: exit code 0 and silence."""
    assert run(machine(tmp_path)) == (0, "")


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"cpu2__cpufreq__scaling_cur_freq": f"{LOW_KHZ}"}, ("1 of 4 busy processors", "base clock: 2,", "800 MHz")),
        ({"cpu1__cpufreq__scaling_governor": "powersave"}, ("governor is not performance on processors 1",)),
        ({"cpu3__cpufreq__scaling_max_freq": "1500000"}, ("caps the clock of processors 3",)),
        ({"cpu0__power__pm_qos_resume_latency_us": "0"}, ("resume latency limit is not 10 us on processors 0",)),
        ({"intel_pstate__no_turbo": "1"}, ("turbo is switched off",)),
        ({"cpufreq__boost": "0"}, ("turbo is switched off",)),
    ],
)
def test_a_problem_is_reported_with_the_processors(
    tmp_path: Path, files: dict[str, str], words: tuple[str, ...]
) -> None:
    """One ill, one complaint: exit code 1, and who it is."""
    code, message = run(machine(tmp_path, **files))

    assert code == 1
    assert len(message.splitlines()) == 1
    assert [word for word in words if word not in message] == []


def test_without_a_base_clock_processors_are_held_against_each_other(tmp_path: Path) -> None:
    """acpi-cpufreq reports no base clock: the core that stays slower than the others is found all the same."""
    code, message = run(machine(tmp_path, base=False, cpu3__cpufreq__scaling_cur_freq=f"{LOW_KHZ}"))

    assert (code, "other processors' clock: 3," in message) == (1, True)


def test_the_nominal_clock_of_cppc_counts_as_base(tmp_path: Path) -> None:
    """amd_pstate reports MHz; all four stay below it, which no comparison among them would show."""
    low = {f"cpu{cpu}__cpufreq__scaling_cur_freq": f"{LOW_KHZ}" for cpu in range(4)}
    nominal = {f"cpu{cpu}__acpi_cppc__nominal_freq": "2400" for cpu in range(4)}
    code, message = run(machine(tmp_path, base=False, **low, **nominal))

    assert (code, "4 of 4" in message, "0-3," in message) == (1, True, True)


def test_nothing_measured_is_not_healthy(tmp_path: Path) -> None:
    """A machine of which no clock can be read is a complaint."""
    assert run(tmp_path) == (1, "no processor's clock could be read\n")


def test_processors_that_are_offline_are_left_out(tmp_path: Path, program: Mapping[str, Callable[..., Any]]) -> None:
    """An offline processor has no clock to reach."""
    assert program["governed"](machine(tmp_path, cpu1__online="0", cpu2__online="1")) == [0, 2, 3]


def test_processors_are_listed_as_the_kernel_does(program: Mapping[str, Callable[..., Any]]) -> None:
    """Hundreds of them stay readable."""
    assert program["ranges"]([9, 0, 1, 2, 8, 20]) == "0-2,8-9,20"


@pytest.mark.skipif(os.geteuid() != 0, reason="systemd-tmpfiles --root needs root")
@pytest.mark.skipif(shutil.which("systemd-tmpfiles") is None, reason="systemd-tmpfiles is not installed")
def test_systemd_writes_the_settings_to_every_processor(tmp_path: Path) -> None:
    """The rendered file, given to the real systemd-tmpfiles: every governor and latency limit is what was asked for."""
    cpu = machine(tmp_path / "sys/devices/system/cpu", cpus=3)
    for number in range(3):
        (cpu / f"cpufreq/policy{number}").mkdir(parents=True)
        (cpu / f"cpufreq/policy{number}/scaling_governor").write_text("powersave\n")
        (cpu / f"cpu{number}/power/pm_qos_resume_latency_us").write_text("0\n")
    settings = CASES / "cpu_power/default/golden/settings.conf.j2"
    subprocess.run(["systemd-tmpfiles", f"--root={tmp_path}", "--create", str(settings)], check=True, timeout=600)

    assert {path.read_text() for path in cpu.glob("cpufreq/policy*/scaling_governor")} == {"performance"}
    assert {path.read_text() for path in cpu.glob("cpu*/power/pm_qos_resume_latency_us")} == {"10"}
