# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""scripts/lint-tree finds each kind of violation, planted into a tree that is otherwise sound."""
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SPDX = "SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause"
SOUND = {
    "include/abi.h": "#include <linux/types.h>\n",
    "user/ring.h": "#include <stdint.h>\n",
    "user/ring.c": '#include "ring.h"\n#include "../include/abi.h"\n'
                   '/* printf( is not called: */ const char *s = "puts(";\n',
    "user/cmd.h": "",
    "user/cmd_show.c": '#include "cmd.h"\n#include "datapath.h"\nint f(void) { return printf(""); }\n',
    "user/datapath.h": '#include "../include/abi.h"\n',
    "user/datapath_load.c": '#include <bpf/libbpf.h>\n#include "ringlb.skel.h"\n',
    "user/commit.c": '#include <time.h>\n#include "datapath.h"\nint n = snprintf(b, 1, "");\n',
}


def lint(tree, planted):
    for name, text in {**SOUND, **planted}.items():
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text if name in planted and "raw" in name else f"/* {SPDX} */\n{text}")
    return subprocess.run([ROOT / "scripts/lint-tree", tree], capture_output=True, text=True, check=False)


def test_sound(tmp_path):
    result = lint(tmp_path, {})
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


@pytest.mark.parametrize("name, text, complaint", [
    ("include/abi.h", '#include "ring.h"\n', "include/ is below everything"),
    ("include/abi.h", '#include "../user/ring.h"\n', "include/ is below everything"),
    ("user/ring.c", "#include <bpf/bpf.h>\n", "only datapath*.c know libbpf"),
    ("user/commit.c", '#include "ringlb.skel.h"\n', "only datapath*.c know libbpf"),
    ("user/ring.c", "#include <time.h>\n", "a pure module knows no clock"),
    ("user/config_pool.c", "#include <libmnl/libmnl.h>\n", "a pure module knows no clock"),
    ("user/plan.c", '#include "out.h"\n', "a pure module includes pure ones only"),
    ("user/placement_maglev.c", '#include "datapath.h"\n', "a pure module includes pure ones only"),
    ("user/commit.c", '#include "cmd.h"\n', "only main.c and cmd_*.c know commands"),
    ("user/commit.c", 'int f(void) { return fprintf(stderr, ""); }\n', "only cmd_*.c, main.c, log.c and out*.c print"),
    ("user/commit.c", 'int f(void) { return puts(""); }\n', "only cmd_*.c, main.c, log.c and out*.c print"),
    ("user/raw.c", "int x;\n", "no line SPDX"),
    ("user/commit.c", "/* see /" + "home/someone/notes */\n", "a path of one machine"),
    ("README.md", "See http:/" "/build7.corp.invalid/ringlb\n", "a host outside: build7.corp.invalid"),
])
def test_planted(tmp_path, name, text, complaint):
    result = lint(tmp_path, {name: text})
    assert result.returncode == 1
    assert len(result.stdout.splitlines()) == 1 and result.stdout.startswith(f"{name}:") and complaint in result.stdout
