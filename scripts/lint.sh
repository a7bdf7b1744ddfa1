#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Every static check, all of them also when one fails. Says which failed, and exits 1.
# shellcheck disable=SC2317 # the checks are called by name
set -uo pipefail
cd "$(dirname "$0")/.." || exit

build=build/werror
mapfile -t c_files < <(find include user bpf tests scripts -name '*.[ch]' 2>/dev/null | sort)
mapfile -t user_files < <(find user -name '*.c' | sort)
mapfile -t shell_files < <(grep -rlE --exclude-dir=build --exclude-dir=.git -m1 '^#!(/usr)?/bin/(env )?(ba)?sh' . | sort)
defines=(-D_GNU_SOURCE '-DRINGLB_VERSION="lint"')
jobs=$(nproc)

# Versions of clang-format disagree; the tree is formatted as Debian 12's does.
format() {
	case $(clang-format --version) in
	*' 14.'*) clang-format --dry-run -Werror "${c_files[@]}" ;;
	*) echo 'format: not checked, clang-format 14 does that' ;;
	esac
}

# Warnings are errors, with gcc for user space and clang for BPF; the unit tests too.
warnings() {
	local tests
	mapfile -t tests < <(find tests/unit tests/priv -name 'test_*.c' | sed "s|\(.*\)\.c$|$build/\1|")
	make -s -j"$jobs" B="$build" WERROR=1 all "${tests[@]}"
}

shell() { shellcheck -x -P SCRIPTDIR "${shell_files[@]}"; }

cppcheck_() {
	cppcheck --quiet --std=c11 --enable=warning,portability,performance --inline-suppr \
		--include=tests/lint/cppcheck_macros.h \
		--suppress=nullPointerRedundantCheck --suppress=varFuncNullUB --error-exitcode=1 \
		-j "$jobs" "${defines[@]}" '-DLIBBPF_OPTS(type,name,...)=struct type name' -Iinclude -Iuser "${user_files[@]}"
}

# Reads the skeletons that `warnings` has built.
tidy() {
	# "N warnings generated" counts those of system headers, which are not shown.
	printf '%s\0' "${user_files[@]}" | xargs -0 -n 4 -P "$jobs" \
		sh -c 'clang-tidy --quiet "$@" -- -std=gnu11 -D_GNU_SOURCE "-DRINGLB_VERSION=\"lint\"" -Iinclude -Iuser -isystem '"$build"' 2>&1' tidy |
		grep -vE '^[0-9]+ (warnings?|errors?) .*(generated|treated as)'
	return "${PIPESTATUS[1]}"
}

manual() {
	local page
	for page in "$build"/man/*; do
		[[ -e $page ]] || continue
		mandoc -T lint -W error "$page" || return
	done
}

tree() { scripts/lint-tree; }

failed=()
for check in format warnings shell cppcheck_ tidy manual tree; do
	$check || failed+=("${check%_}")
done
[[ ${#failed[@]} -eq 0 ]] && exit 0
echo "lint failed: ${failed[*]}" >&2
exit 1
