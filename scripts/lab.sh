#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A laboratory of network namespaces: a client, a balancer, N backends and the switch between them. Everything is made
# here and removed again; nothing outside these namespaces sees any of it. Each host's interface is called eth0.
#
#  up                      10.77.0.0/24 and fd77::/64, services 192.0.2.10, .11 and 2001:db8::10, ::11
#
#      client .100      lb .1            b1 .11      b2 .12   ...      (the IPv6 addresses end in the same numbers:
#        | eth0         | eth0            | eth0      | eth0            fd77::100, fd77::1, fd77::11, ...)
#        | 1500         | 1600            | 1600      | 1600            <- MTU: room for outer headers
#     ===+==============+=================+===========+===  bridge in the namespace sw
#                       ^ XDP_PASS and tx offload off, or frames that the balancer sends with XDP_TX are lost
#
#     The client's route to the services goes to lb. Backends hold the service addresses on lo and answer the client
#     directly. Who has a larger MTU than the client has a route to it that says so.
#
#  up --mtu N              the client's MTU is N instead of 1500, and everybody else's N + 100
#
#  up --two                a balancer with two interfaces
#
#      client 10.77.0.100                             b1 10.77.1.11    b2 10.77.1.12 ...
#        | eth0           .1 eth0 +----+ eth1 .1       | eth0           | eth0
#     ===+=======================>| lb |<=============+================+===
#                                 +----+
#     The backends' answers go through lb, as ordinary forwarded traffic.
#
#  /run/ringlb-lab/$RINGLB_LAB/   hosts (namespaces made), bpf (a bpffs of its own), HOST/ (state, run, log)
#
set -eu

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
lab=${RINGLB_LAB:-rlb}
dir=/run/ringlb-lab/$lab
pass=build/tests/net/pass.bpf.o
services4="192.0.2.10 192.0.2.11"
services6="2001:db8::10 2001:db8::11"
tcp_ports="22 80 443 8080"
udp_ports="53 5353"
mtu=1500 # the client's; kept in $dir/mtu

usage() {
	cat <<TXT
Usage: scripts/lab.sh up [--backends N] [--two | --far] [--mtu N]
                                                   make the hosts client, lb, b1 to bN (default 3), their servers
       scripts/lab.sh down                         remove all of it; nothing to remove is fine
       scripts/lab.sh exec HOST COMMAND...         run COMMAND on HOST, with build/ringlb in its PATH
       scripts/lab.sh recreate HOST [INTERFACE]    remove an interface of HOST and make it anew, as a driver's reload does
       scripts/lab.sh stop HOST | start HOST       kill the server of a host, and start it again
The variable RINGLB_LAB names the lab (default rlb): its namespaces are NAME-HOST, and several can be up side by side.
TXT
}

misuse() {
	usage >&2
	exit 2
}

die() {
	echo "lab.sh: $*" >&2
	exit 1
}

# on HOST COMMAND...: nsenter, not "ip netns exec", which hides bpffs behind a new /sys.
on() {
	nsenter --net="/run/netns/$lab-$1" "${@:2}"
}

make_host() { # HOST SYSCTL=VALUE...
	local host=$1 setting
	[ ! -e "/run/netns/$lab-$host" ] || die "the namespace $lab-$host exists and is not this lab's; set RINGLB_LAB"
	echo "$host" >>"$dir/hosts"
	mkdir -p "$dir/$host/state" "$dir/$host/run" "$dir/bpf/$host"
	ip netns add "$lab-$host"
	shift
	# No duplicate address detection: an address is good at once, nothing has to wait for it.
	for setting in net/ipv6/conf/{all,default}/{accept_dad,accept_ra}=0 net/ipv4/conf/{all,default}/rp_filter=0 "$@"; do
		# shellcheck disable=SC2016 # expanded by the inner shell
		on "$host" sh -c 'echo "$2" >"/proc/sys/$1"' - "${setting%%=*}" "${setting##*=}"
	done
	ip -n "$lab-$host" link set lo up
}

