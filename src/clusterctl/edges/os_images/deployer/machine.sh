#!/bin/sh
# The machine itself: drivers, network, disks, clock, and the report of what it is.

# Every device says what driver it wants; what a driver brings to light may want another one.
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

# The port that the firmware booted from, by its address in BOOTIF (`01-aa-bb-…`).
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

# A switch may keep the port closed for most of a minute (spanning tree): asked for five minutes.
bring_up_network() {
    [ -n "$1" ] || fail "the kernel was started without BOOTIF: which port booted is not known"
    tries=0
    until interface=$(port_of "$1"); do
        tries=$((tries + 1))
        [ "$tries" -lt 60 ] || fail "no driver of this deployer found the port that booted ($1)"
        sleep 1
    done
    ip link set lo up
    ip link set "$interface" up
    tries=0
    until udhcpc -i "$interface" -f -n -q -t 5 -T 2 -s /deploy/udhcpc.sh > "$RUN/dhcp.log" 2>&1; do
        tries=$((tries + 1))
        [ "$tries" -lt 30 ] || fail "no address by DHCP on $interface ($1) in five minutes"
        say "no address on $interface yet"
    done
    address_known=yes
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

# Tell what the machine is; the answer says which disk to write, with what. Nothing is written before it.
report() {
    ask probe.sh || fail "the probe could not be fetched: $(refusal)"
    mv "$ANSWER" "$RUN/probe.sh"
    sh "$RUN/probe.sh" > "$RUN/report" || fail "the probe failed"
    cat "$RUN/report"
    ask report --data-binary "@$RUN/report" --header 'Content-Type: text/plain; charset=utf-8'
    case $? in
        0) ;;
        1)
            say "REFUSED: $(refusal)"
            say "nothing was written to this machine"
            exit 1
            ;;
        *) fail "nobody took the report" ;;
    esac
    mv "$ANSWER" "$RUN/orders"
    root=$(order root)
    image=$(order image)
    sha256=$(order sha256)
    size=$(order size)
    time=$(order time)
    hostname=$(order hostname)
    check_orders
}

order() {
    sed -n "s/^$1=//p" "$RUN/orders" | tail -n 1
}

# Take only what is whole and fits what we told ourselves.
check_orders() {
    echo "$root" | grep -Eqx '/dev/[a-z0-9]+' || fail "told to write no disk"
    grep -q "^disk=$root$(printf '\t')" "$RUN/report" || fail "told to write $root, which this machine has not reported"
    [ -b "$root" ] || fail "$root is no disk here"
    grep -q "^$root" /proc/mounts && fail "$root is in use"
    case $image in
        /files/* | /t/*/files/*) ;;
        *) fail "told to write an image from somewhere else: $image" ;;
    esac
    case $size in
        '' | *[!0-9]*) fail "told no size of the image" ;;
    esac
    echo "$sha256" | grep -Eqx '[0-9a-f]{64}' || fail "told no checksum of the image"
    echo "$hostname" | grep -Eqx '[A-Za-z0-9]([A-Za-z0-9.-]{0,62})' || fail "told no host name"
}

# Before anything that needs it; the hardware's clock too, so that the OS starts with the right time.
set_clock() {
    case $time in
        '' | *[!0-9]*) fail "told no time" ;;
    esac
    date -u -s "@$time" > /dev/null || fail "the clock could not be set"
    hwclock -u -w 2> /dev/null || say "the hardware's clock could not be set"
}
