"""The rules for messages of the kernel other than Xids. docs/reference/kernel-log.md explains the check.

The first rule that fits a message decides. Add a rule, or a pattern to a rule, and a labelled line with its source to
tests/burnin/data/kernel_log/lines.

kind      kind of part that the finding is about: node, memory, pci, gpu, hca, nic, nvme, drive
verdict   FAIL: the node must not train with it; INCONCLUSIVE: an operator must look first; WARN: a warning; PASS: of no
          weight
words     texts of which one is in each message of the rule (upper and lower case differ): they keep the search fast
patterns  regular expressions, searched for in the message; a group `part` names the part. %pci% and the like stand for
          `NAMES`. Use no nested repetition: a log may be hostile.
cause     what is wrong, with a verb
remedy    one sentence in the imperative; none where the verdict is PASS
blame     which layer a job blames that fails with the message; without it, the kind and the verdict decide

Formats: the Linux kernel 4.18 to 6.x, OpenZFS, NVIDIA's open kernel modules; each labelled line names its source.
"""

# ruff: noqa: E501 - a regular expression stays on its line

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import replace

from clusterctl.fleet.blame import Blame, Certainty, Layer, Role
from clusterctl.fleet.finding import Verdict
from clusterctl_burnin.kernel_log.combined import OF_A_USER
from clusterctl_burnin.kernel_log.rules import KernelLogRules, Rule
from clusterctl_burnin.package_data import text_of

