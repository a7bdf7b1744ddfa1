#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Everything that `make test` runs, from a fresh clone on a machine that has only the base system. Root. Leaves the
# machine as it was, but for packages and build/. With CI set, warnings are errors.
set -euo pipefail
cd "$(dirname "$0")/.."

if [[ $(id -u) -ne 0 ]]; then
	echo 'scripts/test.sh: root is needed: the tests load BPF programs and make network namespaces' >&2
	exit 1
fi
if [[ ${CI:-} ]]; then export WERROR=1; fi
scripts/setup.sh test
make -s -j"$(nproc)" all
exec make -s -j"$(nproc)" test
