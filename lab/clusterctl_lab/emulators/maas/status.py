"""MAAS's node states, their names, and what each permits, as recorded from MAAS 3.4.10."""

from __future__ import annotations

import enum
from typing import Self


class Status(enum.IntEnum):
    """`status` of a machine; `label` is its `status_name`."""

    label: str

    def __new__(cls, value: int, label: str) -> Self:
        member = int.__new__(cls, value)
        member._value_ = value
        member.label = label
        return member

    NEW = 0, "New"
    COMMISSIONING = 1, "Commissioning"
    FAILED_COMMISSIONING = 2, "Failed commissioning"
    MISSING = 3, "Missing"
    READY = 4, "Ready"
    RESERVED = 5, "Reserved"
    DEPLOYED = 6, "Deployed"
    RETIRED = 7, "Retired"
    BROKEN = 8, "Broken"
    DEPLOYING = 9, "Deploying"
    ALLOCATED = 10, "Allocated"
    FAILED_DEPLOYMENT = 11, "Failed deployment"
    RELEASING = 12, "Releasing"
    FAILED_RELEASING = 13, "Releasing failed"
    DISK_ERASING = 14, "Disk erasing"
    FAILED_DISK_ERASING = 15, "Failed disk erasing"
    RESCUE_MODE = 16, "Rescue mode"
    ENTERING_RESCUE_MODE = 17, "Entering rescue mode"
    FAILED_ENTERING_RESCUE_MODE = 18, "Failed to enter rescue mode"
    EXITING_RESCUE_MODE = 19, "Exiting rescue mode"
    FAILED_EXITING_RESCUE_MODE = 20, "Failed to exit rescue mode"
    TESTING = 21, "Testing"
    FAILED_TESTING = 22, "Failed testing"


COMMISSIONABLE = frozenset(
    {Status.NEW, Status.READY, Status.FAILED_COMMISSIONING, Status.FAILED_TESTING, Status.BROKEN}
)
DEPLOYABLE = frozenset({Status.READY, Status.ALLOCATED})
RELEASABLE = frozenset(
    {
        Status.ALLOCATED,
        Status.RESERVED,
        Status.BROKEN,
        Status.DEPLOYING,
        Status.DEPLOYED,
        Status.FAILED_DEPLOYMENT,
        Status.FAILED_DISK_ERASING,
        Status.FAILED_RELEASING,
    }
)
RELEASED = frozenset({Status.READY, Status.RELEASING})
"""In these states release answers 200 and changes nothing."""
LOCKABLE = frozenset({Status.DEPLOYING, Status.DEPLOYED})
TESTABLE = COMMISSIONABLE | {Status.DEPLOYED, Status.ALLOCATED, Status.FAILED_DEPLOYMENT}
RESCUABLE = frozenset(
    {Status.READY, Status.BROKEN, Status.DEPLOYED, Status.FAILED_TESTING, Status.FAILED_ENTERING_RESCUE_MODE}
)
RESCUED = frozenset({Status.RESCUE_MODE, Status.ENTERING_RESCUE_MODE, Status.FAILED_EXITING_RESCUE_MODE})
BREAKABLE = frozenset(
    {
        Status.NEW,
        Status.COMMISSIONING,
        Status.READY,
        Status.RESERVED,
        Status.ALLOCATED,
        Status.DEPLOYING,
        Status.DEPLOYED,
        Status.FAILED_COMMISSIONING,
        Status.FAILED_DEPLOYMENT,
        Status.FAILED_RELEASING,
        Status.FAILED_TESTING,
    }
)

FAILURES = {
    Status.COMMISSIONING: Status.FAILED_COMMISSIONING,
    Status.TESTING: Status.FAILED_TESTING,
    Status.DEPLOYING: Status.FAILED_DEPLOYMENT,
    Status.RELEASING: Status.FAILED_RELEASING,
    Status.DISK_ERASING: Status.FAILED_DISK_ERASING,
    Status.ENTERING_RESCUE_MODE: Status.FAILED_ENTERING_RESCUE_MODE,
    Status.EXITING_RESCUE_MODE: Status.FAILED_EXITING_RESCUE_MODE,
}
"""What a transient state becomes when it fails."""
