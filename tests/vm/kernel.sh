#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Gets a kernel that Debian packages for boot.sh: tests/vm/kernel.sh VERSION DIR, say 6.1, leaves DIR/vmlinuz and, in the
# order in which they are to be loaded, DIR/modules/NN-NAME.ko. Nothing is installed.
set -euo pipefail
export PATH=$PATH:/usr/sbin:/sbin

version=$1 dir=$2
# The virtual machine's root comes through the first four; the rest is what this project's tests use.
modules="virtio_pci 9pnet_virtio 9p overlay veth dummy bridge 8021q ipip ip6_tunnel sit fou fou6 sch_ingress cls_bpf"

die() {
	echo "kernel.sh: $*" >&2
	exit 1
}

package=$(apt-cache pkgnames "linux-image-$version." | grep -E -- '-amd64$' | grep -vE 'cloud|rt' | sort -V | tail -n 1)
[[ $package ]] || die "apt knows no kernel $version: apt-get update"
rm -rf "$dir"
mkdir -p "$dir/modules"
dir=$(realpath "$dir")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The user that apt downloads as can't write here, which it warns of.
(cd "$work" && apt-get -qq download "$package" 2>"$work/complaints") || die "$(cat "$work/complaints")"
dpkg-deb -x "$work/$package"_*.deb "$work/tree"
release=$(ls "$work/tree/lib/modules")
depmod -b "$work/tree" "$release"

number=100
declare -A seen=()
for module in $modules; do
	while read -r _ file _; do
		[[ ! ${seen[$file]:-} ]] || continue
		seen[$file]=1
		number=$((number + 1))
		name=$(basename "$file")
		case $file in
		*.xz) xz -dc "$file" >"$dir/modules/$number-${name%.xz}" ;;
		*.zst) zstd -qdc "$file" >"$dir/modules/$number-${name%.zst}" ;;
		*) cp "$file" "$dir/modules/$number-$name" ;;
		esac
	done < <(modprobe -d "$work/tree" -S "$release" --show-depends "$module" | grep '^insmod')
done
cp "$work/tree/boot/vmlinuz-$release" "$dir/vmlinuz"
