#!/bin/sh
# The written system made this machine's own, and able to boot.

# The host's own files, unpacked by the system's tar within it, so that no link leads out. No key of the image stays.
lay_overlay() {
    echo "$hostname" > "$TARGET/etc/hostname"
    rm -f "$TARGET"/etc/ssh/ssh_host_*_key "$TARGET"/etc/ssh/ssh_host_*_key.pub
    ask overlay.tar || fail "the host's own files could not be fetched: $(refusal)"
    chroot "$TARGET" tar --extract --numeric-owner --no-overwrite-dir < "$ANSWER" ||
        fail "the host's own files could not be unpacked"
}

# Accounts that the overlay names, a fresh machine id, and a fresh host key where the overlay brought none.
give_identity() {
    mount --bind /dev "$TARGET/dev"
    chroot "$TARGET" systemd-sysusers || fail "the host's accounts could not be made"
    tr -d - < /proc/sys/kernel/random/uuid > "$TARGET/etc/machine-id"
    [ -s "$TARGET/etc/ssh/ssh_host_ed25519_key" ] ||
        chroot "$TARGET" ssh-keygen -q -t ed25519 -N '' -C "root@$hostname" -f /etc/ssh/ssh_host_ed25519_key ||
        fail "no host key could be made"
    head -c 512 /dev/urandom > "$TARGET/var/lib/systemd/random-seed"
    chmod 600 "$TARGET/var/lib/systemd/random-seed"
    umount "$TARGET/dev"
}

# Laid out as kernel-install(8) does it, so that a later kernel of the distribution joins this one.
prepare_boot() {
    printf 'UUID=%s / ext4 errors=remount-ro 0 1\nUUID=%s /boot/efi vfat umask=0077,nofail 0 2\n' \
        "$root_uuid" "$(echo "$esp_id" | sed 's/^..../&-/')" > "$TARGET/etc/fstab"
    mkdir -p "$TARGET/boot/efi" "$TARGET/etc/kernel"
    mount -t vfat "$esp" "$TARGET/boot/efi" || fail "the boot partition could not be mounted"
    machine_id=$(cat "$TARGET/etc/machine-id")
    options="root=UUID=$root_uuid ro $(cat "$TARGET/etc/kernel/cmdline" 2> /dev/null)"
    echo "$options" > "$TARGET/etc/kernel/cmdline"
    echo "$machine_id" > "$TARGET/etc/kernel/entry-token"
    entries=0
    for kernel in "$TARGET"/boot/vmlinuz-*; do
        add_entry "${kernel##*/vmlinuz-}"
    done
    [ "$entries" -gt 0 ] || fail "the image has no kernel"
    printf 'timeout 0\neditor no\n' > "$TARGET/boot/efi/loader/loader.conf"
}

add_entry() {
    here=/$machine_id/$1
    mkdir -p "$TARGET/boot/efi$here" "$TARGET/boot/efi/loader/entries"
    cp "$TARGET/boot/vmlinuz-$1" "$TARGET/boot/efi$here/linux" &&
        cp "$TARGET/boot/initrd.img-$1" "$TARGET/boot/efi$here/initrd.img-$1" ||
        fail "kernel $1 could not be copied to the boot partition"
    cat > "$TARGET/boot/efi/loader/entries/$machine_id-$1.conf" << ENTRY
title      $(sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' "$TARGET/etc/os-release")
version    $1
machine-id $machine_id
sort-key   $(sed -n 's/^ID=//p' "$TARGET/etc/os-release")
options    $options
linux      $here/linux
initrd     $here/initrd.img-$1
ENTRY
    entries=$((entries + 1))
}

post_host_key() {
    cp "$TARGET/etc/ssh/ssh_host_ed25519_key.pub" "$RUN/host-key"
    ask host-key --data-binary "@$RUN/host-key" --header 'Content-Type: text/plain; charset=utf-8' ||
        fail "the host key was not taken: $(refusal)"
}

# The boot loader comes last: until here the firmware finds nothing to start on this disk. Its copy in EFI/systemd is
# where bootctl(1) looks for it when a kernel or a newer boot loader is installed; no firmware starts that by itself.
make_bootable() {
    sync
    lay_loader systemd/systemd-bootx64.efi
    sync
    lay_loader BOOT/BOOTX64.EFI
    sync
    umount "$TARGET/boot/efi" && umount "$TARGET" || fail "the new file systems could not be unmounted"
}

lay_loader() {
    mkdir -p "$TARGET/boot/efi/EFI/${1%/*}"
    cp "$TARGET/usr/lib/systemd/boot/efi/systemd-bootx64.efi" "$TARGET/boot/efi/EFI/$1" ||
        fail "the image has no systemd-boot"
}
