#!/bin/sh
# MAAS's look at a machine, in the deployer's shell: identity by SMBIOS, ports, and the whole disks that hang on PCI.
# A line each; a disk's fields are parted by tabs: path, serial, WWN, bytes, model, `readable` or nothing. Changes nothing.
# COMMISSION_ROOT stands before /sys, /proc and /dev, so that it can be tried on a made-up machine.
set -u
ROOT=${COMMISSION_ROOT:-}
SYS=$ROOT/sys

words() {
    [ -r "$1" ] && tr -d '\000' < "$1" | tr -cd ' -~' | sed -e 's/^ *//' -e 's/ *$//'
}

readable() {
    dd if="$1" of=/dev/null bs=4096 count=16 2> /dev/null && printf readable
}

disk() {
    name=${1##*/}
    printf 'disk=/dev/%s\t%s\t%s\t' "$name" "$(words "$1/device/serial")" "$(words "$1/wwid")"
    printf '%s\t%s\t%s\n' "$(($(words "$1/size") * 512))" "$(words "$1/device/model")" "$(readable "$ROOT/dev/$name")"
}

for pair in serial:product_serial uuid:product_uuid manufacturer:sys_vendor product:product_name bios:bios_version; do
    printf '%s=%s\n' "${pair%%:*}" "$(words "$SYS/class/dmi/id/${pair#*:}")"
done
printf 'cpus=%s\n' "$(grep -c '^processor' "$ROOT/proc/cpuinfo")"
printf 'memory=%s\n' "$(sed -n 's/^MemTotal: *\([0-9]*\) kB/\1/p' "$ROOT/proc/meminfo")"
for port in "$SYS"/class/net/*; do
    [ -e "$port/device" ] && printf 'mac=%s\n' "$(words "$port/address")"
done
for block in "$SYS"/block/nvme* "$SYS"/block/sd*; do
    [ -e "$block/device" ] || continue
    case $(words "$block/hidden")/$(words "$block/size") in
        1/* | */0 | */) ;;
        *) disk "$block" ;;
    esac
done