# A cable from HOST's INTERFACE to a port of BRIDGE in the switch.
make_cable() { # HOST INTERFACE BRIDGE MTU
	local port=$1-$2
	ip -n "$lab-sw" link add "$port" mtu "$4" type veth peer name "$2" mtu "$4" netns "$lab-$1"
	ip -n "$lab-sw" link set "$port" up
	ip -n "$lab-$1" link set "$2" up
	ip -n "$lab-sw" link set "$port" master "$3"
	[ "$1" = lb ] || return 0
	on sw ethtool -K "$port" tx off >/dev/null
	# Or ip would leave directories in the first bpffs that it finds.
	TC_BPF_MNT=$dir/bpf/sw ip -n "$lab-sw" link set dev "$port" xdpdrv obj "$top/$pass" sec xdp.frags
}

make_bridge() { # NAME
	ip -n "$lab-sw" link add "$1" mtu "$((mtu + 100))" type bridge mcast_snooping 0
	ip -n "$lab-sw" link set "$1" up
}

add_addresses() { # HOST INTERFACE NET NUMBER: both families
	ip -n "$lab-$1" address add "10.77.$3.$4/24" dev "$2"
	ip -n "$lab-$1" address add "$(net6 "$3")$4/64" dev "$2" nodad
}

net6() { # NET
	if [ "$1" = 0 ]; then echo fd77::; else echo "fd77:$1::"; fi
}

# Balancers' addresses, interface by interface, are kept here because recreate needs them again.
address_lb() { # INTERFACE
	if [ "$1" = eth0 ]; then add_addresses lb eth0 0 1; else add_addresses lb eth1 1 1; fi
}

start_server() { # HOST
	local word="" pid log=$dir/$1/server.log
	# The one event to wait for; the server prints nothing else, so its pipe may be closed then.
	# shellcheck disable=SC2086 # lists of ports
	exec 3< <(exec setsid nsenter --net="/run/netns/$lab-$1" /usr/bin/python3 "$top/tests/lab/server.py" "$1" \
		--tcp $tcp_ports --udp $udp_ports 2>"$log" </dev/null)
	pid=$!
	read -r -t 20 word <&3 || true
	exec 3<&-
	if [ "$word" != ready ]; then
		cat "$log" >&2
		die "the server of $1 (pid $pid) did not start"
	fi
}

# The kernel then refuses connections to its ports, and resets those that there were.
stop_server() { # HOST
	local pid tries
	for pid in $(ip netns pids "$lab-$1"); do
		[[ $(tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null) == *tests/lab/server.py* ]] || continue
		kill -KILL "$pid" 2>/dev/null || true
		for ((tries = 0; tries < 250; tries++)); do
			ip netns pids "$lab-$1" | grep -qx "$pid" || return 0
			sleep 0.02
		done
		die "the server of $1 (pid $pid) does not end"
	done
	die "the server of $1 does not run"
}

make_backend() { # NUMBER NET
	local host=b$1 address
	make_host "$host" net/ipv4/conf/all/arp_ignore=1 net/ipv4/conf/all/arp_announce=2
	make_cable "$host" eth0 "br$2" "$((mtu + 100))"
	add_addresses "$host" eth0 "$2" "$((10 + $1))"
	for address in $services4; do ip -n "$lab-$host" address add "$address/32" dev lo; done
	for address in $services6; do ip -n "$lab-$host" address add "$address/128" dev lo nodad; done
	if [ "$2" = 0 ]; then
		route_to_client "$host" eth0
	else
		ip -n "$lab-$host" route add 10.77.0.0/24 via 10.77.1.1 mtu "$mtu"
		ip -n "$lab-$host" route add fd77::/64 via fd77:1::1 mtu "$mtu"
	fi
}

route_to_client() { # HOST INTERFACE
	ip -n "$lab-$1" route add 10.77.0.100/32 dev "$2" mtu "$mtu"
	ip -n "$lab-$1" route add fd77::100/128 dev "$2" mtu "$mtu"
}

