"""Codes of findings: one per diagnosis. Verdicts, root causes and figures depend on codes, never on wording.

A code names what is wrong; the finding's subject names the part, its check the place where it was seen.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import Self


class Code(enum.Enum):
    """A diagnosis. The value identifies it in JSON; `description` is one line for the reference page."""

    _value_: str
    description: str

    def __new__(cls, value: str, description: str) -> Self:
        code = object.__new__(cls)
        code._value_ = value
        code.description = description
        return code

    # Every check
    PASSED = "passed", "The check found nothing wrong."
    NOT_APPLICABLE = "not_applicable", "The check does not apply to this node."

    # Nothing was measured
    NOT_MEASURED = "not_measured", "The reading proves nothing, so the check cannot judge."
    NOT_REPORTED = "not_reported", "A tool or BMC does not report a value that the check needs."
    NO_LIMIT = "no_limit", "The limits file of the node's SKU has no figure to judge the measurement by."
    DID_NOT_REPORT = "did_not_report", "A required check or a probe did not report."
    NO_SESSION = "no_session", "The node's answer to the whole session is missing or unreadable."
    PROBE_TIMED_OUT = "probe_timed_out", "A tool on the node did not end within its time-out."
    PROBE_NOT_STARTED = "probe_not_started", "A tool on the node could not be started."
    PROBE_FAILED = "probe_failed", "A tool on the node ended with an error."
    TOOL_MISSING = "tool_missing", "A tool that the check needs is not installed on the node."
    OUTPUT_UNREADABLE = "output_unreadable", "The output of a tool or BMC could not be parsed."
    PARTS_MISSING = "parts_missing", "Fewer parts than the SKU has were there to be measured."
    STEP_BROKE_OFF = "step_broke_off", "The step ended before it judged the node."
    STOPPED_BY_OPERATOR = "stopped_by_operator", "An operator, not a finding, stopped the node."
    STOPPED_BY_GATE = "stopped_by_gate", "The gate stopped the node without a finding."
    STEP_FAILED_BEFORE = "step_failed_before", "The step follows one that failed, and was not tried."
    ADMISSION = "admission", "The reports of the earlier steps do not admit the node."

    # The BMC and what it reports
    BMC_UNREACHABLE = "bmc_unreachable", "The BMC does not answer."
    BMC_LOGIN_REFUSED = "bmc_login_refused", "The BMC refuses the credentials."
    BMC_PASSWORD_EXPIRED = "bmc_password_expired", "The BMC demands a new password."
    BMC_UNTRUSTED = "bmc_untrusted", "The BMC's certificate is not the one that was learnt."
    BMC_PRIVILEGE = "bmc_privilege", "The BMC's account lacks a privilege."
    BMC_BUSY = "bmc_busy", "The BMC answers that it is busy."
    BMC_MISCONFIGURED = "bmc_misconfigured", "The site's settings for the BMC cannot be used."
    BMC_BROKEN = "bmc_broken", "The BMC answers with an error."
    BMC_HEALTH = "bmc_health", "The BMC's overall health is not OK."
    PART_UNHEALTHY = "part_unhealthy", "The BMC reports a part as failing."
    PSU_COUNT = "psu_count", "The number of power supplies is not the SKU's."
    POWER_SUPPLY_FAILED = "power_supply_failed", "A power supply fails or has no input."
    SENSOR_TOO_HOT = "sensor_too_hot", "A temperature sensor is above its threshold."
    LOG_ENTRY = "log_entry", "The BMC's event log has an entry that speaks against a part."
    LOG_ENTRY_OF_PREDECESSOR = "log_entry_of_predecessor", "The log entry is about a part that was replaced."
    LOG_ENTRIES_UNKNOWN = "log_entries_unknown", "The BMC's event log has entries that the table does not know."
    SETTINGS_DRIFT = "settings_drift", "BIOS settings or firmware differ from the baseline."
    SETTINGS_UNKNOWN = "settings_unknown", "BIOS settings or firmware could not be compared with the baseline."
    BOOT_PORT_UNKNOWN = "boot_port_unknown", "The Ethernet port that the node boots from is unknown."
    NOT_POWERED_ON = "not_powered_on", "The inventory may be incomplete: the machine was not powered on."

    # Which machine it is
    WRONG_SERIAL = "wrong_serial", "Another machine answers at the node's address."
    WRONG_HOST_NAME = "wrong_host_name", "The machine has another node's host name."
    SERIAL_TAKEN = "serial_taken", "The serial belongs to another node: two addresses lead to one machine."
    WRONG_MODEL = "wrong_model", "The machine is not of its SKU's model."
    NO_SKU = "no_sku", "No SKU of the site fits the machine."
    SKU_AMBIGUOUS = "sku_ambiguous", "Several SKUs of the site fit the machine."

    # Installation
    INSTALL_FAILED = "install_failed", "The installation did not end."
    NOT_INSTALLABLE = "not_installable", "The node lacks what an installation needs."
    FOREIGN_OS = "foreign_os", "The machine has an OS that clusterctl did not install."
    WRONG_BOOT_DISK = "wrong_boot_disk", "Another OS than the installed one boots."
    HOST_NOT_TRUSTED = "host_not_trusted", "The installed host does not prove its identity."
    NOT_THE_SAME_MACHINE = "not_the_same_machine", "The machine is not the one to reinstall, or has changed."
    ROOT_DISK_WRONG = "root_disk_wrong", "The root file system is on another disk than the contract names."
    ROOT_DISK_UNCLEAR = "root_disk_unclear", "No drive, or more than one, fits the root disk's rule."
    DATA_CHANGED = "data_changed", "A data drive does not hold what it held before the installation."
    DATA_UNPROVEN = "data_unproven", "It is not proven that the installation left the data drives alone."

    # Configuration
    HOST_UNKNOWN = "host_unknown", "The node's address or host key is unknown."
    TASK_FAILED = "task_failed", "A task of the configuration failed."
    NOT_REACHED = "not_reached", "The configuration did not reach the node."
    REBOOT_FAILED = "reboot_failed", "The node did not come back from a reboot."
    REBOOT_NEEDED = "reboot_needed", "The node needs a reboot, and the site does not allow one."
    REBOOT_REPEATED = "reboot_repeated", "A role asks for a reboot again after the node was rebooted for it."
    NOT_INTRODUCED = "not_introduced", "The nodes of a group could not be introduced to each other."

    # SSH
    SSH_REFUSED = "ssh_refused", "The host answers, but its SSH port refuses connections."
    SSH_NO_ANSWER = "ssh_no_answer", "Nothing answers at the host's address."
    SSH_NO_GREETING = "ssh_no_greeting", "The host takes the connection, but sshd does not greet."
    SSH_BROKEN = "ssh_broken", "The SSH connection broke."
    SSH_UNKNOWN = "ssh_unknown", "The host cannot be logged in to."

    # Cabling
    CABLING_MISSING_LINK = "cabling_missing_link", "A planned link is missing."
    CABLING_EXTRA_LINK = "cabling_extra_link", "A link exists that is not planned."
    CABLING_SWAPPED = "cabling_swapped", "Two cables are swapped."
    CABLING_WRONG_RAIL = "cabling_wrong_rail", "An adapter is cabled to another rail."
    CABLING_MOVED = "cabling_moved", "A cable is in another port than planned."
    CABLING_DOWN_WIDTH = "cabling_down_width", "A link has fewer lanes than it should have."
    CABLING_DOWN_SPEED = "cabling_down_speed", "A link is slower than it should be."
    CABLING_ABSENT_DEVICE = "cabling_absent_device", "A planned device is absent from the fabric."
    CABLING_ISLAND = "cabling_island", "A part of the fabric is cut off."
    CABLING_UNKNOWN_DEVICE = "cabling_unknown_device", "A device is in the fabric that is not planned."
    CABLING_MISNAMED = "cabling_misnamed", "A device has a wrong name."
    CABLING_EXCHANGED = "cabling_exchanged", "Devices have each other's names."
    CABLING_DUPLICATE_NAME = "cabling_duplicate_name", "Several devices have one name."
    CABLING_NAMES_DIFFER = "cabling_names_differ", "Names differ from the plan; the cables are right."
    CABLING_NAMES_UNPROVEN = "cabling_names_unproven", "Unknown whether the names or the cables are exchanged."
    CABLING_NO_RULE = "cabling_no_rule", "No rule says how a port is cabled."
    NOT_PLANNED = "not_planned", "The wiring plan has no cable of the node."
    LINKS_UNPROVEN = "links_unproven", "Not every planned link is proven right."
    RATE_UNPROVEN = "rate_unproven", "The rate of planned links was not measured."
    FABRIC_BROKEN = "fabric_broken", "So much of the fabric is broken that no node is judged."
    FABRIC_UNREADABLE = "fabric_unreadable", "The fabric could not be read."
    FABRIC_FAULT = "fabric_fault", "The fabric has a fault that is no node's."
    LLDP_UNREADABLE = "lldp_unreadable", "The host's LLDP neighbours could not be read."
    CABLE_UNMEASURED = "cable_unmeasured", "A planned Ethernet cable could not be measured."

    # Cooling
    FAN_STOPPED = "fan_stopped", "A fan does not turn."
    FAN_SLOW = "fan_slow", "A fan is much slower than the others of its node."

    # Processors and memory
    CPU_COUNT = "cpu_count", "The number of working processors is not the SKU's."
    CPU_CLOCK_LOW = "cpu_clock_low", "Busy processors stay below their clock."
    CPU_SHARE_LOW = "cpu_share_low", "Work of the highest priority gets only a part of a processor."
    CPU_MACHINE_CHECK = "cpu_machine_check", "A processor raised machine check exceptions."
    CPU_THROTTLED = "cpu_throttled", "Heat slowed a processor down."
    WRONG_RESULT = "wrong_result", "A part computed wrong results."
    MEMORY_MISSING = "memory_missing", "Less memory is installed than the SKU has."
    MEMORY_MAPPED_OUT = "memory_mapped_out", "The kernel uses less memory than is installed."
    MEMORY_UNCORRECTED = "memory_uncorrected", "A memory module had uncorrected errors."
    MEMORY_CORRECTED = "memory_corrected", "A memory module had corrected errors."
    MEMORY_CORRECTED_RATE = "memory_corrected_rate", "A memory module has more corrected errors than the limit."

    # Drives and file systems
    DRIVE_COUNT = "drive_count", "The number of data drives is not the SKU's."
    DRIVE_WORN = "drive_worn", "A drive is worn out or reports a critical warning."
    DRIVE_TOO_HOT = "drive_too_hot", "A drive reports that it is too hot."
    DRIVE_MEDIA_ERRORS = "drive_media_errors", "A drive could not read back what was written."
    DRIVE_READ_FAILED = "drive_read_failed", "A read from a drive failed."
    DRIVE_SLOW = "drive_slow", "A drive reads more slowly than the limit."
    DISK_FULL = "disk_full", "A file system is nearly full."
    NOT_MOUNTED = "not_mounted", "A file system is not mounted."
    MOUNTED_READ_ONLY = "mounted_read_only", "A file system is mounted read-only."
    NOT_WRITABLE = "not_writable", "A file system takes no file."
    WRITE_SLOW = "write_slow", "A write takes longer than the limit."
    POOL_ABSENT = "pool_absent", "The ZFS pool is absent."
    POOL_DEGRADED = "pool_degraded", "The ZFS pool is not online."
    POOL_DATA_LOST = "pool_data_lost", "The ZFS pool has lost data."
    POOL_DISK_LOST = "pool_disk_lost", "A disk of the ZFS pool is not online."
    POOL_DISK_ERRORS = "pool_disk_errors", "A disk of the ZFS pool has had errors."
    DOCKER_NOT_ON_POOL = "docker_not_on_pool", "Docker keeps its data outside the ZFS pool."

    # The host's OS and services
    CLOCK_OFFSET = "clock_offset", "The node's clock differs from the controller's."
    WRONG_RELEASE = "wrong_release", "The host runs another OS release than the site wants."
    WRONG_KERNEL = "wrong_kernel", "The host runs another kernel than the site wants."
    NEXT_KERNEL_DIFFERS = "next_kernel_differs", "The next boot takes another kernel."
    KERNEL_REMOVED = "kernel_removed", "The running kernel is no longer installed."
    UNLIKE_OTHERS = "unlike_others", "The host differs from most hosts that were burned in with it."
    SWAP_ON = "swap_on", "Swap is in use."
    UNIT_FAILED = "unit_failed", "A systemd unit has failed."
    SERVICE_DOWN = "service_down", "A service is not active."
    SERVICE_MUTE = "service_mute", "A service does not answer."
    PROCESS_HUNG = "process_hung", "A process hangs in the kernel."
    NO_NAME_SERVER = "no_name_server", "The host has no name server."
    NAME_SERVER_MUTE = "name_server_mute", "A name server does not answer."
    NAME_UNKNOWN = "name_unknown", "A name server has no address for a name."
    CONTAINER_ABSENT = "container_absent", "A container is absent."
    CONTAINER_UNHEALTHY = "container_unhealthy", "A container does not run or is unhealthy."
    CONTAINER_NOT_STARTED = "container_not_started", "A container with GPUs could not be started."
    CONTAINER_GPU_COUNT = "container_gpu_count", "A container does not see all GPUs."

    # The host's network
    PORT_ABSENT = "port_absent", "A network port is absent."
    INTERFACE_ABSENT = "interface_absent", "A bond, VLAN or IPoIB interface is absent."
    INTERFACE_NAME = "interface_name", "A port has another name than the site gives it."
    NO_LINK = "no_link", "A network port has no link."
    NOT_BONDED = "not_bonded", "A port is not in its bond, or the bond is none."
    BOND_MODE = "bond_mode", "A bond is in another mode."
    NO_LACP_PARTNER = "no_lacp_partner", "No switch speaks LACP with a bond."
    BOND_INCOMPLETE = "bond_incomplete", "Not every member is in the bond's aggregate."
    VLAN_WRONG = "vlan_wrong", "A VLAN has another number or another parent."
    IPOIB_MODE = "ipoib_mode", "An IPoIB interface is in another mode."
    ADDRESS_MISSING = "address_missing", "An interface lacks an address."
    ADDRESS_EXTRA = "address_extra", "An interface has an address that the site does not give it."
    MTU_WRONG = "mtu_wrong", "An interface has another MTU."
    ROUTE_MISSING = "route_missing", "A default route is missing."
    ROUTE_EXTRA = "route_extra", "A default route exists that the site does not name."
    NAME_SERVERS_WRONG = "name_servers_wrong", "The host asks other name servers."
    SEARCH_DOMAIN_MISSING = "search_domain_missing", "A search domain is missing."

    # GPUs
    GPU_COUNT = "gpu_count", "The number of GPUs is not the SKU's."
    GPU_OFF_THE_BUS = "gpu_off_the_bus", "A GPU cannot be reached on the PCI bus."
    GPU_WRONG_MODEL = "gpu_wrong_model", "A GPU is of another model than the SKU's."
    GPU_BUSY = "gpu_busy", "A GPU is in use while it should be idle."
    GPU_TOO_HOT = "gpu_too_hot", "A GPU or its memory is too hot."
    GPU_HOTTER_THAN_OTHERS = "gpu_hotter_than_others", "A GPU is hotter than the others of the node."
    GPU_ECC_OFF = "gpu_ecc_off", "ECC of a GPU is off, or will be after the next reset."
    GPU_ECC_UNCORRECTABLE = "gpu_ecc_uncorrectable", "A GPU has uncorrectable memory errors."
    GPU_ECC_EARLIER = "gpu_ecc_earlier", "A GPU had uncorrectable errors earlier in its life."
    GPU_ECC_CORRECTED = "gpu_ecc_corrected", "A GPU has corrected more memory errors than the limit."
    GPU_SRAM_THRESHOLD = "gpu_sram_threshold", "A GPU's SRAM has more uncorrectable errors than NVIDIA allows."
    GPU_REMAP_FAILED = "gpu_remap_failed", "A faulty row of a GPU's memory could not be replaced."
    GPU_REMAP_PENDING = "gpu_remap_pending", "A faulty row of a GPU's memory waits for a reset."
    GPU_SPARE_ROWS_LOW = "gpu_spare_rows_low", "Banks of a GPU's memory have few spare rows, or none."
    GPU_REMAPPED_ROWS = "gpu_remapped_rows", "Too many rows of a GPU's memory were replaced."
    GPU_PERSISTENCE_OFF = "gpu_persistence_off", "A GPU's persistence mode is off."
    GPU_FIRMWARE_DIFFERS = "gpu_firmware_differs", "A GPU's firmware differs from the others or from the driver."
    GPU_RESET_NEEDED = "gpu_reset_needed", "The driver reports that a GPU needs a reset or a reboot."
    GPU_REPAIR_PENDING = "gpu_repair_pending", "A repair inside a GPU waits for its next reset."
    GPU_MEMORY_UNREPAIRABLE = "gpu_memory_unrepairable", "The driver reports memory of a GPU that cannot be repaired."
    GPU_MEMORY_SMALL = "gpu_memory_small", "A GPU has less memory than the limit, its model or the node's other GPUs."
    GPU_NOT_REPORTED = "gpu_not_reported", "The driver is too old to report whether a GPU needs a reset."
    GPU_MIG_ON = "gpu_mig_on", "A GPU is divided (MIG), or will be after its next reset."
    GPU_COMPUTE_MODE = "gpu_compute_mode", "A GPU's compute mode keeps programs away from it."
    GPU_POWER_LIMITED = "gpu_power_limited", "A GPU's power limit is below the limit for its default."
    GPU_POWER_BRAKE = "gpu_power_brake", "The machine orders a GPU to slow down (power brake)."
    GPU_PCIE_REPLAYS = "gpu_pcie_replays", "A GPU's PCIe link repeated more packets than the limit."
    GPU_HUNG = "gpu_hung", "A GPU hung under load."
    GPU_LOAD_FAILED = "gpu_load_failed", "A GPU failed under load."
    GPU_THROTTLED = "gpu_throttled", "A GPU's clock was lowered under load."
    GPU_SLOW = "gpu_slow", "A GPU is slower than the limit or than the others of the node."
    GPU_FP8_UNMEASURED = "gpu_fp8_unmeasured", "A GPU's FP8 speed was not measured."
    DIAGNOSIS_FAILED = "diagnosis_failed", "A test of dcgmi diag failed."
    DIAGNOSIS_WARNED = "diagnosis_warned", "A test of dcgmi diag warned."
    DIAGNOSIS_SKIPPED = "diagnosis_skipped", "dcgmi diag skipped a test."
    DRIVER_NOT_LOADED = "driver_not_loaded", "The NVIDIA driver's kernel module is not loaded."
    DRIVER_VERSION = "driver_version", "The NVIDIA driver is not the configured version."
    FABRIC_MANAGER_VERSION = "fabric_manager_version", "The fabric manager and the driver differ in version."
    NVSWITCH_NOT_JOINED = "nvswitch_not_joined", "A GPU has not joined the NVSwitches."
    NVSWITCH_UNHEALTHY = "nvswitch_unhealthy", "A GPU reports that its NVLink fabric is degraded or wrongly configured."
    NVLINK_DOWN = "nvlink_down", "NVLinks of a GPU are down."
    NVLINK_SLOW = "nvlink_slow", "NVLinks of a GPU are slow."
    NVLINK_ERRORS = "nvlink_errors", "NVLinks of a GPU count more errors than the limit."
    NVLINK_ERRORS_EARLIER = "nvlink_errors_earlier", "NVLinks of a GPU counted errors before they were watched."
    NVLINK_NOT_JOINED = "nvlink_not_joined", "A GPU is not joined to others by all NVLinks."
    GPU_FAR_FROM_ADAPTER = "gpu_far_from_adapter", "No adapter is below the GPU's own PCIe switch."

    # Adapters, transceivers and PCIe
    HCA_COUNT = "hca_count", "The number of InfiniBand adapters is not the SKU's."
    HCA_PORT_DOWN = "hca_port_down", "An adapter's port is not active."
    HCA_RATE = "hca_rate", "An adapter's port runs at another rate than the SKU's."
    HCA_LINK_DOWNS = "hca_link_downs", "The link of an adapter's port goes down and up."
    HCA_ERRORS = "hca_errors", "An adapter's port gathers errors."
    HCA_FIRMWARE_OLD = "hca_firmware_old", "An adapter's firmware is older than the limit."
    HCA_FIRMWARE_DIFFERS = "hca_firmware_differs", "Adapters of one kind have different firmware."
    FIRMWARE_NOT_LISTED = "firmware_not_listed", "A part's firmware is none that the limits list."
    PART_NOT_LISTED = "part_not_listed", "The limits' list of firmware does not know a part."
    TRANSCEIVER_TEMPERATURE = "transceiver_temperature", "A transceiver is outside its temperature range."
    TRANSCEIVER_LIGHT_RECEIVED = "transceiver_light_received", "A transceiver receives too little or too much light."
    TRANSCEIVER_LIGHT_SENT = "transceiver_light_sent", "A transceiver sends too little or too much light."
    PCIE_LINK_POOR = "pcie_link_poor", "A PCIe link is narrower or slower than the limit."
    PCIE_BANDWIDTH_LIMITED = "pcie_bandwidth_limited", "The driver reports that a link limits an adapter's bandwidth."
    GPU_MEMORY_NOT_SHARED = "gpu_memory_not_shared", "Adapters cannot reach GPU memory."
    ACS_REDIRECTS = "acs_redirects", "PCIe switches redirect traffic between GPUs and adapters."
    IOMMU_TRANSLATES = "iommu_translates", "The IOMMU translates what GPUs and adapters read and write."

    # The kernel log
    XID = "xid", "The NVIDIA driver logged an Xid error."
    XID_OFF_THE_BUS = "xid_off_the_bus", "The NVIDIA driver logged that a GPU left the bus (Xid 79)."
    XID_MEMORY = "xid_memory", "The NVIDIA driver logged an error of a GPU's memory (Xid 48, 63, 64, 94, 95)."
    SXID = "sxid", "The NVIDIA driver logged an NVSwitch error."
    KERNEL_MESSAGE = "kernel_message", "The kernel logged a message that speaks against the node."
    KERNEL_MESSAGES_UNKNOWN = "kernel_messages_unknown", "The kernel logged messages that no table knows."
    KERNEL_LOG_CUT = "kernel_log_cut", "The kernel's buffer lost its earliest messages."

    # Loads over several nodes, and the fleet
    LOAD_SLOW = "load_slow", "A load is slower than the limit."
    LOAD_FAILED = "load_failed", "A load failed."
    LOAD_HUNG = "load_hung", "A load hung."
    LOAD_RECOVERED = "load_recovered", "A load went wrong once and then passed."
    LOAD_UNSETTLED = "load_unsettled", "A load went wrong, and it is unknown which node causes it."
    LOAD_PATH = "load_path", "A load goes wrong between two nodes only."
    LOAD_COMMON = "load_common", "A load goes wrong with every node."
    NO_PARTNER = "no_partner", "There was no partner to measure the node with."
    UNLIKE_FLEET = "unlike_fleet", "A figure is far from that of the fleet."
    ANOTHER_POPULATION = "another_population", "So many nodes differ in a figure that they seem to be another kind."


def descriptions() -> Iterator[tuple[str, str]]:
    """Yield each code and its description, in the order of the reference page."""
    return ((code.value, code.description) for code in Code)
