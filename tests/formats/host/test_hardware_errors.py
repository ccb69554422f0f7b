"""Records of the firmware and machine checks in the kernel log."""

from __future__ import annotations

import pytest

from clusterctl.formats.host.hardware_errors import error_records, machine_checks
from clusterctl.formats.host.kernel_log import Message


def messages(*texts: str) -> tuple[Message, ...]:
    return tuple(Message(str(at), text) for at, text in enumerate(texts))


def test_records_that_two_processors_print_at_once() -> None:
    """The number in braces distinguishes them."""
    first, second = error_records(
        messages(
            "{1}[Hardware Error]: Hardware error from APEI Generic Hardware Error Source: 4",
            "{2}[Hardware Error]: Hardware error from APEI Generic Hardware Error Source: 5",
            "{2}[Hardware Error]: event severity: corrected",
            "{1}[Hardware Error]: event severity: fatal",
            "{1}[Hardware Error]:   section_type: PCIe error",
            "{2}[Hardware Error]:   section_type: memory error",
            "{2}[Hardware Error]:   DIMM location: CPU 2 DIMM 30",
            "{1}[Hardware Error]:   device_id: 0000:3b:00.0",
        )
    )
    assert (first.severity, first.section, first.part) == ("fatal", "PCIe error", "pci 0000:3b:00.0")
    assert (second.severity, second.section, second.part) == ("corrected", "memory error", "memory CPU 2 DIMM 30")
    assert not first.previous_boot


def test_records_of_the_previous_boot() -> None:
    """They have no number; the next severity begins the next record. AMD's own decoding is no record."""
    records = error_records(
        messages(
            "[Hardware Error]: Corrected error, no action required.",
            "BERT: Error records from previous boot:",
            "[Hardware Error]: event severity: fatal",
            "[Hardware Error]:  Error 0, type: fatal",
            "[Hardware Error]:   section_type: memory error",
            "[Hardware Error]: event severity: corrected",
            "[Hardware Error]:   section_type: PCIe error",
        )
    )
    assert [(r.severity, r.section, r.previous_boot) for r in records] == [
        ("fatal", "memory error", True),
        ("corrected", "PCIe error", True),
    ]


def test_a_part_without_a_name() -> None:
    """Where the firmware does not know the module."""
    (record,) = error_records(
        messages(
            "{1}[Hardware Error]: event severity: recoverable",
            "{1}[Hardware Error]:   section_type: memory error",
            "{1}[Hardware Error]:   DIMM location: not present. DMI handle: 0x0000",
        )
    )
    assert (record.part, record.uncorrected) == ("", True)


@pytest.mark.parametrize(
    ("status", "uncorrected", "enabled", "of_memory"),
    [
        ("be00000000200179", True, True, False),
        ("8c00004000010091", False, False, True),
        ("bd80000000100134", True, True, False),
        ("fc00008000010091", True, True, True),
        ("a600000000020408", True, False, False),
    ],
)
def test_the_status_of_a_bank(status: str, uncorrected: bool, enabled: bool, of_memory: bool) -> None:
    """Bits 61 (uncorrected) and 60 (enabled), and the code of a memory controller."""
    (check,) = machine_checks(messages(f"mce: [Hardware Error]: CPU 3: Machine Check: 0 Bank 9: {status}"))
    assert (check.cpu, check.bank, check.uncorrected, check.enabled, check.of_memory) == (
        3,
        9,
        uncorrected,
        enabled,
        of_memory,
    )


def test_an_exception_is_uncorrected() -> None:
    """Whatever its status; EDAC prints the status with 0x."""
    (check,) = machine_checks(messages("EDAC skx MC2: CPU 0: Machine Check Exception: 0x5 Bank 7: 0x0d80000000100091"))
    assert check.uncorrected
    assert check.enabled