# Everybody's way to far goes through r.
make_far() { # N
	local host
	make_host r net/ipv4/ip_forward=1 net/ipv6/conf/all/forwarding=1 net/ipv4/conf/{all,default}/send_redirects=0
	make_cable r eth0 br0 1600
	add_addresses r eth0 0 200
	make_host far net/ipv4/conf/all/arp_ignore=1 net/ipv4/conf/all/arp_announce=2
	ip -n "$lab-r" link add eth1 mtu 1400 type veth peer name eth0 mtu 1400 netns "$lab-far"
	ip -n "$lab-r" link set eth1 up
	ip -n "$lab-far" link set eth0 up
	ip -n "$lab-r" address add 10.88.0.1/24 dev eth1
	ip -n "$lab-r" address add fd88::1/64 dev eth1 nodad
	ip -n "$lab-far" address add 10.88.0.100/24 dev eth0
	ip -n "$lab-far" address add fd88::100/64 dev eth0 nodad
	ip -n "$lab-far" route add default via 10.88.0.1 advmss 1460
	ip -n "$lab-far" route add default via fd88::1 advmss 1440
	ip -n "$lab-r" route add 192.0.2.0/24 via 10.77.0.1
	ip -n "$lab-r" route add 2001:db8::/64 via fd77::1
	for host in lb client $(seq -f b%g "$1"); do
		ip -n "$lab-$host" route add 10.88.0.0/24 via 10.77.0.200 mtu 1500
		ip -n "$lab-$host" route add fd88::/64 via fd77::200 mtu 1500
	done
	start_server far
	for host in 10.88.0.100 fd88::100; do
		on client "$top/tests/lab/client.py" "$host" 80 >/dev/null || die "the client cannot reach far at $host"
	done
}

make_all() { # N NET
	local i
	mount -t bpf ringlb-lab "$dir/bpf"
	make_host sw
	make_bridge br0
	[ "$2" = 0 ] || make_bridge br1
	make_host lb net/ipv4/ip_forward=1 net/ipv6/conf/all/forwarding=1 net/ipv4/conf/{all,default}/send_redirects=0
	make_cable lb eth0 br0 "$((mtu + 100))"
	address_lb eth0
	if [ "$2" = 1 ]; then
		make_cable lb eth1 br1 "$((mtu + 100))"
		address_lb eth1
	fi
	make_host client
	make_cable client eth0 br0 "$mtu"
	add_addresses client eth0 0 100
	route_to_client lb eth0
	ip -n "$lab-client" route add 192.0.2.0/24 via 10.77.0.1
	ip -n "$lab-client" route add 2001:db8::/64 via fd77::1
	if [ "$2" = 1 ]; then
		ip -n "$lab-client" route add 10.77.1.0/24 via 10.77.0.1
		ip -n "$lab-client" route add fd77:1::/64 via fd77::1
	fi
	for ((i = 1; i <= $1; i++)); do make_backend "$i" "$2"; done
	start_server lb
	for ((i = 1; i <= $1; i++)); do start_server "b$i"; done
	check_reach "$1" "$2"
}

# The lab is up when the client reaches every server at its own address.
check_reach() { # N NET
	local i address
	for ((i = 1; i <= $1; i++)); do
		for address in "10.77.$2.$((10 + i))" "$(net6 "$2")$((10 + i))"; do
			on client "$top/tests/lab/client.py" "$address" 80 >/dev/null || die "the client cannot reach b$i at $address"
		done
	done
}

