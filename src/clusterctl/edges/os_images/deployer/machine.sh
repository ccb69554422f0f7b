#!/bin/sh
# The machine itself: drivers, network, disks, clock, and the report of what it is.

# Every device names the driver that it wants; a driver may find devices that want another one.
load_drivers() {
    known=
    for _ in 1 2 3 4 5; do
        wanted=$(find /sys/devices -name modalias -exec cat {} + 2> /dev/null | sort -u)
        [ "$wanted" = "$known" ] && break
        known=$wanted
        echo "$wanted" | xargs -r /usr/sbin/modprobe -a -b -q 2> /dev/null
    done
    /usr/sbin/modprobe -a -q nvme sd_mod ext4 vfat nls_cp437 nls_ascii nls_iso8859-1 nls_utf8 crc32c_generic
}

# The port with this address (`01-aa-bb-…`).
port_of() {
    mac=$(echo "${1#01-}" | tr '[:upper:]-' '[:lower:]:')
    for port in /sys/class/net/*; do
        if [ -e "$port/device" ] && [ "$(cat "$port/address")" = "$mac" ]; then
            basename "$port"
            return
        fi
    done
    return 1
}

# The ports of BOOTIF that have drivers. After a boot over HTTPS it names all of the machine's: firmware does not report which
# one booted.
boot_ports() {
    echo "$1" | tr ',' '\n' | while read -r address; do
        port_of "$address"
    done
}

# A switch may keep the port closed for most of a minute (spanning tree): asked for five minutes.
bring_up_network() {
    [ -n "$1" ] || fail "the kernel was started without BOOTIF: which port booted is not known"
    tries=0
    until [ -n "$(boot_ports "$1")" ]; do
        tries=$((tries + 1))
        [ "$tries" -lt 60 ] || fail "no driver of this deployer found the port that booted ($1)"
        sleep 1
    done
    ip link set lo up
    for interface in $(boot_ports "$1"); do
        ip link set "$interface" up
    done
    tries=0
    until ask_for_address "$1"; do
        tries=$((tries + 1))
        [ "$tries" -lt 30 ] || fail "no address by DHCP on $interface ($1) in five minutes"
        message "no address on $interface yet"
    done
    address_known=yes
}

# On each port, until one has an address: `interface`.
ask_for_address() {
    for interface in $(boot_ports "$1"); do
        udhcpc -i "$interface" -f -n -q -t 5 -T 2 -s /deploy/udhcpc.sh > "$RUN/dhcp.log" 2>&1 && return
    done
    return 1
}

own_address() {
    ip -4 -o addr show dev "$interface" | awk '{ print $4; exit }'
}

# The boot loader that is laid on the disk is one for UEFI.
require_uefi() {
    [ -d /sys/firmware/efi ] || fail "the machine booted in legacy BIOS mode: set its boot mode to UEFI"
}

# Controllers find their disks one by one: wait until no new one has come for two seconds, at most a minute.
settle_disks() {
    tries=0
    calm=0
    seen=
    while [ "$calm" -lt 2 ] && [ "$tries" -lt 60 ]; do
        now=$(ls /sys/class/block)
        if [ -n "$now" ] && [ "$now" = "$seen" ]; then
            calm=$((calm + 1))
        else
            calm=0
        fi
        seen=$now
        tries=$((tries + 1))
        sleep 1
    done
}

# Report the machine; the answer names the disk to write, and its content. Nothing is written before it.
report() {
    ask probe.sh || fail "the probe could not be fetched: $(refusal)"
    mv "$ANSWER" "$RUN/probe.sh"
    sh "$RUN/probe.sh" > "$RUN/report" || fail "the probe failed"
    echo "booted=$(cat "/sys/class/net/$interface/address")" >> "$RUN/report"
    cat "$RUN/report"
    ask report --data-binary "@$RUN/report" --header 'Content-Type: text/plain; charset=utf-8'
    case $? in
        0) ;;
        1)
            message "REFUSED: $(refusal)"
            message "nothing was written to this machine"
            exit 1
            ;;
        *) fail "the controller did not take the report" ;;
    esac
    mv "$ANSWER" "$RUN/install"
    time=$(field time)
    if erase_ordered; then
        return
    fi
    root=$(field root)
    image=$(field image)
    sha256=$(field sha256)
    size=$(field size)
    hostname=$(field hostname)
    check_answer
}

field() {
    sed -n "s/^$1=//p" "$RUN/install" | tail -n 1
}

# Take only an answer that is whole and matches our report.
check_answer() {
    echo "$root" | grep -Eqx '/dev/[a-z0-9]+' || fail "the answer names no disk to write"
    grep -q "^disk=$root$(printf '\t')" "$RUN/report" || fail "the answer names $root, which this machine has not reported"
    [ -b "$root" ] || fail "$root is no disk here"
    grep -q "^$root" /proc/mounts && fail "$root is in use"
    case $image in
        /files/* | /t/*/files/*) ;;
        *) fail "the answer names an image from another server: $image" ;;
    esac
    case $size in
        '' | *[!0-9]*) fail "the answer has no size of the image" ;;
    esac
    echo "$sha256" | grep -Eqx '[0-9a-f]{64}' || fail "the answer has no checksum of the image"
    echo "$hostname" | grep -Eqx '[A-Za-z0-9]([A-Za-z0-9.-]{0,62})' || fail "the answer has no host name"
}

# Before anything that needs it; the hardware's clock too, so that the OS starts with the right time.
set_clock() {
    case $time in
        '' | *[!0-9]*) fail "the answer has no time" ;;
    esac
    date -u -s "@$time" > /dev/null || fail "the clock could not be set"
    hwclock -u -w 2> /dev/null || message "the hardware's clock could not be set"
}
