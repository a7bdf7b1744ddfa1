#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Installs the Debian packages that are missing (Debian 12 or newer). Does nothing, and needs neither network nor root,
# when all are there. Packages that it installs do not start services of their own.
set -euo pipefail

usage() {
	cat <<-'END'
	usage: scripts/setup.sh [demo|test|full]
	  demo   what building and scripts/demo.sh need (default)
	  test   and what scripts/test.sh and make lint need
	  full   and what make test-full needs
	END
}

packages() {
	echo gcc make pkgconf libc6-dev linux-libc-dev clang llvm bpftool scdoc \
		libbpf-dev libcap-ng-dev libcurl4-openssl-dev libyaml-dev libjansson-dev libmd-dev libmnl-dev libmicrohttpd-dev libxxhash-dev
	echo bash coreutils curl ethtool iproute2 procps python3 util-linux
	[[ $1 == demo ]] && return
	echo clang-format clang-tidy cppcheck shellcheck mandoc libclang-rt-dev libcmocka-dev openssl \
		bird2 haproxy iputils-ping jq keepalived libmemcached-tools netcat-openbsd libnginx-mod-stream nginx-light \
		ngtcp2-client ngtcp2-server prometheus python3-pytest python3-scapy python3-yaml redis-server tcpdump traceroute
	[[ $1 == test ]] && return
	echo chromium chromium-driver fonts-dejavu-core python3-selenium
	echo debootstrap qemu-system-x86 busybox-static kmod cpio zstd xz-utils
}

missing() {
	local package
	for package in $(packages "$1"); do
		[[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || echo "$package"
	done
}

die() {
	printf 'setup: %s\n' "$@" >&2
	exit 1
}

policy=/usr/sbin/policy-rc.d
ours='# placed by ringlb scripts/setup.sh while it installs packages'
placed=
output=

clean_up() {
	if [[ $placed ]]; then rm -f "$policy"; fi
	if [[ $output ]]; then rm -f "$output"; fi
}

# Makes invoke-rc.d refuse to start anything. A policy of the machine's own stays as it is; one that a killed run of
# this script left behind is taken over (the lock says that no such run is alive).
forbid_services() {
	if [[ -e $policy || -L $policy ]] && ! grep -qsF "$ours" "$policy"; then return; fi
	placed=yes
	printf '#!/bin/sh\n%s\nexit 101\n' "$ours" >"$policy"
	chmod 755 "$policy"
}

quietly() {
	if ! "$@" >"$output" 2>&1 </dev/null; then
		cat "$output" >&2
		die "failed: $*"
	fi
}

install_packages() {
	trap clean_up EXIT
	trap 'exit 129' HUP
	trap 'exit 130' INT
	trap 'exit 143' TERM
	exec 9</var/lib/dpkg
	flock 9
	output=$(mktemp)
	forbid_services
	export DEBIAN_FRONTEND=noninteractive DEBCONF_NONINTERACTIVE_SEEN=true
	local options=(-q -y --no-install-recommends -o DPkg::Lock::Timeout=300 -o Dpkg::Options::=--force-confold)
	# A run that was interrupted may have left packages unpacked only.
	quietly dpkg --force-confold --configure -a
	quietly apt-get "${options[@]}" update
	quietly apt-get "${options[@]}" install "$@"
}

set=${1:-demo}
case $set in
demo | test | full) ;;
-h | --help) usage; exit 0 ;;
*) usage >&2; exit 2 ;;
esac
[[ $# -le 1 ]] || { usage >&2; exit 2; }
if ! command -v dpkg-query >/dev/null; then
	die 'this is not a Debian system. Install what these Debian packages hold, then build with make:' \
		"$(packages "$set" | tr '\n' ' ')"
fi
mapfile -t wanted < <(missing "$set")
[[ ${#wanted[@]} -gt 0 ]] || exit 0
[[ $(id -u) -eq 0 ]] || die "packages are missing: ${wanted[*]}" "run as root: scripts/setup.sh $set"
echo "setup: installing ${wanted[*]}"
install_packages "${wanted[@]}"
