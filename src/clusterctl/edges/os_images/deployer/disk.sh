#!/bin/sh
# The one disk that may be written: partitions, file systems, the image. Tools that are not busybox's are called by
# their path, since busybox's shell takes its own tool of a name first; busybox's tee is five times slower in emulation.

TARGET=/target
LINUX_ROOT=4F68BCE3-E8CD-4DB1-96E7-FBCAF984B709 # root of x86-64, as the Discoverable Partitions Specification has it

# A boot partition of 512 MiB, the rest is the root file system. Only signatures on this disk are wiped.
partition() {
    for part in "$1"?*; do
        [ -b "$part" ] && /usr/sbin/wipefs --all --quiet "$part"
    done
    /usr/sbin/wipefs --all --quiet "$1" || fail "$1 could not be wiped"
    printf 'label: gpt\nsize=512MiB, type=uefi, name=esp\ntype=%s, name=root\n' "$LINUX_ROOT" |
        /usr/sbin/sfdisk --quiet --wipe always --wipe-partitions always "$1" || fail "$1 could not be partitioned"
    case $1 in
        *[0-9]) esp=${1}p1 filesystem=${1}p2 ;;
        *) esp=${1}1 filesystem=${1}2 ;;
    esac
    tries=0
    until [ -b "$esp" ] && [ -b "$filesystem" ]; do
        tries=$((tries + 1))
        [ "$tries" -lt 30 ] || fail "the kernel does not show the new partitions of $1"
        sleep 1
    done
}

mount_target() {
    root_uuid=$(cat /proc/sys/kernel/random/uuid)
    esp_id=$(head -c 4 /dev/urandom | od -An -tx1 | tr -d ' \n' | tr '[:lower:]' '[:upper:]')
    make_filesystem vfat -F 32 -i "$esp_id" -n ESP "$esp"
    make_filesystem ext4 -q -F -L root -U "$root_uuid" "$filesystem"
    mkdir -p "$TARGET"
    mount -t ext4 -o noatime "$filesystem" "$TARGET" || fail "the new root file system could not be mounted"
}

# make_filesystem KIND OPTION… PARTITION; the output of its tool is shown only where it failed.
make_filesystem() {
    kind=$1
    shift
    "/usr/sbin/mkfs.$kind" "$@" > "$RUN/mkfs.log" 2>&1 && return
    cat "$RUN/mkfs.log"
    fail "no file system $kind could be made: $*"
}

# Where it fails the rest is read all the same, so that the checksum shows whether the image or the disk is wrong.
unpack() {
    {
        /usr/bin/zstd --decompress --stdout --quiet |
            /usr/bin/tar --extract --directory "$TARGET" --numeric-owner --xattrs --xattrs-include='*'
        echo $? > "$RUN/unpacked"
    } 2> "$RUN/unpack.log"
    cat > /dev/null
    cat "$RUN/unpack.log"
}

# One pass: the bytes go through the checksum on their way to the disk.
write_image() {
    mkfifo "$RUN/sum.pipe"
    /usr/bin/sha256sum < "$RUN/sum.pipe" > "$RUN/sum" &
    { stream 3>&1 > /dev/null; } | /usr/bin/tee "$RUN/sum.pipe" | unpack
    wait
    read -r sum rest < "$RUN/sum"
    [ "$sum" = "$sha256" ] || fail "the image arrived with the checksum $sum, not $sha256: $root is not bootable"
    [ "$(cat "$RUN/unpacked")" -eq 0 ] ||
        fail "the image could not be unpacked: $root is not bootable ($(head -n 1 "$RUN/unpack.log"))"
}
