# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the daemon's tests share: the daemon itself, watched by its log, and real servers that can be made ill."""
import contextlib
import os
import pathlib
import re
import signal
import socket
import subprocess
import time

PORT = 8088
FILES = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


def until(condition, seconds, what):
    """Waits for something that happens elsewhere, and tells nobody; returns what the condition gave."""
    end = time.monotonic() + seconds
    while not (result := condition()):
        assert time.monotonic() < end, f"not within {seconds} s: {what() if callable(what) else what}"
        time.sleep(0.02)
    return result


def children(pid):
    return [int(p) for p in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def cpu(pid):
    """Seconds of processor time that a process has used."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Daemon:
    def __init__(self, lab, file):
        self.lab, self.file = lab, file
        self.log_file = lab.dir / "daemon.log"
        self.process = None

    def start(self, ready=True):
        path = self.lab.dir / "notify"
        path.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s, open(self.log_file, "w", encoding="utf-8") as log:
            s.bind(str(path))
            s.settimeout(20)
            self.process = subprocess.Popen(self.lab.argv("lb", ["ringlb", "run", self.file]), stderr=log,
                                            env={**self.lab.env, "NOTIFY_SOCKET": str(path)})
            while ready and b"READY=1" not in s.recv(4096):
                pass
        path.unlink()
        return self

    def log(self):
        return self.log_file.read_text(encoding="utf-8", errors="replace")

    def clear(self):
        """From here on the log is empty. It is written with O_APPEND or not: the file stays, what was read is cut off."""
        self.seen = len(self.log())

    def new(self):
        return self.log()[getattr(self, "seen", 0):]

    def wait_log(self, pattern, seconds=10):
        return until(lambda: re.search(pattern, self.new()), seconds, lambda: f"{pattern} in\n{self.new()}")

    def send(self, number):
        self.process.send_signal(number)

    def stop(self, number=signal.SIGTERM):
        self.send(number)
        return self.process.wait(20)

    def cpu(self):
        """Of the daemon and its worker."""
        return cpu(self.process.pid) + cpu(self.worker())

    def worker(self):
        """The process that serves and probes; None while there is none."""
        [spawner] = children(self.process.pid)
        return next(iter(children(spawner)), None)


@contextlib.contextmanager
def daemon(lab, config, **options):
    d = Daemon(lab, lab.write(config) if isinstance(config, dict) else config)
    try:
        yield d.start(**options)
    finally:
        if d.process.poll() is None:
            d.stop(signal.SIGKILL)


class Nginx:
    """A backend's server, whose answers are its name; /healthz can be made bad or slow by files."""

    def __init__(self, lab, host):
        self.lab, self.host = lab, host
        self.dir = lab.dir / host / "nginx"
        self.dir.mkdir(exist_ok=True)
        for name in ("bad", "slow"):
            (self.dir / name).unlink(missing_ok=True)
        temporary = "".join(f"{name}_temp_path {self.dir}/{name};" for name in FILES)
        (self.dir / "nginx.conf").write_text(f"""
load_module /usr/lib/nginx/modules/ngx_http_echo_module.so;
daemon off; user root; worker_processes 1; pid {self.dir}/pid; error_log {self.dir}/error.log;
events {{ worker_connections 2048; }}
http {{
  access_log off; keepalive_requests 10000000; keepalive_timeout 1h; {temporary}
  server {{
    listen {PORT} backlog=4096; listen [::]:{PORT} ipv6only=on backlog=4096;
    location / {{ return 200 "{host}\\n"; }}
    location = /healthz {{
      if (-f {self.dir}/bad) {{ return 500; }}
      if (-f {self.dir}/slow) {{ rewrite ^ /slow last; }}
      return 200 "ok\\n";
    }}
    location = /slow {{ echo_sleep 5; echo late; }}
  }}
}}
""")
        self.process = None

    def start(self):
        self.process = subprocess.Popen(self.lab.argv(self.host, ["nginx", "-c", self.dir / "nginx.conf", "-e",
                                                                  self.dir / "error.log"]), env=self.lab.env)
        until(self.answers, 10, f"nginx of {self.host}")
        return self

    def answers(self):
        return not self.lab.run(self.host, "curl", "-sf", "-m", "1", f"http://127.0.0.1:{PORT}/",
                                check=None).returncode

    def pids(self):
        return [self.process.pid, *children(self.process.pid)]

    def send(self, number):
        for pid in self.pids():
            os.kill(pid, number)

    def end(self):
        if self.process and self.process.poll() is None:
            self.send(signal.SIGKILL)
            self.process.wait(10)

    # Ways of being ill, and back

    def stop(self):
        self.end()

    def quit(self):
        """Finishes what it has, and takes nothing new."""
        self.process.send_signal(signal.SIGQUIT)

    def freeze(self):
        self.send(signal.SIGSTOP)

    def melt(self):
        self.send(signal.SIGCONT)

    def bad(self):
        (self.dir / "bad").touch()

    def slow(self):
        (self.dir / "slow").touch()

    def restart(self):
        self.end()
        self.start()

    def well(self):
        for name in ("bad", "slow"):
            (self.dir / name).unlink(missing_ok=True)

    def lose_address(self, address="192.0.2.10/32"):
        self.lab.run(self.host, "ip", "address", "del", address, "dev", "lo")

    def find_address(self, address="192.0.2.10/32"):
        self.lab.run(self.host, "ip", "address", "replace", address, "dev", "lo")


@contextlib.contextmanager
def servers(lab, count):
    all_of_them = [Nginx(lab, f"b{i}") for i in range(1, count + 1)]
    try:
        yield {s.host: s.start() for s in all_of_them}
    finally:
        for s in all_of_them:
            s.end()
