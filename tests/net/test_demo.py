# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The demo: every step of it succeeds, and nothing stays behind, also where it is interrupted; and the page's picture."""
import os
import pathlib
import signal
import subprocess

import pytest
from conftest import TOP

pytestmark = pytest.mark.full


def left():
    run = [pathlib.Path("/run/netns"), pathlib.Path("/run/ringlb-lab")]
    return sorted(str(p) for d in run if d.is_dir() for p in [*d.glob("demo*"), *d.glob("picture*")])


def start():
    return subprocess.Popen([TOP / "scripts/demo.sh"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            start_new_session=True)


def test_demo():
    with start() as demo:
        said, _ = demo.communicate(timeout=300)
    assert demo.returncode == 0, said
    assert said.count("All 1000 landed on the backend that 'ringlb lookup' names.") == 5
    assert "of those to the others broken                                 0" in said
    assert not left()


@pytest.mark.parametrize("moment", ["== A client", "while connections run", "serving metrics", "== It runs again"])
def test_interrupted(moment):
    """As Ctrl-C does it: to everybody at once."""
    with start() as demo:
        for line in demo.stdout:
            if moment in line:
                break
        os.killpg(demo.pid, signal.SIGINT)
        demo.communicate(timeout=60)
    assert demo.returncode == 130 and not left()


def test_picture(tmp_path):
    """A daemon's own page, in a browser that has nothing to complain of."""
    pytest.importorskip("selenium.webdriver")
    done = subprocess.run([TOP / "scripts/picture.py", tmp_path / "status.png"], capture_output=True, text=True,
                          timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "status.png").read_bytes().startswith(b"\x89PNG") and not left()
