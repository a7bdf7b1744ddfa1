#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Runs a command under another kernel: tests/vm/boot.sh KERNEL COMMAND, where KERNEL is a directory of kernel.sh.
#
# The machine is emulated, so that neither KVM nor root is needed, and slow. Its root is this machine's own, read-only,
# with an overlay in memory on top: the same programs, the same tree at the same place; nothing that the command writes
# stays. It has no network but the loopback interface. Status: the command's; 124 when the machine ended without one.
#
set -euo pipefail
kernel=$1 command=$2 place=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir -p "$work"/root/{bin,proc,sys,dev,lower,upper,new,modules}
cp "$(command -v busybox)" "$work/root/bin/busybox"
cp "$kernel"/modules/*.ko "$work/root/modules/"
printf 'cd %q && { %s\n}\n' "$place" "$command" >"$work/root/command"
cat >"$work/root/init" <<'END'
#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb LC_ALL=C.UTF-8
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
for module in /modules/*.ko; do insmod $module; done
mount -t 9p -o trans=virtio,version=9p2000.L,ro,msize=512000,cache=loose host /lower
mount -t tmpfs -o mode=755 upper /upper
mkdir /upper/files /upper/work
mount -t overlay -o lowerdir=/lower,upperdir=/upper/files,workdir=/upper/work root /new
for place in proc sys dev; do mount --move /$place /new/$place; done
mount -t tmpfs -o mode=755 run /new/run
mount -t tmpfs -o mode=1777 tmp /new/tmp
mkdir -p /new/run/netns /new/dev/pts /new/dev/shm
ln -s /proc/self/fd /new/dev/fd
mount -t devpts pts /new/dev/pts
mount -t tmpfs shm /new/dev/shm
mount -t cgroup2 cgroup /new/sys/fs/cgroup
mount -t bpf bpf /new/sys/fs/bpf
cp /command /new/run/command
chroot /new ip link set lo up
printf '\nTHE COMMAND BEGINS\n'
chroot /new bash -c 'exec bash /run/command </dev/null 2>&1'
echo "THE STATUS WAS $?"
poweroff -f
END
chmod 755 "$work/root/init"
(cd "$work/root" && find . | cpio -o -H newc --quiet | zstd -q -1 >"$work/initrd")

qemu-system-x86_64 -M pc -accel tcg,thread=multi -cpu max,la57=off -smp 2 -m 2048 \
	-nodefaults -no-user-config -nographic -serial stdio -no-reboot -nic none \
	-virtfs local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap \
	-kernel "$kernel/vmlinuz" -initrd "$work/initrd" \
	-append 'console=ttyS0 quiet loglevel=1 panic=-1 mitigations=off nokaslr random.trust_cpu=on' \
	</dev/null | tr -d '\r' | tee "$work/console" | sed -n '/^THE COMMAND BEGINS/,/^THE STATUS WAS/{//!p}' || :
status=$(sed -n 's/^THE STATUS WAS \([0-9]*\).*/\1/p' "$work/console" | tail -n 1)
exit "${status:-124}"