NAMES = {
    "pci": r"(?P<part>(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])",
    "nvme": r"(?P<part>nvme\d+)(?:c\d+)?n\d+(?:p\d+)?\b",
    "disk": r"(?P<part>(?:sd|vd|xvd|hd|dasd)[a-z]{1,3}|mmcblk\d+)(?:p?\d+)?\b",
    "made": r"(?:md\d+|dm-\d+)(?:p?\d+)?\b",
    "nic": r"(?:bnxt_en|bnx2x?|tg3|be2net|ice|i40e|ixgbe(?:vf)?|igb|igc|iavf|idpf|e1000e?|qede?|qlcnic|netxen|ena|ionic|sfc|cxgb[34]|atlantic|hinic|enic|nfp|fm10k|efa|irdma|mana|gve|hns3|liquidio)",
    "hba": r"(?:mpt[23]?sas(?:_cm)?\d*|megaraid_sas|megasas|hpsa|smartpqi|aacraid|AAC\d+|qla2xxx|lpfc|mvsas|mvumi|mpi3mr\d*|pm80\w+:?|hisi_sas\w*|isci|arcmsr|3w-\w+|ahci|bfa|fnic|snic|csiostor|qed[if]|qla4xxx|mpt(?:base|sas|scsih|spi)|stex|hptiop|esas2r)",
    "place": r"(?: \[?%pci%\]?[\w-]*)?",
    "side": r"(?!(?!idpf |(?!.*hwmon).*(?i:, aborting\b|\bcreate \w* ?workqueue\b|\bdevlink alloc failed)).*(?i:\b(?:%options%)\b|(?<!not )(?<!un)\bsuccess(?:ful(?:ly)?)?\b|\bfirmware: failed to load\b|\badapter.s dsn\b|\b(?:rc|err|error|status|ret)[ =:(]*-(?:22|95)\b))",
    "dead": r"(?i:(?<!non-)(?<!non)(?<!no )\b(?:fatal|catastrophic|unrecover\w*|irrecoverable|non.?recoverable|uncorrect(?:ed|able))\b|\b(?:hardware|hw|internal|critical|permanent|persistent internal|system) (?:error|fault|failure|malfunction)|parity error|\b(?:double|multi)[- ]bit|(?<!\scorrectable )\becc (?:data )?error|\b(?:(?:hung|hang)(?! task)|halted|lock(?:ed)?[- ]?up|crash(?:ed)?(?! dump)|panic\S*|assert(?:ion|ed)?|dead|died|stuck|unresponsive|inoperable|wedged)\b|\bnon-operational|\bnot (?:responsive|responding|operational|running|alive|ready)\b|\b(?:no|isn.t|not) respon\w+|\b(?:fw|firmware|adapter|device|controller) is (?:gone|down|unavailable)\b|\b(?:adapter|controller|device|hba|ioc)\b.{0,12}\b(?:offline|unavailable|removed|gone|lost|fault(?:ed)?\b)|\bin fault\b|\boffline\b|power.?cycle|replace the adapter|over ?heat|temperature (?:is )?too high|\bcritical (?:thermal|temperature)|temperature threshold|\bfan (?:failure|has stopped)|\bpower fault|\bdid not (?:respond|change|complete|become|come|start)\b|checksum (?:is )?(?:not valid|invalid|error|mismatch)|\bgiving up\b|0xffffffff\b|no firmware running|\breboot (?:the )?(?:machine|system|host) to recover|\b(?:fw|firmware) (?:down|stall(?:ed)?)\b|image is corrupt\w*|watchdog timeout|\b(?:pci )?disconnect(?:ed)?\.|cannot proceed|\bfault (?:info|code)|\bBUG!|failed to respond|\bintr err\b|\bpci channel error\b|\b(?:attention|msi status) error\b|\bbuffer corrupted\b|\bprotocol error\b|\bconnection lost\b|\bis tampered\b|\bfirmware bug: mpi_reply\b|\bwill reset adapter\b|\bin error state\b|\brx/tx is disabled\b|\b(?:didn.t (?:send|receive)|read\d* timeout|space inaccessible)\b|timed out while waiting for a slot|sge_count \(-?\d+\) is out of range|error building command|chain offset value is not correct|unsupported command interface|supports only revisions|golden firmware|\w+bound spanning\b)",
    "start": r"(?i:(?:\b|_)(?:\w*init\w*|\w*reset|recover\w*|\w*probe\w*|re-?initiali[sz]\w*|boot|handshake|adminq|mailbox|firmware|fw\w*|command\w*|cmd\w*|mc|nvm|eeprom|doorbell\w*|operation\w*|hwrm|hca|ioc|register|post|dmae|block|hw|core|queues?|pages|rebuild|task|page|resource\w*)\b.{0,60}\b(?:fail\w*|timed? ?out|timeout|err(?:or)?|aborting)\b|\bproblem .{0,60}\baborting\b|\bprevious errors\b|\berror\b.{0,40}\b(?:rebuild|reset|init\w*)\b|\b(?:reserve only 0 out of|not enough rings)\b|\berror (?:creating|obtaining|enabling|changing|allocating|initiali[sz]ing|registering|mapping|resetting|requesting)\b|\baborting$|\b\w*(?:alloc|request|setup)_\w+ err\b|\bI/O map error\b|\bwithin the polling period\b|\breload flow aborted\b|\bunable to allocate interrupt\b|\bnever cleared\b|\b(?:bit 0x[0-9a-f]+|RESET_DONE) not (?:cleared|set)\b|\bdoorbell is in use\b|\bcould not be flushed\b|\bcould not attach\b|\b(?:fail\w*|unable|cannot|can not|could not|couldn.t|timed? ?out|timeout)\b.{0,24}\b(?:re-?)?(?:creat\w*|init\w*|reset\w*|start\w*|recover\w*|communicat\w*|map\w*|bring|enabl\w*|ready|read\w*|command\w*|exit|alloc\w* (?:init|unit|vectors?|vsi|memory|special vnic|queue\w*|interrupt)|obtain\w*|reserve|reclaim\w*|enter|identify|enter|operational|hca|firmware|fw))",
    "accel": r"(?:amdgpu|amdkfd|kfd(?: kfd)?|habanalabs|qaic|xe|neuron|iluvatar|tenstorrent|cambricon\w*)",
    "accelerator": r"(?:%accel%(?: (?:%pci%|hl\d+|accel\d+))?: (?:\w+: )?(?:\[drm(?::[^\]]*(?:\[\w+\])?)?\] )?|\[drm:[\w.]+ \[%accel%\]\] )",
    "screen": r"(?!.*(?i:\b(?:vce\w*|uvd\w*|vcn\w*|jpeg\w*|dmub|dcn?\d*|dc_\w+|hdcp|flip_done|display\w*|backlight|hdmi|dp|edp|psr|cursor|connector|i2c|debugfs|optional|metrics|parser|bo_va|sads|reg_wait|atomic|kms\w*|fbdev|fbcon|suspend\w*|hibernat\w*)\b|firmware: failed to load|direct firmware load|evict|page fault|not matched|ppt|device file|no pdd|not available|bad_page_threshold = -1|from user|to user|\w*vkms\w*))",
    "guc": r"i915 (?!0000:00:02\.0)%pci%: \[drm\] \*ERROR\* GT\d+:? ",
    "stopped": r"(?i:\b(?:not usable|vram is lost|not done with your previous command|uncorrectable|unrecoverable|poison\w*|(?:bad page|rma|ras) .*threshold|heartbeat|fatal)\b|\b(?:reset\S*|\w*init|resume|start|enable|test|boot|load\w*)\b.{0,40}\bfailed\b|\bfailed to (?:initiali[sz]e|init|communicate|respond|load|boot|reset|start|halt)\b|\bring failed|\berror (?:in starting|adding|initiali[sz]ing|creating)\b|\btlb flush failed\b|\brlcg fa\w+|\bis hung\b|\bFED IRQ\b|\bNOT added due to errors\b|\bStuck in\b|\bpreemption failed\b|\bfailed to (?:send message|(?:add|remove) hardware queue|evict process|restore queues|quiesce|wait for)\b|\bdiscovery failed\b|\btimeout to\b|\binvalidation fence timeout\b|\bpci resource is not valid\b)",
    "fails": r"(?i:\bfail(?:ed|ure|s|ing)?\b)",
    "refused": r"(?i:\b(?:(?:not|isn.t|aren.t) (?:supported|allowed|permitted|implemented|compatible)|unsupported|(?:does|do|did)(?: not|n.t) support|can ?(?:not|.t) (?:support|be (?:used|nested|changed|set|combined|larger|more|modified))|must (?:be|match|have)|(?<!\) )out of range|too (?:many (?!sge)|large\b|big\b|long\b)|already (?:exists?|in use|running|registered)|larger than|greater than|only .{0,40}(?:allowed|supported)|deprecated|on remount|size requested|can ?(?:not|.t) .{0,40} while)\b)",
    "trouble": r"(?i:\b(?:fail\w*|err|error|errors?(?!=)|time(?:d|s)? ?out|timeout|fault\w*|dead|died|lost|h[au]ng|abort\w*|unresponsive|offline|could ?n.t|unable|can ?(?:not|.t)|refused|giving up|bad|invalid|corrupt\w*|insane\w*|overlaps?|no valid|mismatch|missing|no longer|no \w+ available|wrong|unexpected|(?:did|does|do)(?: not|n.t)|no suitable|hardware error|crash\w*|exceeded|uncorrectable|broken|stuck|frozen|beyond|too (?:short|small))\b)",
    "driver": r"(?:nvme\w*|mlx[45]\w*|ib\d+|infiniband|i40e|ice|iavf|ixgbe|igb|bnxt\w*|bnx2x|tg3|cxgb4|qede?|be2net|ionic|sfc|hfi1\w*|irdma|efa|ena|megaraid\w*|megasas|mpt[23]?sas\w*|hpsa|smartpqi|aacraid|ahci|ata\d+|sd|block|md\d*|dm-\d+|device-mapper|nvidia(?!-modeset)[\w-]*|NVRM|pcieport|pciehp|EDAC|mce|DMAR|AMD-Vi|arm-smmu\S*|amdgpu|zio|zfs|xfs|ext4\S*|btrfs|jbd2)",
    "other": r"(?:snd\w*|xhci\w*|ehci\w*|ohci\w*|uhci\w*|usb\w*|i801_smbus|piix4\w*|ath\d+\w*|iwlwifi|iwl\w+|mt7\w+|rtw\w*|rtl\w*|r8\d+|brcm\w*|i915|nouveau|radeon|ast|mgag200|bochs\w*|virtio\w*|mei\w*|ioatdma|idxd|qat\w*|[\dc]\w+xcc|ccp|sp5100\w*|lpc\w*|intel\S*|isst\S*|proc_thermal\w*|thunderbolt|sdhci\w*|rtsx\w*|iavf|ixgbevf|pci|pcieport|pciehp|shpchp|vfio\S*|vgaarb|agpgart\S*|parport\w*|serial|8250\w*|amd_\w+|k10temp|pmt\w*|hl_\w+|nvidia-gpu|ucsi\w*|ahci|uio\w*|igb_uio|nvidia|ntb\w*|switchtec|tw\w+)",
    "failure": r"\b(?:fail(?:ed|ure|s|ing)?|error|time(?:d|s)? ?out|fault(?:ed|s)?|dead|died|lost|h[au]ng|abort(?:ed|ing)|not respond\w*|unresponsive|offline|could ?n.t|unable to|cannot|refused|giving up|timing out)\b",
}
SUSPICIOUS = (
    r"(?i)\b(?:hardware (?:error|failure|fault)|machine check (?:error|exception)|uncorrect(?:ed|able)|unrecover(?:ed|able)|catastrophic)\b",
    r"(?i)(?<!non-)(?<!non)\bfatal (?:error|fault|hardware|firmware|event|exception|interrupt|condition)|\b(?:error|firmware|hardware|device)\W{1,2}fatal\b",
    r"(?i)\bparity error|\b(?:double|multi)[- ]bit|\becc error|\bmedium error|\blockup\b|\bdata (?:is )?lost\b|\bdata loss\b",
    r"(?i)\b(?:firmware|fw|microcode|adapter|controller|device) (?:is |has |was |in )?(?:hung|hang|crash(?:ed)?|assert|dead|lost|unresponsive|not responding|stuck|fault(?:ed)? state)\b",
    r"^(?:SQUASHFS|\w+-fs \((?!loop)[^)]+\):) error\b",
    r"(?i)\bfallen off the bus|\bover[- ]?heat|\bover[- ]?temp(?:erature)?\b|\bcritical temperature|\bdevice inaccessible",
    r"(?i)^(?:message repeated \d+ times: \[)?(?!.*%refused%)(?:(?=nvidia)|%side%)%driver%\b.*%failure%",
)
"""Words of an unknown message that reports an error of the hardware, or a driver of a part that training needs fails:
an operator must look at it.
"""
NEEDED = (
    r"^(?!.*%refused%)%side%(?:<mlx|ib\d+: |infiniband |md(?:/\S+|-\w+)?: |device-mapper: |ata\d+|sd |scsi |nvme\d* |%nic%[:_]|EEH: |EDAC \w*|GHES: |RAS: |DMAR\S* |AMD-Vi: |NVRM:? |nvidia\S* |kfd )(?!.*\b(?:sr|loop|fd)\d).*%trouble%",
    r"^(?!.*%refused%)%side%(?:\[qed|bnx2x: \[)",
    r"^(?!.*%refused%)(?:EXT[234]-fs|XFS|JBD2|BTRFS|SPL|ZFS|WARNING: Pool)\b(?!.*\(loop).*%trouble%",
    r"^(?!.*%refused%)%side%(?:nvme\d* |mlx[45]_(?:core|ib)\b|infiniband |hfi1 |irdma\b|bnxt_re\b|cxl\w* |nvidia-uvm\b|%hba%\b|EDAC MC|mce: |pcieport |md/raid|device-mapper: (?:raid|multipath)|%nic% %pci%|AMD-Vi: |arm-smmu|BUG\b)",
    r"^(?!.*%refused%)%screen%%accelerator%",
    r"^(?!(?:%other%|%accel%)\b)(?!.*(?:%refused%|searching for))%side%[\w-]+ %pci%",
)
"""A message at level err of a driver of a part that training needs, which no rule and no table knows: an operator must
look.
"""
_KERNEL = Blame(Layer.SYSTEM_SOFTWARE, Certainty.LIKELY, Role.CAUSE)
_KERNEL_NOTE = Blame(Layer.SYSTEM_SOFTWARE, Certainty.UNKNOWN, Role.CONTEXT)
_FILES = Blame(Layer.STORAGE, Certainty.LIKELY, Role.CAUSE)
_MEMORY_USED_UP = Blame(Layer.APPLICATION, Certainty.PROVEN, Role.CAUSE)
_PROGRAM = Blame(Layer.APPLICATION, Certainty.UNKNOWN, Role.CONTEXT)
_NVLINK = Blame(Layer.FABRIC, Certainty.LIKELY, Role.CAUSE)
RULES = (
    # -- Programs of users, and what only looks like a fault -----------------------------------------------------------
    Rule(
        "node",
        Verdict.PASS,
        words=("[Firmware Bug]: Your BIOS",),
        patterns=(r"^mce: \[Firmware Bug\]: Your BIOS",),
        cause="the BIOS has a blemish that the kernel works around",
        blame=_KERNEL_NOTE,
    ),
    Rule(
        "node",
        Verdict.PASS,
        words=("traps: ", "segfault at", "modprobe", " trap "),
        patterns=(
            r"^traps: (?!PANIC).*\bip:[0-9a-f]+ sp:[0-9a-f]+ ",
            r"\]: segfault at [0-9a-f]+ ip ",
            r"^\S+\[\d+\]: modprobe: FATAL: Module",
        ),
        cause="a program of a user crashed",
        blame=_PROGRAM,
    ),
    Rule(
        "drive",
        Verdict.PASS,
        words=("critical target error", "operation not supported error", "I/O error, dev"),
        patterns=(
            r"critical target error, dev .* op 0x\d+:\((?:DISCARD|WRITE_ZEROES|WRITE_SAME|SECURE_ERASE)\)",
            r"operation not supported error, dev ",
            r"I/O error, dev .* op 0x\d+:\((?:DISCARD|WRITE_ZEROES|WRITE_SAME|SECURE_ERASE)\)",
        ),
        cause="a drive does not know a command",
    ),
    Rule(
        "nvme",
        Verdict.PASS,
        words=("(sct 0x",),
        patterns=(r"^nvme\d+(?:n\d+)?: .*\(sct 0x(?:0 / sc 0x[12]|1 / sc 0x[0-9a-f]+)\)",),
        cause="a drive does not know a command",
    ),
    Rule(
        "nvme",
        Verdict.PASS,
        words=("completion polled",),
        patterns=(r"nvme (?P<part>nvme\d+): I/O .*timeout, completion polled",),
        cause="an interrupt of a drive came late",
    ),
    Rule(
        "nic",
        Verdict.WARN,
        words=("imeout", "timed out", "reset due to", "queue stopped", "unexpectedly"),
        patterns=(
            r"^(?P<part>ib\w+): (?:transmit timeout: latency|queue stopped \d)",
            r"\b%nic% %pci%.*: .*(?i:\btx[ _]timeout\b(?!.*recover\w* (?:unsuccessful|fail))|transmit timed out|reset due to (?:tx|lost)|reset adapter unexpectedly)",
        ),
        cause="a network adapter did not send for a while",
        remedy="if it comes back within the hour, reboot the node and open a case with the adapter's vendor",
    ),
    Rule(
        "pci",
        Verdict.PASS,
        words=("DPC: ",),
        patterns=(r"DPC: (?:error containment capabilities|enabled with)",),
        cause="a port can contain errors",
    ),
    # -- NVMe drives ---------------------------------------------------------------------------------------------------
    Rule(
        "nvme",
        Verdict.FAIL,
        words=("nvme nvme", "no available path", "driver nvme", "nvme: probe"),
        patterns=(
            r"nvme (?P<part>nvme\d+): (?:I/O|[Aa]dmin|passthrough)\b.*\btimeout\b",
            r"nvme (?P<part>nvme\d+): controller is (?:down|in error)",
            r"nvme (?P<part>nvme\d+): Device (?:not ready|shutdown incomplete)",
            r"nvme (?P<part>nvme\d+): (?:Removing after probe failure|Removing controller|Disabling device after reset failure)",
            r"nvme (?P<part>nvme\d+): (?:frozen|failure) state error detected",
            r"nvme (?P<part>nvme\d+): (?:invalid id \d+ completed|request 0x[0-9a-f]+ genctr mismatch|could not locate request|(?:Fw|firmware) activation timeout)",
            r"nvme (?P<part>nvme\d+): (?:[Ii]dentify (?:Controller|namespace)\b.*failed|Could not set queue count|Minimum device page size|Reading CAP failed|IO queues (?:not created|lost)|failed to mark controller)",
            r"nvme: probe of %pci% failed",
            r"nvme %pci%: probe (?:with driver nvme )?failed",
            r"block (?P<part>nvme\d+)n\d+: no (?:usable|available) path",
        ),
        cause="a drive does not answer",
        remedy="update its firmware, reseat it, then replace it",
    ),
    Rule(
        "nvme",
        Verdict.FAIL,
        words=("(sct 0x",),
        patterns=(
            r"\b%nvme%: .*\(sct 0x2 / sc 0x8[0-9a-f]\)",
            r"\b%nvme%: .*\(sct 0x0 / sc 0x[46]\)",
            r"\b%nvme%: .*\(sct 0x3 / sc 0x[67][0-9a-f]\)",
        ),
        cause="a drive lost data",
        remedy="read nvme smart-log of the drive, then replace it",
    ),
    Rule(
        "nvme",
        Verdict.FAIL,
        words=(" error, dev nvme", "Buffer I/O error on dev"),
        patterns=(
            r"\b(?:critical medium|critical target|protection|timeout|critical nexus|recoverable transport|link|I/O) error, dev %nvme%",
            r"Buffer I/O error on dev(?:ice)? %nvme%",
        ),
        cause="a drive does not read or write",
        remedy="read nvme smart-log of the drive, reseat it, then replace it",
    ),
    # -- SCSI and SATA drives and their controllers --------------------------------------------------------------------
    Rule(
        "drive",
        Verdict.FAIL,
        words=(" error, dev ", "Buffer I/O error on dev", "page write due to I/O error"),
        patterns=(
            r"\b(?:critical medium|critical target|protection|timeout|critical nexus|recoverable transport|link|I/O) error, dev %disk%",
            r"Buffer I/O error on dev(?:ice)? %disk%",
            r"^lost (?:a?sync )?page write due to I/O error on %disk%",
        ),
        cause="a drive does not read or write",
        remedy="read smartctl -a of the drive; reseat it, then replace it",
    ),
    Rule(
        "node",
        Verdict.INCONCLUSIVE,
        words=(" error, dev ", "Buffer I/O error on dev", "page write due to I/O error"),
        patterns=(
            r"\b(?:critical medium|critical target|protection|timeout|critical nexus|recoverable transport|link|I/O) error, dev %made%",
            r"Buffer I/O error on dev(?:ice)? %made%",
            r"^lost (?:a?sync )?page write due to I/O error on %made%",
        ),
        cause="a device that is made of others (RAID, LVM, multipath) does not read or write",
        remedy="read lsblk, mdadm --detail or dmsetup status, and the health of the drives below it",
    ),
    Rule(
        "node",
        Verdict.FAIL,
        words=("-error on swap-device",),
        patterns=(r"^(?:Read|Write)-error on swap-device \((?!7:)\d+:\d+:\d+\)",),
        cause="the drive below the swap space does not read or write",
        remedy="read the health of the drive with that number (lsblk), then replace it",
    ),
    Rule(
        "drive",
        Verdict.FAIL,
        words=("[sd", "offline", "timing out command", "Device not ready", "Illegal state"),
        patterns=(
            r"\[(?P<part>sd[a-z]+)\] (?:tag#\d+ )?Sense Key : (?:Medium Error|Hardware Error|0x[34]\b)",
            r"\[(?P<part>sd[a-z]+)\] (?:tag#\d+ )?Add\. Sense: (?:Unrecovered (?:read|write) error|Write error|Read error|Internal target failure|Logical unit failure|Mechanical positioning error|Hardware impending failure|Failure prediction threshold|Data path failure|Peripheral device write fault|No seek complete|Track following error|Record not found|Random positioning error|Defect list error|Power-on (?:failure|or self-test failure)|Logical unit (?:failed|does not respond|has not self-configured)|Warning - specified temperature exceeded|Spindle)",
            r"\[(?P<part>sd[a-z]+)\] Read Capacity\(\d+\) failed: Result: hostbyte=(?:DID_OK|0x00)",
            r"\[(?P<part>sd[a-z]+)\]\s+(?:tag#\d+ )?FAILED Result: hostbyte=(?!DID_OK\b|0x00\b)",
            r"\[(?P<part>sd[a-z]+)\]\s+(?:tag#\d+ )?(?:[\w ()]+ failed: )?Result: hostbyte=(?!DID_OK\b|0x00\b)",
            r"sd (?P<part>[\d:]+): .*timing out command, waited",
            r"sd (?P<part>[\d:]+): (?:Device not ready|Illegal state transition)",
            r"sd (?P<part>[\d:]+): (?:\[\w+\] )?Device offlined",
            r"\[(?P<part>sd[a-z]+)\] (?:tag#\d+ )?(?:access beyond end of device|device offline or changed)",
            r"sd (?P<part>[\d:]+): (?:\[\w+\] )?rejecting I/O to (?:offline|dead) device",
        ),
        cause="a drive reports that it fails",
        remedy="read smartctl -a of the drive, then replace it",
    ),
    Rule(
        "drive",
        Verdict.FAIL,
        words=("ata",),
        patterns=(
            r"\b(?P<part>ata\d+\.\d\d): exception Emask 0x",
            r"\b(?P<part>ata\d+\.\d\d): failed command: ",
            r"\b(?P<part>ata\d+): command 0x[0-9a-f]+ timeout",
            r"\b(?P<part>ata\d+\.\d\d): error: \{ [A-Z ]*\b(?:UNC|ICRC|IDNF|AMNF|TRK0NF)\b",
            r"\b(?P<part>ata\d+\.\d\d): (?:disabled|disable device|NCQ disabled due to excessive errors|revalidation failed|qc timeout|failed to (?:IDENTIFY|read native max|set xfermode))",
            r"\b(?P<part>ata\d+)(?:\.\d\d)?: (?:COMRESET failed|(?:soft|hard)?reset failed, giving up|limiting SATA link speed|EH (?:complete|pending) after \d+ tries|link is slow to respond, .*giving up)",
        ),
        cause="a SATA drive or its cable fails",
        remedy="reseat the drive and its cable or backplane, then replace the drive",
    ),
    Rule(
        "drive",
        Verdict.FAIL,
        words=("mpt", "megasas", "megaraid_sas", "hpsa", "smartpqi", "aacraid"),
        patterns=(
            r"\bmpt[23]?sas\S*: (?:attempting (?:task abort|\w+ reset)|sending \w[\w ]* reset|\w+: timeout$|failure at .*_probe)",
            r"\bmegasas: (?:RESET cmd=|.*waiting for \d+ commands)",
            r"\b(?:hpsa|smartpqi) %pci%: .*(?:resetting|reset of)",
            r"\bmpt[23]?sas\S*: (?:fault_state|fault info|sending diag reset|diag reset: FAILED|\S*hard_reset_handler: FAILED|.*dead_ioc|.*non-operational|.*coredump|.*Command Timeout.*\bFAILED)",
            r"\bmegaraid_sas %pci%: (?:FW in FAULT|Found FW in FAULT|Adapter reset failed|waiting for controller reset|Init cmd return status FAILED|Failed from megasas_init_fw|Controller in |FW restarted|.*killing adapter|.*IO/DCMD timeout|target reset FAILED)",
            r"\bmegaraid_sas %pci%: .*/(?:CRIT|FATAL|DEAD)\) - ",
            r"\bhpsa %pci%: (?:Controller lockup|.*controller is offline|failed \d+ commands in fail_all|.*not responding)",
            r"\bsmartpqi %pci%: (?:controller (?:is )?offline|no heartbeat detected|.*controller is in (?:error|lockup))",
            r"\baacraid(?: %pci%)?: (?:Host (?:bus|adapter) (?:reset|abort|dead)|Controller reset type|Adapter health - -|.*Adapter dead)",
        ),
        cause="a storage controller or a drive behind it fails",
        remedy="look at the controller with its own tool; reseat or replace what it names",
    ),
    Rule(
        "drive",
        Verdict.FAIL,
        words=("md/raid", "md: "),
        patterns=(
            r"md/raid.*: Disk failure on (?!loop|ram)(?P<part>\w+?)(?:p?\d+)?\b",
            r"md/raid.*: (?:not enough operational devices|journal disk is missing)",
            r"md/raid.*: (?:read error not correctable|unrecoverable I/O|too many read errors|failed to run raid set|redirecting sector .*failed)",
            r"md/raid\S*: active with (?P<have>\d+) out of (?!(?P=have)\b)\d+ (?:mirrors|devices)",
            r"md/raid\S*: raid level \d+ active with (?P<have>\d+) out of (?!(?P=have)\b)\d+ devices",
            r"\bmd: (?:kicking non-fresh|kicking faulty) (?P<part>\w+?)(?:p?\d+)? from",
            r"\bmd: super_written gets error",
        ),
        cause="a RAID has lost a drive",
        remedy="read mdadm --detail of the RAID, replace the drive that it names",
    ),
    Rule(
        "drive",
        Verdict.FAIL,
        words=("device-mapper: ",),
        patterns=(
            r"device-mapper: multipath: .*(?:Failing path|Could not failover)",
            r"device-mapper: .*(?i:\b(?:superblock|metadata|recovery|journal|btree|space map)\b.*\b(?:fail\w*|error|invalid|no longer valid|until repaired)\b|\b(?:error|couldn.t|could not|cannot|unable to|failed to) (?:\w+ )?(?:read\w*|writ\w*|load\w*|commit\w*|repair\w*)\b.*\b(?:superblock|metadata|journal|bitset|mappings?)\b|\bwrite error\b)",
            r"device-mapper: .*(?:cursor_\w+ .*failed|(?i:could ?n.t|could not|failed to) (?:write|commit|flush)\b)",
            r"device-mapper: raid: .*(?:has failed|faulty|Failed to (?:load|read|resume|run|write))",
            r"device-mapper: (?:thin|cache|space map|btree).*(?:abort|failed|error|read-only|too small)",
            r"device-mapper: (?:verity|integrity|crypt|era|writecache|mirror|raid1|snapshots?)\b.*(?i:corrupt\w*|i/o error|aead error|checksum|mismatch|fail\w*|invalidat\w*)",
        ),
        cause="a volume has lost a drive",
        remedy="read dmsetup status and lsblk on the node; look for errors of the drive below the volume",
    ),
    # -- File systems --------------------------------------------------------------------------------------------------
    Rule(
        "node",
        Verdict.FAIL,
        words=(
            "EXT4-fs",
            "EXT3-fs",
            "EXT2-fs",
            "JBD2",
            "journal on device",
            "journal commit",
            "Remounting filesystem read-only",
        ),
        patterns=(
            r"EXT[234]-fs error \(device (?!loop)",
            r"Remounting filesystem read-only",
            r"EXT[234]-fs \(.*\): .*(?:potential data loss|[Dd]ata will be lost|Delayed block allocation failed|previous I/O error|I/O error while)",
            r"EXT[234]-fs warning \(device (?!loop).*I/O error",
            r"EXT[234]-fs \(.*\): (?:warning: mounting fs with errors|error count since last fsck|(?:initial|last) error at time|bad (?:geometry|block|inode|magic)|.*(?i:(?:failed to|cannot|unable to|couldn.t) (?:read|load|write|mark inode)\b|bad s_\w+|dx entry|both journal)|.*(?:insanely (?:large|small)|unable to read superblock|not in group|overlaps)|mount failed|shut ?down requested|can.t read group descriptor|ext4_check_descriptors|group descriptors corrupted|.*orphan list check failed|.*[Cc]hecksum (?:failed|invalid))",
            r"^journal commit I/O error|(?:Aborting journal on device|JBD2: (?:Detected IO errors|Error -?\d+ detected|(?:\w+: )?Cannot locate|no valid journal superblock))",
        ),
        cause="a file system is damaged, or the drive below it does not write",
        remedy="look for errors of the drive below it; install the node again",
        blame=_FILES,
    ),
    Rule(
        "node",
        Verdict.FAIL,
        words=("XFS (", "XFS: "),
        patterns=(
            r"XFS \(.*\): .*(?:[Cc]orruption|[Cc]orrupted|CRC error|XFS_WANT_CORRUPTED)",
            r"XFS(?: \(.*\))?: (?:Unmount and run xfs_repair|Internal error|empty log check failed|metadata I/O error|log I/O error|writeback error|xfs_do_force_shutdown|failed to read root inode)",
            r"XFS \((?!loop).*\): .*(?i:\bbad (?:header|length|magic|number|clientid|block|flag|owner|crc)|superblock update failed|failed to read root|metadata \w+ detected|ifree/icount mismatch|failed \(error -?\d+\)!)",
            r"XFS \(.*\): (?:I/O Error Detected|I/O error while|Log I/O Error|Please u\w*mount|.*\berror -\d+ returned|.*[Ss]hut(?:ting)? down|log mount(?:/recovery)? failed|.*returned error -\d+)",
        ),
        cause="a file system is damaged or has shut down",
        remedy="look for errors of the drive below it; install the node again",
        blame=_FILES,
    ),
    Rule(
        "node",
        Verdict.FAIL,
        words=("BTRFS",),
        patterns=(
            r"BTRFS error \(device (?!loop)(?!.*errs: wr 0, rd 0, flush 0, corrupt 0, gen 0$)",
            r"BTRFS critical|BTRFS: error \(device|BTRFS warning \(device (?!loop).*\bunaligned\b",
            r"BTRFS .*(?:forced readonly|csum (?:failed|mismatch)|checksum error|parent transid verify failed|open_ctree failed|checksum verify failed|bad tree block|(?:has|have|had) bad \w+)",
        ),
        cause="a file system is damaged, or the drive below it fails",
        remedy="look for errors of the drive below it; install the node again",
        blame=_FILES,
    ),
    Rule(
        "node",
        Verdict.FAIL,
        words=("ool '", "zio pool=", "PANIC", "VERIFY", "SPLError"),
        patterns=(
            r"WARNING: (?:.* )?[Pp]ool '[^']+' has(?: encountered an uncorrectable I/O failure|.*suspend| not| been)",
            r"WARNING: (?:.* )?[Pp]ool '[^']+'.*(?:suspend|fault|uncorrectable)",
            r"zio pool=\S+ vdev=\S+ error=\d+",
            r"^PANIC: zfs|\bPANIC at \S+\.c:\d+|^VERIFY\d?S?\(.*\) failed|SPLError: ",
        ),
        cause="a ZFS pool has lost its disks, or ZFS has stopped",
        remedy="read zpool status on the node, reseat or replace the disk, then zpool clear",
        blame=_FILES,
    ),
    # -- Memory and processors -----------------------------------------------------------------------------------------
    Rule(
        "memory",
        Verdict.FAIL,
        words=("EDAC ",),
        patterns=(
            r"EDAC .*\b[1-9]\d* UE\b.* on (?P<part>(?!unknown|mc#|any memory)[^ (]+)",
            r"EDAC .*\b[1-9]\d* UE\b",
            r"EDAC MC\d+: UE (?:page|row|\S+ row)",
            r"EDAC \w+: UE\b",
            r"EDAC \w+: .*(?:Parity Error|System Error)",
        ),
        cause="memory has an uncorrectable error",
        remedy="find the module in the BMC's event log and replace it",
    ),
    Rule(
        "memory",
        Verdict.FAIL,
        words=("Memory failure: 0x", "synchronous unrecoverable error"),
        patterns=(r"Memory failure: 0x", r"synchronous unrecoverable error \(SIGBUS\)"),
        cause="memory has an uncorrectable error, and the kernel took its page away",
        remedy="find the module in the BMC's event log and replace it",
    ),
    Rule(
        "memory",
        Verdict.WARN,
        words=("EDAC ",),
        patterns=(
            r"EDAC .*\b[1-9]\d* CE\b.* on (?P<part>(?!unknown|mc#|any memory)[^ (]+)",
            r"EDAC .*\b[1-9]\d* CE\b",
            r"EDAC MC\d+: CE (?:page|row)",
        ),
        cause="a memory error was corrected",
        remedy="watch the module that the message names; ten a day are a reason to replace it",
    ),
    Rule(
        "node",
        Verdict.FAIL,
        words=("[Hardware Error]: ", "Uncorrected hardware memory error", "mce: ", "system reset reason"),
        patterns=(
            r"\[Hardware Error\]: (?:System Fatal error|Uncorrected, |Deferred error)",
            r"\[Hardware Error\]: .*MC\d+_STATUS\[[^\]]*\|(?:UE|UC)\|",
            r"\[Hardware Error\]: .*(?:Machine check: |Machine Check Exception|Fatal [Mm]achine [Cc]heck|didn.t answer in synchronization|Processor context corrupt)",
            r"mce: Uncorrected hardware memory error|^mce: (?:CPU\d+: Machine Check Exception|Machine check: )",
            r"Previous system reset reason .*(?:uncorrected error|sync flood|parity error|THERMTRIP|thermal|CPU shutdown|watchdog timer expired|warm reset handshake)",
        ),
        cause="the processor or its memory has an uncorrectable error",
        remedy="find the part in the BMC's event log and replace it",
    ),
    Rule(
        "node",
        Verdict.WARN,
        words=(
            "Machine check events logged",
            "Corrected error, no action required",
            "_STATUS[",
            "CMCI storm detected",
            "Soft offlining",
            "Soft-offlin",
        ),
        patterns=(
            r"Machine check events logged",
            r"\[Hardware Error\]: Corrected error, no action required",
            r"\[Hardware Error\]: .*MC\d+_STATUS\[[^\]]*\|CE\|",
            r"CMCI storm detected",
            r"Soft[- ]offlining",
        ),
        cause="the processor has corrected an error, or logged an event",
        remedy="read ras-mc-ctl --errors or the BMC's event log; if one part is named again and again, replace it",
    ),
    Rule(
        "node",
        Verdict.FAIL,
        words=("NMI: ", "SError", "external abort"),
        patterns=(
            r"NMI: (?:PCI system error|IOCK error|IO error|Not continuing|memory parity error)",
            r"SError Interrupt on CPU|synchronous external abort|Asynchronous SError",
        ),
        cause="the chipset or the processor reports an error of memory or bus",
        remedy="find the part in the BMC's event log and replace it",
    ),
    Rule(
        "node",
        Verdict.INCONCLUSIVE,
        words=("NMI received for unknown reason", "Dazed and confused"),
        patterns=(r"NMI received for unknown reason|Dazed and confused",),
        cause="the kernel does not know the source of a non-maskable interrupt",
        remedy="look for an error at the same time in the BMC's event log; reboot the node and run the burn-in again",
    ),
    Rule(
        "node",
        Verdict.WARN,
        words=("above threshold",),
        patterns=(r"(?:Core|Package) temperature(?:/speed)? (?:is )?above threshold, .*\(total events = 1\)",),
        cause="a processor was slowed down by heat once since the boot",
        remedy="look at the burn-in's loads: they measure what heat costs; check fans and inlet air if it comes back",
    ),
    Rule(
        "node",
        Verdict.FAIL,
        words=("above threshold", "ritical temperature", "temperature above", "HARDWARE PROTECTION"),
        patterns=(
            r"(?:Core|Package) temperature(?:/speed)? (?:is )?above threshold",
            r"CPU\d+: .*temperature above",
            r"(?i)thermal.*critical temperature reached",
            r"HARDWARE PROTECTION (?:shutdown|reboot) \(",
        ),
        cause="a processor or the board was slowed down or stopped by heat",
        remedy="check that the fans run, the heat sink is seated and the inlet air is cold",
    ),
    Rule(
        "node",
        Verdict.FAIL,
        words=(
            "do_boot_cpu failed",
            "Aborting bringup",
            "invalid APIC ID",
            "failed to report alive",
            "failed to come online",
            "failed to boot",
        ),
        patterns=(
            r"do_boot_cpu failed|CPU \d+ has invalid APIC ID|\. Aborting bringup",
            r"\bCPU\d+:? failed to (?:report alive state|come online|boot)",
            r"psci: failed to boot CPU\d+",
        ),
        cause="a processor core does not start",
        remedy="update the BIOS, power the node off and on; if it comes back, reseat the processor, then replace it",
    ),
    Rule(
        "node",
        Verdict.INCONCLUSIVE,
        words=("nobody cared", "Disabling IRQ #", "Corrupted low memory"),
        patterns=(r"irq \d+: nobody cared|Disabling IRQ #\d+", r"Corrupted low memory at"),
        cause="a device raises interrupts that no driver serves, or firmware writes into memory that it does not own",
        remedy="update BIOS and drivers; if only this node has it, look for the device in the stack below the message",
    ),
    # -- PCIe ----------------------------------------------------------------------------------------------------------
    Rule(
        "pci",
        Verdict.FAIL,
        words=("(Fatal)",),
        patterns=(
            r"%pci%: (?:AER: )?PCIe Bus Error: severity=Uncorrect(?:ed|able) \(Fatal\)",
            r"AER: (?:Multiple )?Uncorrect(?:ed|able) \(Fatal\) error (?:message )?received(?: from|:) %pci%",
            r"%pci%: AER: (?:Multiple )?Uncorrect(?:ed|able) \(Fatal\) error",
            r"severity=Uncorrect(?:ed|able) \(Fatal\)",
        ),
        cause="PCIe had a fatal error",
        remedy="power off, reseat the device and its cable or riser",
    ),
    Rule(
        "pci",
        Verdict.FAIL,
        words=("AER: ", "DPC: ", "AER-aware"),
        patterns=(
            r"%pci%: device has no AER-aware driver",
            r"%pci%: (?:AER: )?can.t recover \(no error_detected callback\)",
            r"%pci%: AER: (?:device recovery failed|.*link has been reset|.*reset failed)",
            r"%pci%: DPC: (?:containment event|unmasked uncorrectable|ERR_(?:FATAL|NONFATAL)|RP PIO|rp_pio|.*not set in|.*Timeout)",
        ),
        cause="PCIe had an error from which the device did not recover",
        remedy="power off, reseat the device and its cable or riser",
    ),
    Rule(
        "pci",
        Verdict.WARN,
        words=("(Non-Fatal)",),
        patterns=(
            r"%pci%: (?:AER: )?PCIe Bus Error: severity=Uncorrect(?:ed|able) \(Non-Fatal\)",
            r"AER: (?:Multiple )?Uncorrect(?:ed|able) \(Non-Fatal\) error (?:message )?received(?: from|:) %pci%",
            r"Uncorrect(?:ed|able) \(Non-Fatal\)",
        ),
        cause="PCIe had an error that could not be corrected",
        remedy="if it comes back, reseat the device and its cable or riser",
    ),
    Rule(
        "pci",
        Verdict.FAIL,
        words=(
            "lot(",
            "retrain",
            "Link Active not set",
            "change power state",
            "giving up",
            "inaccessible",
            "PCIe link lost",
            "EEH",
        ),
        patterns=(
            r"(?:pcieport|pciehp) %pci%:.*[Ss]lot\([^)]*\): (?:Link Down|Card not present|Cannot train link|Power fault|Failed to check link|No link|Link Training Error)",
            r"%pci%: (?:broken device, retraining|retraining failed|Data Link Layer Link Active not set)",
            r"%pci%: .*(?:device inaccessible|config space inaccessible|Refused to change power state)",
            r"%pci%.*: PCIe link lost",
            r"%pci%: not ready (?:\d+ms )?after [\w ]+; giving up",
            r"^EEH: (?:Detected|This PCI device has failed|.*(?i:permanent|unrecoverable|recovery failed|frozen))",
            r"%pci%.*: EEH error detected",
        ),
        cause="a PCIe link went down, or the device behind it does not answer",
        remedy="power the node off and on; if it comes back, reseat the device below this port and its cable or riser",
    ),
    Rule(
        "node",
        Verdict.FAIL,
        words=("AMD-Vi: ", "DMAR: ", "arm-smmu", "Event logged "),
        patterns=(
            r"AMD-Vi: .*(?:Completion-Wait loop timed out|HARDWARE_ERROR|INV_TIMEOUT|Command buffer timeout|Failed to initialize IOMMU Hardware)",
            r"%pci%: (?:AMD-Vi: )?Event logged \[\w*(?:INV_TIMEOUT|HARDWARE_ERROR)",
            r"^iommu ivhd\d+: (?:AMD-Vi: )?Event logged \[\w*(?:INV_TIMEOUT|HARDWARE_ERROR)",
            r"DMAR: DRHD: handling fault status reg [0-9a-f]*[4-7c-f][0-9a-f]$",
            r"^(?:DMAR: Initialization failed|AMD-Vi: Failed to initialize(?! - trying))|DMAR: VT-d detected Invalidation|DMAR: QI .*(?:error|timed out)",
            r"arm-smmu.*(?:CMD_SYNC timeout|Service Failure Mode|CMDQ timeout|GERROR|[Uu]nexpected global (?:fault|error)|failed to (?:allocate|reset|enable|disable|init\w*|probe|queue)|GERRORN=0x[0-9a-f]*[1-9a-f]|TLB sync timed out)",
        ),
        cause="the IOMMU does not work",
        remedy="power the node off and on; if it comes back, replace the processor or its board",
    ),
    Rule(
        "pci",
        Verdict.INCONCLUSIVE,
        words=("AMD-Vi: ", "DMAR:", "arm-smmu"),
        patterns=(
            r"DMAR:.*Request device \[%pci%\].*fault (?:addr|index)",
            r"%pci%: AMD-Vi: Event logged \[",
            r"AMD-Vi: Event logged \[\w+ device=%pci%",
            r"AMD-Vi: Event logged \[",
            r"arm-smmu.*(?:event 0x|fault)",
        ),
        cause="a device reached for memory that is not mapped for it",
        remedy="update BIOS and driver, check the IOMMU settings; if only this node has it, reseat the device",
    ),
    # -- The kernel itself ---------------------------------------------------------------------------------------------
    Rule(
        "node",
        Verdict.FAIL,
        words=("stuck for", "LOCKUP", "stall", "kthread starved", "kthread last ran", "workqueue lockup"),
        patterns=(
            r"soft lockup - CPU#\d+ stuck",
            r"(?i)watchdog.*hard LOCKUP(?! detector)",
            r"(?:rcu: )?INFO: rcu\w* (?:self-)?detected (?:expedited )?stalls?",
            r"(?i:rcu\w*) (?:\w+ )?kthread (?:timer wakeup|starved|last ran on offline)",
            r"workqueue lockup - pool",
        ),
        cause="a processor was stuck in the kernel",
        remedy="look for driver errors in the same minute; reboot the node",
        blame=_KERNEL,
    ),
    Rule(
        "node",
        Verdict.INCONCLUSIVE,
        words=(
            "Marking clocksource",
            "Marking TSC",
            "Marking unstable",
            "TSC warp",
            "TSC found unstable",
            "tsc is unstable",
        ),
        patterns=(
            r"Marking clocksource '\w+' as unstable",
            r"Marking TSC unstable due to (?:clocksource watchdog|check_tsc_sync)",
            r"cycles TSC warp between CPUs",
            r"^TSC found unstable after boot",
            r"^sched_clock: Marking unstable",
            r"Override clocksource tsc is unstable",
        ),
        cause="the processors' clocks disagree, and the kernel takes a slow clock",
        remedy="update the BIOS, power the node off and on; if it comes back, replace the board",
        blame=_KERNEL_NOTE,
    ),
    Rule(
        "node",
        Verdict.FAIL,
        words=(
            "Kernel panic",
            "BUG",
            "FIX ",
            "Oops",
            "general protection fault",
            "divide error: ",
            "invalid opcode: ",
            "stack segment: ",
            "double fault",
            "Unable to handle kernel",
            "Internal error",
            "corruption. ",
            "Fixing recursive",
            "NX-protected",
            "divide_error: ",
            "stack corrupted",
        ),
        patterns=(
            r"Kernel panic - not syncing",
            r"BUG: (?:unable to handle|kernel NULL pointer|stack guard|KASAN|KFENCE|scheduling while atomic|spinlock|sleeping function|Bad (?:page|rss)|non-zero|workqueue)",
            r"kernel BUG at ",
            r"\bOops\b.*: [0-9a-f]{4,16} \[#\d+\]|^Oops: ",
            r"(?:general protection fault|divide error|invalid opcode|stack segment|segment not present|double fault|bounds)\b.*: [0-9a-f]{4} \[#\d+\]",
            r"traps: PANIC: double fault",
            r"Unable to handle kernel (?:NULL pointer|paging request|read|write|access)",
            r"^Fixing recursive fault",
            r"Internal error: .* \[#\d+\]",
            r"list_(?:add|del) corruption\.|^kernel tried to execute \S+ page",
            r"^divide_error: [0-9a-f]{4} \[#\d+\]|^Thread overran stack, or stack corrupted",
            r"^BUG [\w.:-]+ \((?:Not tainted|Tainted: [^)]*)\): |^FIX [\w.:-]+: (?:Restoring|Object|Marking)",
        ),
        cause="the kernel has hit an error of its own",
        remedy="reboot the node; if it comes back, look for the driver that the stack names, then test the memory",
        blame=_KERNEL,
    ),
    Rule(
        "node",
        Verdict.INCONCLUSIVE,
        words=("UBSAN: ",),
        patterns=(r"^UBSAN: ",),
        cause="the kernel has found a mistake in a driver's code",
        remedy="look for the driver that the message names; update it",
        blame=_KERNEL,
    ),
    Rule(
        "drive",
        Verdict.FAIL,
        words=("BRCM Debug mfi stat",),
        patterns=(r"\[(?P<part>sd[a-z]+)\] (?:tag#\d+ )?BRCM Debug mfi stat 0x(?!0?0\b)",),
        cause="a storage controller did not carry out a drive's command",
        remedy="look at the controller with its own tool; reseat or replace the drive",
    ),
    Rule(
        "node",
        Verdict.INCONCLUSIVE,
        words=("Out of memory", "global_oom", "CONSTRAINT_"),
        patterns=(
            r"(?:^|\] )Out of memory(?:: Kill| and no killable|.*Killed process)",
            r"oom-kill:constraint=CONSTRAINT_(?:NONE|CPUSET|MEMORY_POLICY)",
        ),
        cause="the node ran out of memory, and the kernel killed a process",
        remedy="find which process it was; reboot the node and run the burn-in again",
        blame=_MEMORY_USED_UP,
    ),
    Rule(
        "node",
        Verdict.WARN,
        words=("oom-killer", "oom-kill:"),
        patterns=(r"invoked oom-killer", rf"oom-kill:constraint=CONSTRAINT_MEMCG\b{OF_A_USER}"),
        cause="a program of a container, a job or a user reached the limit of its memory, and the kernel killed it",
        remedy="find which process it was",
        blame=_MEMORY_USED_UP,
    ),
    Rule(
        "node",
        Verdict.INCONCLUSIVE,
        words=("oom-kill:", "Memory cgroup out of memory"),
        patterns=(r"oom-kill:constraint=CONSTRAINT_MEMCG\b", r"Memory cgroup out of memory"),
        cause="the kernel killed a process at a limit of memory, and names no container, job or user that had it",
        remedy="find which process it was; reboot the node and run the burn-in again",
        blame=_MEMORY_USED_UP,
    ),
    Rule(
        "node",
        Verdict.WARN,
        words=("blocked for more than",),
        patterns=(r"task .{1,40}:\d+ blocked for more than \d+ seconds",),
        cause="a process hung in the kernel",
        remedy="read the stack below the message: a file system, or the GPU's driver",
        blame=_KERNEL_NOTE,
    ),
    Rule(
        "node",
        Verdict.WARN,
        words=("WARNING: CPU: ",),
        patterns=(r"WARNING: CPU: \d+ PID: \d+ at ",),
        cause="the kernel warns of a mistake of its own",
        remedy="look for the driver that the stack names",
        blame=_KERNEL_NOTE,
    ),
    # -- Adapters ------------------------------------------------------------------------------------------------------
    Rule(
        "hca",
        Verdict.FAIL,
        words=("ib", "mlx"),
        patterns=(
            r"^(?:message repeated \d+ times: \[)?(?P<part>(?:ib|mlx)\w*)(?:, \d+)?: (?:\w+: )?(?:failed to (?:allocate|create|initiali[sz]e|init|listen|open|modify)\b|couldn.t register ipoib|ipoib_\w+ failed|(?:ib_query_\w+|rdma_query_\w+) .*\bfailed)",
        ),
        cause="an InfiniBand port has no network device",
        remedy="reboot the node; if it comes back, update driver and firmware of the adapter, then replace it",
    ),
    Rule(
        "hca",
        Verdict.WARN,
        words=(
            "Create QP",
            "WC error",
            "max exceeded",
            "umem_get",
            "udata",
            "Failed to create CQ",
            "Resize CQ",
            "max_dest_rd",
        ),
        patterns=(
            r"^infiniband (?P<part>\w+): \w+:\d+:\(pid \d+\): (?:Create QP type \d+ failed|WC error: )",
            r"^bnxt_en %pci% bnxt_re\d+: .*(?:max exceeded|umem_get failed|copy \w+ udata|Resize CQ .*(?:Busy|out of range)|max_dest_rd_atomic)",
        ),
        cause="a program asked for more than an adapter has, or a request of it failed",
        remedy="read what the program or nccl reports",
        blame=_PROGRAM,
    ),
    Rule(
        "nic",
        Verdict.PASS,
        words=("Warning firmware error detected FWSM",),
        patterns=(r"^ixgbe %pci%: Warning firmware error detected FWSM: 0x[0-9A-F][02468ACE]0[0-7][0-9A-F]{4}$",),
        cause="an adapter has no firmware for its management",
    ),
    Rule(
        "hca",
        Verdict.PASS,
        words=("ACCESS_REG",),
        patterns=(r"mlx5_(?:cmd_out_err|cmd_check).*ACCESS_REG",),
        cause="a restricted function may not read a register",
    ),
    Rule(
        "hca",
        Verdict.WARN,
        words=("mlx5_cmd_", "fw status"),
        patterns=(
            r"mlx5_core %pci%: mlx5_cmd_(?:out_err|check).*status (?:bad|limits|no op|not supported|exceed)",
            r"mlx4_core %pci%: command 0x[0-9a-f]+ failed: fw status",
        ),
        cause="an adapter refused a command of its driver",
        remedy="install the driver that fits the adapter's firmware",
    ),
    Rule(
        "hca",
        Verdict.FAIL,
        words=("mlx5_core", "mlx4_core"),
        patterns=(
            r"mlx5_core %pci%:.*(?:timeout\. Will cause a leak|canceled on out of queue timeout|No done completion)",
            r"mlx5_core %pci%:.*(?:health compromised|unrecoverable hardware error|Fatal error \d+ detected|health recovery (?:flow aborted|failed)|mlx5_error_sw_reset|pci_err_detected)",
            r"mlx5_core %pci%:.*\bsynd 0x[0-9a-f]+: (?!FW minor|(?i:none|no error))",
            r"mlx5_core %pci%:.*Health issue observed, .*severity\([0-4]\)",
            r"mlx5_core %pci%:.*(?:Firmware over \d+ MS|Waiting for FW initialization, timeout|command interface initialization failed|(?:init_one|load_one|probe_one|mlx5_init_one).*failed with error)",
            r"mlx5_core %pci%: (?:\w+:\d+:\(pid \d+\): )?\w*(?:hca|init|load|start|pages|boot|cmdif|health|eq)\w* failed",
            r"mlx5_core %pci%: probe with driver mlx5_core failed|mlx5_core: probe of .* failed with error",
            r"mlx4_core %pci%: (?:Internal error detected|.*timed out|device is going to be reset|device was reset|Failed to initialize|.*HCA (?:FW|fatal))",
        ),
        cause="the adapter's firmware is dead or does not answer",
        remedy="reboot the node; if it comes back, replace the adapter",
    ),
    Rule(
        "hca",
        Verdict.FAIL,
        words=("igh temperature on", "igh Temp", "module event[error]"),
        patterns=(
            r"mlx5_core %pci%:.*High temperature on sensors",
            r"mlx5_core %pci%:.*Port module event.*High Temp",
            r"mlx5_core:.*Port module event.*High Temp",
        ),
        cause="an adapter or its transceiver is too hot",
        remedy="check that air reaches the adapter and no blanking panel is missing",
    ),
    Rule(
        "hca",
        Verdict.FAIL,
        words=("module event[error]",),
        patterns=(r"mlx5_core %pci%: Port module event\[error\]", r"mlx5_core:? .*Port module event\[error\]"),
        cause="an adapter refuses its cable or transceiver",
        remedy="reseat the cable or transceiver, then replace it",
    ),
    Rule(
        "hca",
        Verdict.WARN,
        words=("TX timeout", "RX timeout", "NETDEV WATCHDOG", "Tx Unit Hang", "Hardware Unit Hang", "hw csum failure"),
        patterns=(
            r"mlx5_core %pci%.*(?:[TR]X timeout|NETDEV WATCHDOG)",
            r"NETDEV WATCHDOG: .*timed out|(?:Tx|Hardware) Unit Hang|hw csum failure",
        ),
        cause="an adapter did not send for a while",
        remedy="if it comes back within the hour, reboot the node and open a case with the adapter's vendor",
    ),
    Rule(
        "nic",
        Verdict.FAIL,
        words=(
            "bnxt_en",
            "bnx2x",
            "cxgb4",
            "qede",
            "be2net",
            "tg3",
            "ice ",
            "i40e",
            "igb",
            "ixgbe",
            "iavf",
            "efa",
            "rdmap",
            "ena ",
            "ionic",
            "sfc",
        ),
        patterns=(
            r"\b(?:bnxt_en|ice|i40e|igb|ixgbe|iavf|igc|ena|ionic|tg3|bnx2x|sfc|cxgb4|qede|be2net) %pci%.*: .*(?:could not connect to FW|[Ff]irmware (?:reports adapter error|fatal|not (?:ready|responding)|recovery mode|reset aborted|is dead|hang|hung|error detected|assert)|adapter is dead|MMIO reads returned 0xffffffff)",
            r"\b(?:ice|i40e|iavf|igb|igc|ixgbe) %pci%.*: (?:(?i:(?:initial )?pf[_ ]reset (?:polling )?failed)|Rebuild failed|probe failed|ECC error detected|Adapter removed|(?i:hmc error)|.*(?:EEPROM|NVM) [Cc]hecksum [Ii]s [Nn]ot [Vv]alid|.*over ?heated)",
            r"\bbnx2x\b.*(?:MC assert|parity error|Recovery flow hasn)",
            r"\btg3 %pci%.*(?:DMA Status error|MAC error|Firmware.*(?:hang|dead))",
            r"\b(?:efa %pci%|infiniband (?:rdmap|efa_)\S*): .*(?:didn.t send any completion|Wait for completion \(polling\) timeout|Admin queue is closed|Device isn.t ready|Reset indication didn.t)",
        ),
        cause="a network adapter fails",
        remedy="update its firmware, power the node off and on; if it comes back, replace the adapter",
    ),
    # -- GPUs, without an Xid ------------------------------------------------------------------------------------------
    Rule(
        "gpu",
        Verdict.FAIL,
        words=("NVRM", "nvidia: probe", "driver nvidia"),
        patterns=(
            r"NVRM: (?:GPU )?%pci%: .*(?:RmInitAdapter|rm_init_adapter) failed",
            r"NVRM:? .*(?:RmInitAdapter|rm_init_adapter)(?:: Cannot|(?:\(\d+\))? failed)|NV_ERR_RESET_REQUIRED",
            r"^NVRM:? .*(?i:fail\w* to (?:copy|read|load|fetch|get|map) (?:the )?(?:vbios|video bios|rom)\b)",
            r"NVRM: GPU %pci%: (?:Failed to |GPU is lost|GPU does not have|GPU recovery action changed from .* to 0x[1-9])",
            r"NVRM: Device start failed for %pci%",
            r"NVRM: (?:The NVIDIA probe routine failed|None of the NVIDIA devices were initialized|No NVIDIA (?:GPU|PCI devices) found|Can.t find an IRQ|FATAL: |Fatal Error|pci_enable_device failed|failed to map registers|request_mem_region failed|This PCI I/O region assigned|BAR\d is \d+M @ 0x0 )",
            r"nvidia: probe of %pci% failed",
            r"nvidia %pci%: probe with driver nvidia failed",
        ),
        cause="the driver cannot start a GPU",
        remedy="power the node off and on; if it comes back, reseat the GPU, then replace it",
    ),
    Rule(
        "gpu",
        Verdict.FAIL,
        words=("NVRM",),
        patterns=(
            r"^NVRM:? .*(?i:requires use of the nvidia (?:open|proprietary) kernel modules|is not supported by (?:the|this) .{0,60}(?:driver|release))",
        ),
        cause="the installed driver does not serve a GPU",
        remedy="install the driver, and its open or proprietary kernel modules, that NVIDIA lists for this GPU (role nvidia_driver)",
        blame=_KERNEL,
    ),
    Rule(
        "gpu",
        Verdict.FAIL,
        words=("uvm", "NVRM"),
        patterns=(
            r"(?i)nvidia-uvm: .*global fatal error",
            r"NVRM:? .*(?:GPU is probably locked|Cannot attach gpu|bailing out of RmInitAdapter|for critical error|GSP Timeout|GSP RM heartbeat|Memory Subsystem Error detected|timeout error waiting|_threadNodeCheckTimeout|GPU crash dump has been created|GSP-CrashCat Report|[Hh]eartbeat ?[Tt]imed ?[Oo]ut|(?i:\bgsp\b.*\bcrash (?:buffer(?! size)|report|dump))|NV_ERR_GPU_IS_LOST|(?i:gpu is (?:likely |probably )?in a bad state)|(?<!== )NV_ERR_(?:ECC_ERROR|GPU_IN_FULLCHIP_RESET|GPU_NOT_FULL_POWER|RISCV_ERROR|NVLINK_\w+_ERROR|NVLINK_FABRIC_FAILURE|NVSWITCH_FABRIC_FAILURE|GPU_MEMORY_ONLINING_FAILURE))",
            r"^NVRM:? .*(?i:\bstatus:? (?:0x)?0*(?:f|62)\b)",
            r"^NVRM:? (?:GPU\d+ )?nv(?:Assert|Check)\w+: .*returned from _?(?:kgsp|kfsp|kpmu|ksec2|gpu|knvlink)\w*(?:WaitFor|Init|Boot|Bootstrap|PrepareForBoot|PowerOn|StateLoad|Train)\w*\(",
        ),
        cause="a GPU or its firmware has stopped",
        remedy="power the node off and on; if it comes back within 30 days, replace the GPU",
    ),
    Rule(
        "gpu",
        Verdict.FAIL,
        words=("NVRM",),
        patterns=(
            r"^NVRM:? (?:GPU\d+ )?knvlink\w+: .*(?i:fail\w* .*(?:train|ALI|to active)|train\w* .*fail|marked degraded)",
            r"^NVRM:? (?:GPU\d+ )?(?!nvAssert|nvCheck)\w+: .*(?i:\bback on (?:the )?bus|\w*fatal_error\w*|stuck interrupt|pmu has halted)",
            r"^NVRM:? (?:GPU\d+ )?(?!nvAssert|nvCheck|kbif|Rate limiting)\w+: %side%.*(?i:timed out|time-?out (?:waiting|while|error)|\btoo few\b.*\bfwsec\b|\bfatal\b|uncorr(?:ected)?_?err|ecc_status\w*|not back on the bus|probably locked|lockdown|unexpected wpr2|degraded mode)",
            r"^NVRM:? (?:GPU\d+ )?(?!nvAssert|nvCheck|kbif|Rate limiting)\w+: (?i:(?!.*\b(?:unload\w*|deinit\w*|free|unmap|suspend|resume|hibernat\w*|vgpu|mig)\b).*\b(?:\w*boot\w*|reset\w*|train\w*|fwsec|fsp|sec2|falcon|riscv|bootrom|wpr2|booter)\b.*\b(?:fail\w*|cannot|halt\w*)\b)",
            r"^NVRM:? (?:GPU\d+ )?(?!nvAssert|nvCheck|kbif|Rate limiting)\w+: (?i:(?!.*\b(?:unload\w*|deinit\w*|free|unmap|suspend|resume|hibernat\w*|vgpu|mig)\b).*\b(?:fail\w*|cannot|unable)\b.*\b(?:boot\w*|halt|reset|train|fwsec|falcon|gfw\w*|gsp-?rm|booter)\b)",
        ),
        cause="a GPU or its firmware does not start or has stopped",
        remedy="power the node off and on; if it comes back within 30 days, replace the GPU",
    ),
    Rule(
        "gpu",
        Verdict.FAIL,
        words=("amdgpu", "i915 ", "kfd", "habanalabs", "qaic", "xe ", "neuron", "iluvatar", "tenstorrent", "cambricon"),
        patterns=(
            r"^(?=amd|kfd|hab|qaic|xe |neu|ilu|ten|cam|\[drm:)%screen%%accelerator%.*%stopped%",
            r"^%guc%.*(?i:no response|reset failed|failed to (?:reset|load)|wedged)",
        ),
        cause="an accelerator or its firmware does not start or has stopped",
        remedy="power the node off and on; if it comes back within 30 days, replace the accelerator",
    ),
    Rule(
        "gpu",
        Verdict.FAIL,
        words=("nvidia-gpu ", "NEURON_HW_ERR="),
        patterns=(r"^nvidia-gpu %pci%: i2c timeout error f{8}$", r"\bNEURON_HW_ERR=\w"),
        cause="a GPU does not answer",
        remedy="power the node off and on; if it comes back within 30 days, replace the GPU",
    ),
    Rule(
        "node",
        Verdict.FAIL,
        words=("knvlink",),
        patterns=(r"NVRM: .*knvlink(?:UpdatePostRxDetectLinkMask|DiscoverPostRxDetLinks)_",),
        cause="an NVLink was not detected when the driver started",
        remedy="power the node off and on; if it comes back, reseat the GPU's tray, then replace it",
        blame=_NVLINK,
    ),
    Rule(
        "node",
        Verdict.FAIL,
        words=("peermem",),
        patterns=(r"nvidia[_-]peermem.*(?:invalid context|(?i:error)|[Ff]ailed)",),
        cause="nvidia-peermem cannot hand GPU memory to the adapters",
        remedy="build the NVIDIA driver again after the OFED (configure the node), then reboot it",
        blame=_KERNEL,
    ),
    Rule(
        "gpu",
        Verdict.INCONCLUSIVE,
        words=("NVRM: The NVIDIA probe routine was not called", "NVRM: Xid", "SXid", "nv_drm"),
        patterns=(
            r"\[drm:nv_drm_(?:load|probe|register|dev)\w* \[nvidia_drm\]\] \*ERROR\*",
            r"NVRM: The NVIDIA probe routine was not called",
            r"NVRM: Xid\b",
            r"nvidia-nvswitch\d*: SXid",
        ),
        cause="the driver reports a GPU or NVSwitch in a way that the tables do not know",
        remedy="look the message up with NVIDIA",
    ),
    # -- Messages of drivers about any part that is broken: the words of a class, where no rule above knows the message
    Rule(
        "nic",
        Verdict.PASS,
        words=(
            "Direct firmware load",
            "change channels",
            "DDP package",
            "flower offload",
            "Identify Descriptors",
            "VLAN filter",
            "DCB",
            "TaskAbort/Reset",
            "crash dump",
            "per TC",
            "TC map",
            "promiscuous",
            "max timeout",
        ),
        patterns=(
            r"Direct firmware load for \S+ failed with error -2\b",
            r"DDP package file|Cannot change channels|flower offload|VLAN filter, err|: (?:Query for )?DCB (?:configuration|init) failed|per TC failed|Failed configuring TC map|forcing overflow promiscuous",
            r"^megaraid_sas .*(?:TaskAbort/Reset timeout *:|firmware crash dump)|requests max timeout of",
            r"nvme nvme\d+: Identify Descriptors failed",
        ),
        cause="a driver goes without what it does not need",
    ),
    Rule(
        "hca",
        Verdict.FAIL,
        words=("mlx5", "mlx4", "hfi1", "infiniband ", "bnxt_re", "irdma", "qedr"),
        patterns=(
            r"^(?=mlx|hfi1)%side%(?:mlx[45]_(?:core|en|ib)|hfi1) %pci%\b.*: .*%dead%",
            r"^(?=mlx|hfi1)%side%(?:mlx[45]_(?:core|en|ib)|hfi1) %pci%\b.*: .*%start%",
            r"^(?=mlx|hfi1)%side%(?:mlx[45]_(?:core|en|ib)|hfi1) %pci%\b.*: .*%fails%",
            r"\b(?:mlx[45]_(?:core|en|ib)|hfi1) %pci%\b.*: .*(?:starting health recovery flow|enable hca failed|Internal error mark)",
            r"\binfiniband (?P<part>\w+): %side%.*%start%",
            r"\binfiniband (?P<part>\w+): .*(?:QPLIB: .*(?:mapping failed|not initialized)|Failed to (?:get chip|allocate QPLIB) context|re_dev allocation failure|shadow QP|Reset indication)",
            r"\binfiniband (?P<part>irdma\w*): (?:Requesting a reset|ICE OICR event notification)",
            r"^<mlx[45]_ib> \w+: Couldn.t create",
            r"^(?:mlx[45]_\w+|irdma|bnxt_re|qedr): probe of \S+ failed with error|^(?:mlx[45]_\w+|irdma|bnxt_re|qedr)[\w.]* \S+: probe with driver \S+ failed|\binfiniband \w+: ib_register_device failed",
            r"\binfiniband (?P<part>\w+): (?:\w+:\d+:\(pid \d+\): )?(?:Couldn.t (?:create|allocate|initiali[sz]e|set|register|start|recover)|[Cc]ould(?:n.t| not) (?:change|modify) (?:UMR )?QP|couldn.t recover|unable to create hardware|Fatal error|Failed to \w+ HW\b)",
        ),
        cause="the adapter's driver reports that the adapter fails",
        remedy="power the node off and on; if it comes back, update the adapter's firmware, then replace it",
    ),
    Rule(
        "nic",
        Verdict.FAIL,
        words=(":", "qed"),
        patterns=(
            r"^(?=%nic%)%side%%nic% %pci%\b.*: .*%dead%",
            r"^(?=%nic%)%side%%nic% %pci%\b.*: .*%start%",
            r"^(?=%nic%)%side%%nic% %pci%\b.*: .*%fails%",
            r"^%nic% %pci%.*: .*(?:hwrm req_type .* error|Hardware Error|UE (?:LOW|HIGH): |Error \(timeout: )",
            r"^%nic% %pci%.*recovery unsuccessful",
            r"^cxgb4 %pci%: only \d+ net devices registered",
            r"^(?=%nic%)%side%%nic% %pci%.*: .*(?i:[a-z)] time(?:d )?out)[.!]?(?: \(|$)",
            r"^(?=%nic%)%side%%nic% %pci%.*: .*\b(?:Failed|Unable|Couldn.t) .*\bHW\b",
            r"^(?:%nic%|%hba%): probe of %pci% failed with error",
            r"^(?:%nic%|%hba%) %pci%: probe with driver \S+ failed",
            r"^(?=%nic%)%side%%nic%: .*%dead%",
            r"^(?=%nic%)%side%%nic%: .*%start%",
            r"^(?=bnx2x: )bnx2x: %side%\[\w+:\d+\([^)]*\)\].*(?:%dead%|%start%|%fails%|\bCan.t load firmware)",
            r"^(?=\[qed)%side%\[qed\w*:\d+\([^)]*\)\].*(?:%dead%|%start%|%fails%)",
        ),
        cause="a network adapter's driver reports that the adapter fails",
        remedy="power the node off and on; if it comes back, update the adapter's firmware, then replace it",
    ),
    Rule(
        "drive",
        Verdict.FAIL,
        words=(
            "sas",
            "hpsa",
            "smartpqi",
            "aac",
            "AAC",
            "qla2xxx",
            "lpfc",
            "arcmsr",
            "3w-",
            "isci",
            "ahci",
            "mvsas",
            "pm80",
            "qla4xxx",
            "mpi3mr",
            "mvumi",
            "bfa",
            "fnic",
            "snic",
            "csiostor",
            "qedi",
            "qedf",
            "mptscsih",
            "mptbase",
            "mptspi",
            "stex",
            "hptiop",
        ),
        patterns=(
            r"^(?=%hba%)%side%%hba%%place%: .*%dead%",
            r"^(?=%hba%)%side%%hba%%place%: .*%start%",
            r"^(?=%hba%)%side%%hba%%place%: .*(?:%fails%|\berroneous completion\b|(?i:(?<!devloss )\btime(?:d )?-?out\b|\bresetting (?:\w+ )?(?:adapter|controller|host|ioc|firmware)\b))",
            r"^%hba%%place%: .*(?i:timed out|CISS_\w+|kill(?:ing)? adapter|attempting task abort|waiting \d+ seconds for .*reset)",
            r"^%side%qla2xxx \[%pci%\]\S* .*(?:%dead%|%start%|\*{4} Failed=)",
            r"^mpt[23]sas\S*: (?:removing handle|failure at|issue target reset)",
            r"^mpt[23]sas\S*(?: fault info from|: (?:\w+: )?(?:CoreDump completed|no suitable DMA mask|hard reset: FAILED))",
            r"^(?:aac|aacraid|AAC)\d*: (?i:(?:aacraid: )?(?:adapter (?:self-test|kernel)|host (?:adapter|bus|target|device)) .*(?:fail\w*|dead|timed out|request|panic\S*))",
            r"^megaraid_sas %pci%: .*(?:Unexpected sense: .*Sense: [34]/|FW state .* hasn.t changed|Predictive failure|(?i:medium error)|puncture)",
        ),
        cause="a storage controller or a drive behind it fails",
        remedy="look at the controller with its own tool; reseat or replace what it names",
    ),
    Rule(
        "drive",
        Verdict.FAIL,
        words=("ata", "sd ", "scsi "),
        patterns=(
            r"^(?:sd|scsi) (?P<part>[\d:]+): (?:\[\w+\] )?(?:tag#\d+ )?(?:attempting (?:task|device|target|bus|host|controller) (?:abort|reset)|(?:task abort|(?:device|target|bus|host|controller) reset):? FAILED)",
            r"\b(?P<part>ata\d+)(?:\.\d\d)?: (?:(?:soft|hard)reset failed|SRST failed|reset failed|exception Emask|illegal \w+ transition|failed to (?:read SCR|recover|clear SError)|link offline, giving up|error=0x[0-9a-f]*[1-9a-f]|(?:retrying )?(?:FLUSH|VERIFY) (?:failed|0x)|prereset failed|Drive reports diagnostics failure|failed to (?:start port|write SCR|re-read IDENTIFY))",
            r"^(?:sd|scsi) (?P<part>[\d:]+): .*(?:not responding|(?i:offlin(?:e|ed|ing)\b)|(?i:access timeout))",
        ),
        cause="a drive or its cable fails",
        remedy="reseat the drive and its cable or backplane, then replace the drive",
    ),
    Rule(
        "nvme",
        Verdict.FAIL,
        words=("nvme nvme", "nvme "),
        patterns=(
            r"nvme (?P<part>nvme\d+): (?:Reading (?:CRTO|VS|CAP) failed|.*device inaccessible|(?:f|F)ailed to (?:set queue count|initiali[sz]e|reset|enable|reinit\w*)|reset(?:ting)?[: ].*(?:fail\w*|internal error)|keep-alive failed|.*persistent internal error)",
            r"nvme (?P<part>nvme\d+): %side%.*%dead%",
        ),
        cause="a drive does not answer",
        remedy="update its firmware, reseat it, then replace it",
    ),
    Rule(
        "drive",
        Verdict.FAIL,
        words=("md/raid", "md: ", "bcache"),
        patterns=(
            r"md/raid\S*: .*(?:Cannot continue operation|cannot start dirty|data corruption possible|Disk failure on (?!loop|ram)|unrecoverable)",
            r"md/raid0?\w*: Disk failure on (?!loop|ram)(?P<part>\w+?)(?:p?\d+)?\b",
            r"^md/raid.*: Operation continuing on \d+ devices|^md: pers->run\(\) failed",
            r"^md: .*(?:marking faulty|fatal superblock|invalid superblock checksum|kicking)",
            r"^bcache: .*(?:journal entries .* missing|disabling caching|unrecoverable|device offline|IO error|too many IO errors)",
        ),
        cause="a RAID has lost a drive",
        remedy="read mdadm --detail of the RAID, replace the drive that it names",
    ),
    Rule(
        "node",
        Verdict.FAIL,
        words=("JBD2", "EXT4-fs", "XFS (", "BTRFS", "emergency read"),
        patterns=(
            r"^(?!.*\(loop).*\bemergency read[ -]only\b",
            r"^JBD2: (?:.*I/?O error|.*recovery failed|journal (?:checksum|commit) |.*(?:corrupt|[Cc]hecksum))",
            r"^EXT[234]-fs(?: error| warning)? \((?:device )?(?!loop)\S+\): .*(?:unable to read|journal bmap failed|err(?:or)? -(?:5|30|117)\b|(?i:corrupt\w*)|error loading journal|.*(?i:i/o error))",
            r"^XFS \((?!loop)\S+\): .*(?i:corrupt\w*|crc mismatch|i/o error|bad inode|page discard on|assertion failed|failed to recover|validate failed|magic|inconsisten\w*)",
            r"^BTRFS (?:error|warning|critical)? ?\(device (?!loop).*(?:lost page write|IO error|i/o error|failed to read (?:root|tree root|chunk root|log tree)|devid \d+ uuid \S+ is missing)",
        ),
        cause="a file system is damaged, or the drive below it fails",
        remedy="look for errors of the drive below it; install the node again",
        blame=_FILES,
    ),
    Rule(
        "node",
        Verdict.FAIL,
        words=("mce: ", "MCE: ", "UE memory", "poison", "hardware memory", "Bad mode in Error"),
        patterns=(
            r"^(?:mce|MCE): .*(?:Memory error not recovered|not responding to MCE|[Uu]ncorrected|hardware memory corruption|(?i:fatal machine check))",
            r"UE memory (?:read|write|scrubbing) error|hardware memory (?:error|corruption)|accessed poison|^Bad mode in Error handler",
        ),
        cause="the processor or its memory has an uncorrectable error",
        remedy="find the part in the BMC's event log and replace it",
    ),
    Rule(
        "pci",
        Verdict.FAIL,
        words=("pciehp", "pcieport", "pci ", " 0000:", "cxl"),
        patterns=(
            r"^(?:pcieport|pciehp) %pci%\b.*: .*(?:Controller initialization failed|Link training error|Failed to check link|Failed to retrain|bus reset failed|reset failed)",
            r"^(?:pcieport|pciehp) %pci%\b.*: (?:pciehp: )?Slot\([^)]*\): Surprise [Dd]own",
            r"^\S+ %pci%: .*\b(?:frozen|failure) state error detected",
            r"^%side%cxl\w* %pci%: .*(?:(?i:timeout|timed out|fail\w*|fatal|poison)|not active)",
            r"^\S+ %pci%: .*(?:unknown header type 7f|slot reset failed|bus reset failed|state error detected, slot reset failed|PCI channel offline|link not ready .* after \d+ ms|is (?:in)?accessible from D3cold)",
        ),
        cause="a PCIe link went down, or the device behind it does not answer",
        remedy="power the node off and on; if it comes back, reseat the device below this port and its cable or riser",
    ),
    Rule(
        "node",
        Verdict.FAIL,
        words=(
            "CSD lock",
            "Corrupted page table",
            "pagealloc: ",
            "is stuck in kernel",
            "dead state",
            "is not responding",
        ),
        patterns=(
            r"non-responsive CSD lock|: Corrupted page table at|^pagealloc: memory corruption",
            r"^CPU\d+: is stuck in kernel|^CPU\d+ failed to report dead state|smpboot: CPU \d+ is not responding",
        ),
        cause="a processor or its memory does not work",
        remedy="power the node off and on; if it comes back, test memory and processors, and replace what fails",
    ),
    # -- Shared storage ------------------------------------------------------------------------------------------------
    Rule(
        "node",
        Verdict.WARN,
        words=("nfs: server", "LustreError", "Lustre: ", "LNetError"),
        patterns=(
            r"nfs: server \S+ not responding",
            r"LustreError: |LNetError|Lustre: .*Connection to .* was lost",
            r"Lustre: .*ptlrpc_expire_one_request.{0,20}Request sent has (?:failed due to network error|timed out)",
        ),
        cause="shared storage did not answer",
        remedy="if several nodes log this in the same minute, check the storage; else check this node's network",
        blame=_FILES,
    ),
)


