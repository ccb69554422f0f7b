"""The texts of each vendor's BMC event log.

dell        iDRAC's words for the events of IPMI 2.0, tables 42-2 and 42-3; those of MEM0001 and FAN0001 stand in its
            recorded registry
supermicro  recorded: a power supply, `[PWR-0001]`; the rest in IPMI's own words, as its other entries are; a memory
            module's place as published (`Uncorrectable ECC @ DIMMB1(CPU1)`)
hpe         recorded: the form of power supplies' entries, FanFailed in its registry iLOEvents; the rest as HPE's IML
            messages are published
openbmc     recorded: the form of AMI's entries, which decode IPMI's fields one by one
"""

from __future__ import annotations

import enum
from collections.abc import Mapping

from clusterctl_lab.machine import LogLine, Machine
from clusterctl_lab.vendor import Vendor


class BmcEvent(enum.Enum):
    """Events of a machine. In brackets: the arguments of `log_entry`."""

    POWER_ON = "power on"
    POWER_OFF = "power off"
    FIRMWARE_HANG = "firmware hangs"
    SUPPLY_FAILED = "power supply failed"  # (its number, from 1)
    DRIVE_FAILED = "drive failed"  # (its bay, from 0; where it sits)
    INLET_HOT = "inlet too hot"  # (°C)
    DIMM_FAILED = "memory module lost data"  # (what the log calls it)
    FAN_FAILED = "fan stands still"  # (what the log calls it)


_HARMLESS = frozenset({BmcEvent.POWER_ON, BmcEvent.POWER_OFF})
_AMI = "Record_Type : system event record, Event_Dir : Assertion event, "
_WORDS: Mapping[Vendor, Mapping[BmcEvent, str]] = {
    Vendor.DELL: {
        BmcEvent.POWER_ON: "System is turning on.",
        BmcEvent.POWER_OFF: "System is turning off.",
        BmcEvent.FIRMWARE_HANG: "System Firmware Hang: POST did not complete.",
        BmcEvent.SUPPLY_FAILED: "Power supply {0} failed.",
        BmcEvent.DRIVE_FAILED: "Fault detected on drive {0} in disk drive bay 1.",
        BmcEvent.INLET_HOT: "The system inlet temperature is greater than the upper critical threshold.",
        BmcEvent.DIMM_FAILED: "Multi-bit memory errors are detected on the memory device at location(s) {0}. "
        "Immediately replace the DIMM.",
        BmcEvent.FAN_FAILED: "Fan {0} RPM is less than the lower critical threshold.",
    },
    Vendor.SUPERMICRO: {
        BmcEvent.POWER_ON: "ACPI State, S0/G0 working",
        BmcEvent.POWER_OFF: "ACPI State, S4/S5 soft-off",
        BmcEvent.FIRMWARE_HANG: "System Firmware Hang",
        BmcEvent.SUPPLY_FAILED: "[PWR-0001] PS{0} Status, Power Supply Failure detected",
        BmcEvent.DRIVE_FAILED: "Drive Slot, {1} Drive Fault",
        BmcEvent.INLET_HOT: "Inlet Temp, Upper Critical - going high, Reading {0}",
        BmcEvent.DIMM_FAILED: "Memory, Uncorrectable ECC @ {0}",
        BmcEvent.FAN_FAILED: "{0}, Lower Critical - going low, Reading 0",
    },
    Vendor.HPE: {
        BmcEvent.POWER_ON: "Server power restored.",
        BmcEvent.POWER_OFF: "Server power removed.",
        BmcEvent.FIRMWARE_HANG: "System Firmware Hang: POST did not complete.",
        BmcEvent.SUPPLY_FAILED: "System Power Supply: General Failure (Power Supply {0})",
        BmcEvent.DRIVE_FAILED: "NVMe Drive has failed ({1})",
        BmcEvent.INLET_HOT: "System Overheating (Temperature Sensor 1, Location Ambient, Temperature {0})",
        BmcEvent.DIMM_FAILED: "Uncorrectable Memory Error ({0})",
        BmcEvent.FAN_FAILED: "Fan {0} has failed.",
    },
    Vendor.OPENBMC: {
        BmcEvent.POWER_ON: _AMI + "Event_Type : S0/G0 working, Sensor_Type : System ACPI Power State, ",
        BmcEvent.POWER_OFF: _AMI + "Event_Type : S4/S5 soft-off, Sensor_Type : System ACPI Power State, ",
        BmcEvent.FIRMWARE_HANG: _AMI + "Event_Type : System Firmware Hang, Sensor_Type : System Firmware Progress, ",
        BmcEvent.SUPPLY_FAILED: _AMI
        + "Sensor_Name : PS{0}, Event_Type : Power Supply Failure detected, Sensor_Type : Power Supply, ",
        BmcEvent.DRIVE_FAILED: _AMI + "Sensor_Name : {1}, Event_Type : Drive Fault, Sensor_Type : Drive Slot/Bay, ",
        BmcEvent.INLET_HOT: _AMI + "Sensor_Name : TEMP_AMBIENT, Event_Type : Upper Critical - going high, "
        "Sensor_Type : Temperature, ",
        BmcEvent.DIMM_FAILED: _AMI + "Sensor_Name : {0}, Event_Type : Uncorrectable ECC, Sensor_Type : Memory, ",
        BmcEvent.FAN_FAILED: _AMI + "Sensor_Name : {0}, Event_Type : Lower Critical - going low, Sensor_Type : Fan, ",
    },
}


def log_entry(machine: Machine, event: BmcEvent, *args: object) -> LogLine:
    """Return the entry that this machine's BMC writes."""
    severity = "OK" if event in _HARMLESS else "Critical"
    return LogLine(severity, _WORDS[machine.bmc.vendor][event].format(*args))
