# The host mounts its file systems, moves into them, lays the files of its machine, and becomes systemd.
# Arguments: the host's run folder · the device template · the capabilities it does without, as setpriv takes them.
# Prints `running PID` on standard output, then only logs.
set -eu
read -r pid _ </proc/self/stat
mount --all --fstab "$1/base.fstab"
cp -a "$2/." "$1/root/dev/"
mount --all --fstab "$1/inner.fstab"
exec 8<"$1/skeleton.tar"
cd "$1/root"
pivot_root . mnt
# shellcheck disable=SC2016 # expanded by the inner shell
exec chroot . /bin/sh -euc '
    umount -l /mnt
    tar --extract --no-overwrite-dir --directory=/ --file=- <&8
    exec 8<&-
    echo "running $1"
    exec >&2
    exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin container=clusterctl-lab \
        setpriv --inh-caps -all --bounding-set "$2" /sbin/init
' init "$pid" "$3"
