# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""scripts/lab.sh for the benchmark: hosts in network namespaces, gone again when the block ends."""
import contextlib
import os
import pathlib
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts/lab.sh"
TRAFFIC = ROOT / "build/tests/bench/traffic/traffic"
PORT = 9000


class Lab:
    def __init__(self, name):
        self.name = name
        self.env = {**os.environ, "RINGLB_LAB": name}
        self.processes = []

    def argv(self, host, *command):
        return [SCRIPT, "exec", host, *map(str, command)]

    def run(self, host, *command, **options):
        done = subprocess.run(self.argv(host, *command), env=self.env, capture_output=True, text=True, check=False,
                              **options)
        if done.returncode:
            raise RuntimeError(f"{' '.join(map(str, command))} on {host}: {done.stderr.strip()}")
        return done.stdout

    def start(self, host, *command, ready=None):
        """A process that lives as long as the lab; waits until it has printed a line, where it prints one."""
        process = subprocess.Popen(self.argv(host, *command), env=self.env, stdin=subprocess.PIPE, text=True,
                                   stdout=subprocess.PIPE if ready else subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.processes.append(process)
        if ready and process.stdout.readline().strip() != ready:
            raise RuntimeError(f"{command[0]} on {host} does not start: {process.stderr.read()}")
        return process

    def serve(self, host):
        self.start(host, TRAFFIC, "server", PORT, ready="ready")

    def interface(self, *command):
        """Sets something on the balancer's port of the switch."""
        subprocess.run(["nsenter", f"--net=/run/netns/{self.name}-sw", *command], check=True,
                       stdout=subprocess.DEVNULL)

    def stop(self, process):
        process.terminate()
        process.wait()
        self.processes.remove(process)


@contextlib.contextmanager
def lab(backends=1):
    """A lab with so many backends, and a directory for files."""
    made = Lab(f"bench{os.getpid()}")
    with tempfile.TemporaryDirectory(prefix="ringlb-bench-") as directory:
        made.directory = pathlib.Path(directory)
        try:
            subprocess.run([SCRIPT, "up", "--backends", str(backends)], env=made.env, check=True,
                           stdout=subprocess.DEVNULL)
            yield made
        finally:
            for process in list(made.processes):
                made.stop(process)
            subprocess.run([SCRIPT, "down"], env=made.env, check=True)
