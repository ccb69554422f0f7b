#!/bin/sh
# Every drive that the answer names, overwritten with zeros and read back in samples. Only the machine that has reported
# exactly these drives gets such an answer.

# DRIVES is another folder than /dev where this is tried on files.
BLOCK=4194304
MEBIBYTE=1048576

# Whether the answer orders an erase; it then names no disk for an OS.
erase_ordered() {
    grep -q '^erase=' "$RUN/install"
}

drives_to_erase() {
    sed -n 's/^erase=//p' "$RUN/install"
}

# Take only an answer that names all drives of our report and nothing else.
check_erase() {
    [ "$(drives_to_erase | sort)" = "$(sed -n "s/^disk=\([^$(printf '\t')]*\).*/\1/p" "$RUN/report" | sort)" ] ||
        fail "the answer does not name exactly the drives of this machine: nothing was erased"
    for drive in $(drives_to_erase); do
        echo "$drive" | grep -Eqx "${DRIVES:-/dev}/[a-z0-9]+" || fail "the answer names $drive, which is no disk"
        [ -b "$drive" ] || [ -n "${DRIVES:-}" ] || fail "$drive is no disk here"
        grep -q "^$drive" /proc/mounts && fail "$drive is in use"
    done
}

# All drives at the same time; a line every five minutes shows the controller that the machine is at work.
erase_drives() {
    check_erase
    total=$(drives_to_erase | wc -l)
    progress "erases $total drives: one pass of zeros"
    for drive in $(drives_to_erase); do
        erase_one "$drive" > "$RUN/erase-${drive##*/}" 2>&1 &
    done
    waited=0
    while [ "$(ended_drives)" -lt "$total" ]; do
        waited=$((waited + 1))
        [ $((waited % 60)) -ne 0 ] || progress "erasing: $(ended_drives) of $total drives have ended"
        sleep "$PAUSE"
    done
    wait
    bad=
    for drive in $(drives_to_erase); do
        result=$(tail -n 1 "$RUN/erase-${drive##*/}")
        message "$drive $(identity "$drive"): ${result#erase-ended }"
        ask_text progress "$drive $(identity "$drive"): ${result#erase-ended }" ||
            fail "the controller did not take the result of $drive"
        case $result in
            'erase-ended erased'*) ;;
            *) bad="$bad $drive" ;;
        esac
    done
    [ -z "$bad" ] || fail "not erased:$bad"
}

ended_drives() {
    cat "$RUN"/erase-* 2> /dev/null | grep -c '^erase-ended'
}

# Serial, model and size, as this machine has reported them.
identity() {
    grep "^disk=$1$(printf '\t')" "$RUN/report" | awk -F '\t' '{ print "serial " $2 " (" $5 ", " $4 " bytes)" }'
}

# The last line is the result. A drive keeps spare blocks that no write reaches: the line reports that.
erase_one() {
    bytes=$(bytes_of "$1")
    if ! overwrite "$1" "$bytes"; then
        echo "erase-ended NOT erased: a write failed"
    elif left=$(samples "$1" "$bytes" | tr -d '\000' | wc -c) && [ "$left" = 0 ] && [ -e "$RUN/read-${1##*/}" ]; then
        echo "erase-ended erased by one pass of zeros, read back in 16 places; spare blocks are not reached (no secure erase)"
    else
        echo "erase-ended NOT erased: it does not read back as zeros"
    fi
}

bytes_of() {
    sed -n "s|^disk=$1$(printf '\t')||p" "$RUN/report" | cut -f 3
}

overwrite() {
    blocks=$(($2 / BLOCK))
    rest=$(($2 - blocks * BLOCK))
    if [ "$blocks" -gt 0 ]; then
        dd if=/dev/zero of="$1" bs=$BLOCK count=$blocks conv=notrunc,fsync || return 1
    fi
    if [ "$rest" -gt 0 ]; then
        dd if=/dev/zero of="$1" bs=512 seek=$((blocks * BLOCK / 512)) count=$((rest / 512)) conv=notrunc,fsync || return 1
    fi
    # What is read afterwards comes from the drive, not from memory.
    [ -n "${DRIVES:-}" ] || echo 3 > /proc/sys/vm/drop_caches
}

# The first and the last MiB, and 14 pieces between; a file shows that all could be read.
samples() {
    mark=$RUN/read-${1##*/}
    rm -f "$mark"
    first=$MEBIBYTE
    [ "$2" -ge $MEBIBYTE ] || first=$2
    dd if="$1" bs=512 count=$((first / 512)) &&
        dd if="$1" bs=512 skip=$((($2 - first) / 512)) count=$((first / 512)) || return
    piece=1
    while [ $piece -le 14 ]; do
        dd if="$1" bs=512 skip=$((piece * ($2 / 15) / 512)) count=128 || return
        piece=$((piece + 1))
    done
    : > "$mark"
}
