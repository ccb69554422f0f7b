#!/bin/sh
# Prints on standard output what this machine is: a line each of serial, uuid, manufacturer, product, mac, disk and clock.
# It reads sysfs and the disks and changes nothing. Runs under busybox ash, debian-installer's shell and dash.
# PROBE_ROOT stands before /sys and /dev, so that it can be tried on a made-up machine.
set -u
LC_ALL=C
export LC_ALL

ROOT=${PROBE_ROOT:-}
SYS=$ROOT/sys
MEBIBYTE=1048576
TAB=$(printf '\t')

# One line without what would break a report: tabs and line ends become blanks, the ends are trimmed.
plain() {
    tr -d '\000' | tr '\t\r\n' '   ' | tr -cd ' -~' | sed -e 's/^ *//' -e 's/ *$//'
}

attribute() {
    [ -r "$1" ] && plain 2>/dev/null < "$1"
}

first_attribute() {
    for candidate in "$@"; do
        words=$(attribute "$candidate")
        if [ -n "$words" ]; then
            printf '%s' "$words"
            return
        fi
    done
}

# The unit serial number page of SCSI and SATA drives: four bytes of header, then the serial.
serial_page() {
    [ -r "$1" ] && dd if="$1" bs=1 skip=4 2>/dev/null | plain
}

board() {
    printf '%s=%s\n' "$1" "$(attribute "$SYS/class/dmi/id/$2")"
}

macs() {
    for port in "$SYS"/class/net/*; do
        [ -e "$port/device" ] || continue
        [ "$(attribute "$port/type")" = 1 ] || continue
        mac=$(permanent_mac "$port")
        [ -n "$mac" ] && [ "$mac" != 00:00:00:00:00:00 ] && printf 'mac=%s\n' "$mac"
    done
}

# A member of a bond shows the bond's address; the kernel keeps its own one, too.
permanent_mac() {
    first_attribute "$1/bonding_slave/perm_hwaddr" "$1/address"
}

# Whole disks that an OS could be put on: no partitions, memory, loops, CD drives, card boot areas, hidden NVMe paths,
# and nothing that hangs on USB (sticks, and the BMC's virtual media).
is_disk() {
    case ${1##*/} in
        ram* | loop* | sr* | fd* | dm-* | md* | zram* | nbd* | drbd* | rbd* | mmcblk*boot* | mmcblk*rpmb) return 1 ;;
    esac
    [ -e "$1/device" ] && [ ! -e "$1/partition" ] || return 1
    [ "$(attribute "$1/hidden")" != 1 ] && [ "$(attribute "$1/removable")" != 1 ] || return 1
    case $(readlink -f "$1") in
        */usb[0-9]*) return 1 ;;
    esac
    [ "$(sectors "$1")" -gt 0 ]
}

# Of 512 bytes, whatever the disk's own sectors are; nothing readable counts as none.
sectors() {
    count=$(attribute "$1/size")
    printf '%s' "${count:-0}"
}

disk() {
    name=${1##*/}
    bytes=$(($(sectors "$1") * 512))
    serial=$(first_attribute "$1/device/serial" "$1/serial")
    [ -n "$serial" ] || serial=$(serial_page "$1/device/vpd_pg80")
    wwn=$(first_attribute "$1/wwid" "$1/device/wwid")
    model=$(first_attribute "$1/device/model" "$1/device/name")
    printf 'disk=%s' "/dev/$name"
    printf '%s' "$TAB$serial$TAB$wwn$TAB$bytes$TAB$model$TAB"
    fingerprint "$ROOT/dev/$name" "$bytes"
    printf '\n'
}

# SHA-256 over the first and the last MiB and 14 pieces between; over all of a disk of at most 32 MiB.
# Nothing where the disk cannot be read through: descriptor 4 carries that past the sum.
fingerprint() {
    [ -r "$1" ] || return
    digest=$({ { pieces "$1" "$2" 2> /dev/null || echo unread >&4; } | sha256sum; } 4>&1)
    case $digest in
        *unread*) ;;
        *) printf '%s' "${digest%% *}" ;;
    esac
}

pieces() {
    if [ "$2" -le $((32 * MEBIBYTE)) ]; then
        cat "$1"
        return
    fi
    dd if="$1" bs=$MEBIBYTE count=1 &&
        dd if="$1" bs=512 skip=$((($2 - MEBIBYTE) / 512)) count=2048 || return
    piece=1
    while [ $piece -le 14 ]; do
        dd if="$1" bs=4096 skip=$((piece * ($2 / 15) / 4096)) count=16 || return
        piece=$((piece + 1))
    done
}

board serial product_serial
board uuid product_uuid
board manufacturer sys_vendor
board product product_name
macs
for block in "$SYS"/class/block/*; do
    is_disk "$block" && disk "$block"
done
printf 'clock=%s\n' "$(date +%s)"