@functools.cache
def shipped_rules() -> KernelLogRules:
    """Return the rules, with the names in their patterns replaced."""
    return KernelLogRules(
        tuple(map(_prepared, RULES)),
        tuple(map(_with_names, SUSPICIOUS)),
        tuple(map(_with_names, NEEDED)),
    )


_NAME = re.compile(r"%(\w+)%")
_LOOKAHEADS = re.compile(r"\^(\(\?=[^()]*\))?(%side%)?")
"""What patterns begin with that looks ahead only: pieces of their own (`Rule.pieces`)."""


def _prepared(rule: Rule) -> Rule:
    """Return the rule with the names in its patterns replaced, and with their pieces."""
    pieces = tuple(tuple(map(_with_names, _pieces(pattern))) for pattern in rule.patterns)
    return replace(rule, patterns=tuple(map(_with_names, rule.patterns)), pieces=pieces)


def _pieces(pattern: str) -> tuple[str, ...]:
    begin = _LOOKAHEADS.match(pattern)
    if begin is None:
        return (pattern,)
    return tuple(f"^{piece}" for piece in (*filter(None, begin.groups()), pattern[begin.end() :]))


def _with_names(pattern: str) -> str:
    """Return the pattern with each name replaced; a name may contain names."""
    names = _names()
    while _NAME.search(pattern):
        pattern = _NAME.sub(lambda name: names[name[1]], pattern)
    return pattern


@functools.cache
def _names() -> Mapping[str, str]:
    """Return `NAMES` and `options`: the words of `data/kernel_options.tsv`."""
    lines = text_of("data/kernel_options.tsv").splitlines()
    words = [line.split("\t")[0] for line in lines if line and not line.startswith("#")]
    return NAMES | {"options": "|".join(words)}
