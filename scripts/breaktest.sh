#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Connections that changes break, by tracking mode: runs tests/net/breaktest.script with 500 connections in each mode
# and prints the table of docs/live-change.md. Needs root and what `make test` builds. Arguments go to breaktest.py.
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
results=()
for mode in moved always none; do
	# With none it has to break connections, and says so by its status.
	tests/net/breaktest.py --script tests/net/breaktest.script --track "$mode" --json "$work/$mode" "$@" >&2 || true
	results+=("track: $mode=$work/$mode")
done
tests/net/breaktest_table.py "${results[@]}"
