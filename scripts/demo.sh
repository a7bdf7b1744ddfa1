#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Shows what ringlb does, on real connections between network namespaces of its own (scripts/lab.sh draws them), and
# removes everything again. Needs root. Exits with 0 only when every connection landed where it had to.
set -euo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$top"
export RINGLB_LAB=demo$$
lab=scripts/lab.sh
connections=1000
kept=100 # open while a backend fails
clients=2 # at the same time, while a backend is added
weights=(1 2 3 2) # of b1 to b4; b4 comes later
interval=300 timeout=200 fall=2 # of the daemon's checks, milliseconds
work=

case ${1:-} in
'') ;;
-h | --help) echo "Usage: scripts/demo.sh (as root)" && exit 0 ;;
*) echo "Usage: scripts/demo.sh (as root)" >&2 && exit 2 ;;
esac

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
# Colour only for people, as ringlb does it.
if [ ! -t 1 ] || [ -n "${NO_COLOR:-}" ]; then say() { printf '\n== %s\n' "$*"; }; fi

die() {
	echo "demo.sh: $*" >&2
	exit 1
}

clean_up() {
	local status=$?
	trap '' INT TERM HUP
	$lab down
	[ -z "$work" ] || rm -rf "$work"
	[ $status = 0 ] || echo "demo.sh: failed" >&2
}

