# What debian-installer runs: `begin` before it fetches packages, `accept` before it looks for partitions, `finish` with the
# new system at /target. Each has a folder of its own: `begin` leaves a process behind that reports progress.
: "${SYSLOG:=/var/log/syslog}" "${TARGET:=/target}" "${IN_TARGET:=in-target}"
: "${QUIET:=450}"
WORK=$WORK/$1
mkdir -p "$WORK"

stop() {
    echo "clusterctl: $1" >&2
    tail -c 4000000 "$SYSLOG" > "$WORK/log"
    post log "$WORK/log"
    send failed "$1"
    "$POWER_OFF"
    exit 1
}

# The menu's steps are the progress. One that failed, or an unexpected question, would wait for an answer at the
# console. An installer that waits writes nothing into the log, QUIET looks long.
watch() {
    seen=0
    quiet=0
    while :; do
        tail -n "+$((seen + 1))" "$SYSLOG" > "$WORK/new"
        seen=$((seen + $(wc -l < "$WORK/new")))
        sed -n "s/.*main-menu.*Menu item '\(.*\)' selected.*/\1/p" "$WORK/new" > "$WORK/items"
        while read -r item; do
            send progress "debian-installer: $item"
        done < "$WORK/items"
        failure=$(sed -n "s/.*main-menu.*\(Menu item '.*' failed\).*/\1/p" "$WORK/new" | head -n 1)
        [ -z "$failure" ] || stop "debian-installer: $failure"
        quiet=$((quiet + 1))
        [ ! -s "$WORK/new" ] || quiet=0
        [ "$quiet" -lt "$QUIET" ] || stop "debian-installer waits, its last message: $(tail -n 1 "$SYSLOG" | cut -c 1-250)"
        sleep "$PAUSE"
    done
}

# Nothing is left of what the drive held, so that nothing of it is assembled: a volume group may reach into data drives.
forget_partitions() {
    size=$(awk -F "$TAB" -v "disk=disk=$root" '$1 == disk { print $4 }' "$WORK/report")
    dd if=/dev/zero of="$root" bs=1048576 count=1 conv=notrunc 2> /dev/null
    dd if=/dev/zero of="$root" bs=1048576 count=2 seek=$((size / 1048576 - 1)) conv=notrunc 2> /dev/null
    blockdev --rereadpt "$root" 2> /dev/null
    sync
}

# NOW is when the answers were written, some minutes ago: a clock that is right within a day of it may well be the better
# one, and the service sends the time to the second before anything is installed.
check_clock() {
    ahead=$(($(date +%s) - NOW))
    if [ "$ahead" -lt 0 ] || [ "$ahead" -gt 86400 ]; then
        "$SET_CLOCK" "$NOW" || send progress "cannot set the clock"
    fi
}

case $1 in
    begin)
        check_clock
        (exec < /dev/null > /dev/null 2>&1 && watch) &
        ;;
    accept)
        accept
        forget_partitions
        debconf-set partman-auto/disk "$root" || stop "cannot name the root disk to the installer"
        debconf-set grub-installer/bootdev "$root" || stop "cannot name the boot device to the installer"
        ;;
    finish)
        lay_files
        post_host_key
        post_done
        ;;
esac