cmd_up() {
	local backends=3 net=0 far=0
	while [ $# -gt 0 ]; do
		case $1 in
		--backends) backends=${2:-} && shift ;;
		--two) net=1 ;;
		--far) far=1 ;;
		--mtu) mtu=${2:-} && shift ;;
		*) misuse ;;
		esac
		shift
	done
	[[ $backends =~ ^[0-9]+$ && $backends -ge 1 && $backends -le 80 ]] || die "--backends takes 1 to 80"
	[[ $mtu =~ ^[0-9]{4,5}$ && $mtu -ge 1280 && $mtu -le 65000 ]] || die "--mtu takes 1280 to 65000"
	[ -r "$top/$pass" ] || make -s -C "$top" "$pass" >&2
	mkdir -p /run/ringlb-lab
	mkdir "$dir" 2>/dev/null || die "the lab $lab is up already, or was left over: scripts/lab.sh down"
	mkdir "$dir/bpf"
	echo "$mtu" >"$dir/mtu"
	trap undo EXIT
	trap 'exit 130' INT TERM
	[ "$net$far" != 11 ] || die "--far goes without --two"
	make_all "$backends" "$net"
	[ "$far" = 0 ] || make_far "$backends"
	echo "lab $lab: client, lb, b1 to b$backends; try: scripts/lab.sh exec client curl -s http://10.77.$net.11/"
}

undo() {
	local status=$?
	trap '' INT TERM
	[ $status = 0 ] || cmd_down
}

# Ends every process in a namespace of ours, by its id, and waits until it is gone; a dead one that its parent has not
# collected yet is in no namespace any more.
end_processes() { # HOST
	local pids tries
	for ((tries = 0; tries < 250; tries++)); do
		pids=$(ip netns pids "$lab-$1" 2>/dev/null) || return 0
		[ -n "$pids" ] || return 0
		# shellcheck disable=SC2086 # a list
		kill -KILL $pids 2>/dev/null || true
		sleep 0.02
	done
	echo "lab.sh: processes of $1 do not end: $pids" >&2
}

cmd_down() {
	local host failed=0
	[ -d "$dir" ] || return 0
	for host in $(tac "$dir/hosts" 2>/dev/null); do
		end_processes "$host"
		[ ! -e "/run/netns/$lab-$host" ] || ip netns delete "$lab-$host" || failed=1
	done
	while mountpoint -q "$dir/bpf"; do
		umount "$dir/bpf" 2>/dev/null || umount -l "$dir/bpf" || die "cannot unmount $dir/bpf"
	done
	[ $failed = 0 ] || die "not everything could be removed; see $dir/hosts"
	rm -rf -- "$dir"
	rmdir /run/ringlb-lab 2>/dev/null || true
}

# The command replaces this shell, so that a signal to it reaches the command.
cmd_exec() {
	local host=${1:-}
	[ $# -ge 2 ] || misuse
	check_host "$host"
	export RINGLB_BPFFS=$dir/bpf/$host RINGLB_STATE_DIR=$dir/$host/state RINGLB_RUN_DIR=$dir/$host/run
	export PATH="$top/build:$PATH"
	exec nsenter --net="/run/netns/$lab-$host" "${@:2}"
}

cmd_recreate() {
	local host=${1:-} interface=${2:-eth0} net=0
	[ "$host" = lb ] || die "only lb's interfaces can be made anew"
	[ "$interface" = eth0 ] || net=1
	ip -n "$lab-$host" link delete "$interface"
	mtu=$(cat "$dir/mtu")
	make_cable "$host" "$interface" "br$net" "$((mtu + 100))"
	address_lb "$interface"
	[ "$interface" != eth0 ] || route_to_client lb eth0
}

check_host() {
	[ $# = 1 ] || misuse
	grep -qxF -- "$1" "$dir/hosts" 2>/dev/null || die "no host $1 in the lab $lab ($(tr '\n' ' ' 2>/dev/null <"$dir/hosts"))"
}

cmd_stop() {
	check_host "$@"
	stop_server "$1"
}

cmd_start() {
	check_host "$@"
	start_server "$1"
}

[[ $lab =~ ^[A-Za-z0-9_-]{1,32}$ ]] || die "RINGLB_LAB may have letters, digits, _ and -, and at most 32 of them"
case ${1:-} in
-h | --help | help) usage && exit 0 ;;
up | down | exec | recreate | stop | start) [ "$(id -u)" = 0 ] || die "needs root" ;;
*) misuse ;;
esac
"cmd_$1" "${@:2}"