write_config() { # NUMBER OF BACKENDS [checked]
	local i
	cat <<-END
		interfaces: [eth0]
		xdp: native
		hash_key: 00112233445566778899aabbccddeeff
	END
	[ $# = 1 ] || echo "status_listen: 127.0.0.1:9391"
	printf 'pools:\n  - name: web\n'
	[ $# = 1 ] || echo "    check: {type: http, interval: ${interval}ms, timeout: ${timeout}ms, fall: $fall, rise: 2}"
	echo "    backends:"
	for ((i = 1; i <= $1; i++)); do
		echo "      - {name: b$i, address: 10.77.0.$((10 + i)), weight: ${weights[i - 1]}}"
	done
	cat <<-END
		services:
		  - {name: www, address: 192.0.2.10, port: 80, protocol: tcp, pool: web, forward: l2}
	END
}

# On the balancer and on the client.
ringlb() { $lab exec lb ringlb "$@"; }
client() { $lab exec client tests/lab/client.py 192.0.2.10 80 "$@"; }

# "SOURCE NAME" lines: how many went to each backend, beside its weight.
table() {
	awk -v weights="${weights[*]}" '
		{ count[$2]++ }
		END {
			n = split(weights, weight, " ")
			while (!(("b" n) in count)) n--
			for (i = 1; i <= n; i++) total += weight[i]
			printf "  %-8s %6s %12s %8s %9s\n", "backend", "weight", "connections", "share", "by weight"
			for (i = 1; i <= n; i++)
				printf "  %-8s %6d %12d %7.1f%% %8.1f%%\n", "b" i, weight[i], count["b" i],
					100 * count["b" i] / NR, 100 * weight[i] / total
		}'
}

# Where lookup says that these sources go: "SOURCE NAME" lines.
lookup() { # FILE OF SOURCES
	ringlb lookup www --from "$1" | cut -d ' ' -f 1,2
}

connect_all() {
	client --count "$connections" >"$work/landed" || die "not every connection got an answer"
	cut -d ' ' -f 1 "$work/landed" >"$work/sources"
	lookup "$work/sources" >"$work/expected"
	table <"$work/landed"
	diff "$work/landed" "$work/expected" >"$work/diff" || die "connections landed elsewhere than lookup says: $(head -4 "$work/diff")"
	echo "  All $connections landed on the backend that 'ringlb lookup' names."
}

# Connections all the time, while a backend is added.
add_backend() {
	local summary
	for ((i = 0; i < 50000; i++)); do echo "10.77.$((i / 10000)).$((i % 100 + 100)):$((1024 + i % 60000))"; done >"$work/flows"
	lookup "$work/flows" >"$work/before"
	mkfifo "$work/stop" "$work/traffic"
	client --ports 20000-29999 --parallel "$clients" --pause 0.001 --until-eof <"$work/stop" >"$work/traffic" 2>&1 &
	exec 4>"$work/stop" 5<"$work/traffic"
	read -r -t 20 -u 5 summary || true
	[ "${summary:-}" = ready ] || die "no answer: ${summary:-}"

	write_config 4 >"$work/new.yaml"
	echo "  added to the file:"
	diff "$work/ringlb.yaml" "$work/new.yaml" | sed -n 's/^> //p' || true
	say "ringlb plan: what would move"
	ringlb plan "$work/new.yaml"
	ringlb --json plan "$work/new.yaml" >"$work/plan.json"
	say "ringlb apply, while connections run"
	ringlb apply "$work/new.yaml"

	lookup "$work/flows" >"$work/after"
	exec 4>&-
	read -r -t 30 -u 5 summary || die "the client did not end"
	exec 5<&-
	wait $! || true
	say "What moved"
	moved
	[[ $summary =~ \"ok\":\ ([0-9]+),\ \"failed\":\ ([0-9]+) ]] || die "$summary"
	printf '  %-46s %6d\n' "connections made meanwhile" "${BASH_REMATCH[1]}" "of them failed" "${BASH_REMATCH[2]}"
	# One that is just being opened while its arc moves may be lost, and so many can be at a time.
	[ "${BASH_REMATCH[2]}" -le "$clients" ] || die "connections failed: $summary"
}

# 50,000 flows, looked up before and after, beside the plan.
moved() {
	local planned minimum
	read -r planned minimum < <(/usr/bin/python3 -c '
import json, sys
pool = json.load(sys.stdin)["pools"][0]
print(pool["moved"], pool["minimum"])' <"$work/plan.json")
	paste -d ' ' "$work/before" "$work/after" | awk -v planned="$planned" -v minimum="$minimum" '
		$2 != $4 { moved++; if ($4 != "b4") astray++ }
		END {
			printf "  %-46s %6.2f%%\n", "the least that any balancer must move", 100 * minimum
			printf "  %-46s %6.2f%%\n", "planned", 100 * planned
			printf "  %-46s %6.2f%%\n", "measured, by looking " NR " flows up again", 100 * moved / NR
			printf "  %-46s %6d\n", "flows moved between the other backends", astray
			difference = moved / NR - planned
			exit(astray || difference > 0.01 || difference < -0.01)
		}' || die "not the planned flows moved"
}

# Connections that ask ten times a second until "let_go"; those of the named backend must be all that fail.
hold() {
	mkfifo "$work/release" "$work/held"
	client --ports "40000-$((40000 + kept - 1))" --keep --pause 0.1 --until-eof <"$work/release" >"$work/held" 2>&1 &
	exec 6>"$work/release" 7<"$work/held"
	read -r -t 20 -u 7 summary || true
	[ "${summary:-}" = ready ] || die "no answer: ${summary:-}"
	seq -f '10.77.0.100:%.0f' 40000 $((40000 + kept - 1)) >"$work/kept"
	lookup "$work/kept" >"$work/keepers"
}

let_go() { # BACKEND
	local lost
	lost=$(grep -c " $1\$" "$work/keepers") || true
	exec 6>&-
	read -r -t 30 -u 7 summary || die "the client did not end"
	exec 7<&-
	[[ $summary =~ \"failed\":\ ([0-9]+) ]] || die "$summary"
	printf '  %-58s %4d\n' "connections open all the time" "$kept" "of them to $1, which broke" "$lost" \
		"of those to the others broken" "$((BASH_REMATCH[1] - lost))"
	[ "${BASH_REMATCH[1]}" = "$lost" ] || die "connections failed: $summary"
}

# Reads the daemon's log until it says that; prints it, and how long it took since $begun.
said() { # PATTERN [MILLISECONDS EXPECTED]
	local line took expected=${2:-}
	while read -r -t 20 -u 8 line; do
		[[ ! $line =~ $1 ]] || break
	done
	took=$(((${EPOCHREALTIME/[.,]/} - ${begun/[.,]/}) / 1000))
	[[ $line =~ $1 ]] || die "the daemon does not say \"$1\""
	echo "  ${line#<?>}" # without journald's priority
	[ -z "$expected" ] || printf '  after %d.%02d s; fall x interval + timeout is %d.%02d s\n' $((took / 1000)) $((took % 1000 / 10)) \
		$((expected / 1000)) $((expected % 1000 / 10))
}

# What the daemon says was seen; within 100 ms it is committed.
committed() { # HEALTH of b2
	local tries
	for ((tries = 0; tries < 500; tries++)); do
		[[ $(ringlb show) =~ \ b2\ [^$'\n']*\ up\ +$1\  ]] && return
		sleep 0.02
	done
	die "b2 does not become $1"
}

start_daemon() {
	write_config 4 checked >"$work/checked.yaml"
	echo "  added to the file:"
	diff "$work/new.yaml" "$work/checked.yaml" | sed -n 's/^> /  /p' || true
	ringlb -q apply "$work/checked.yaml"
	mkfifo "$work/log"
	$lab exec lb ringlb run "$work/checked.yaml" 2>"$work/log" &
	daemon=$!
	exec 8<"$work/log"
	begun=$EPOCHREALTIME
	said "serving metrics"
}

fail_and_return() {
	hold
	lookup "$work/flows" >"$work/before"
	say "The server of b2 is killed"
	begun=$EPOCHREALTIME
	$lab stop b2
	said "b2 .* is down" $((fall * interval + timeout))
	committed down
	connect_all
	let_go b2

	say "It runs again"
	$lab start b2
	said "b2 .* is up"
	committed up
	lookup "$work/flows" >"$work/after"
	cmp -s "$work/before" "$work/after" || die "b2 does not have the arcs that it had"
	echo "  All $(wc -l <"$work/flows") flows looked up are where they were before."
	connect_all
}

[ "$(id -u)" = 0 ] || die "needs root: it makes network namespaces and loads BPF programs"
scripts/setup.sh demo
make -s
trap clean_up EXIT
trap 'exit 130' INT TERM HUP
work=$(mktemp -d "${TMPDIR:-/tmp}/ringlb-demo.XXXXXX")
started=$SECONDS

say "A client, a balancer and four servers, in network namespaces"
$lab up --backends 4 >/dev/null
write_config 3 >"$work/ringlb.yaml"
cat "$work/ringlb.yaml"

say "ringlb attach"
ringlb attach "$work/ringlb.yaml"

say "$connections connections from the client to http://192.0.2.10/"
connect_all

say "A fourth backend, added while connections run"
add_backend

say "$connections connections more"
connect_all

say "ringlb show"
ringlb show

say "The daemon: ringlb run asks the backends how they are"
start_daemon
fail_and_return

say "The daemon ends; packets don't need it"
kill "$daemon"
wait "$daemon" || die "the daemon failed: $(cat <&8)"
connect_all
ringlb detach
echo
echo "All in $((SECONDS - started)) s; everything is removed again."
