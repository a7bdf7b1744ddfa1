#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Draws docs/status.png anew: the status page of a daemon in a laboratory (scripts/lab.sh), while a backend is down,
another one drains, and clients talk to the rest. Needs root, and what `scripts/setup.sh full` installs.

  scripts/picture.py [FILE]
"""
import base64
import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile
import time

TOP = pathlib.Path(__file__).resolve().parent.parent
os.environ["RINGLB_LAB"] = f"picture{os.getpid()}"
SIZE = 1280, 1600
CHECK = "{type: http, interval: 1s, timeout: 500ms, fall: 2}"
CONFIG = f"""interfaces: [eth0]
hash_key: 00112233445566778899aabbccddeeff
tunnel_source: {{ipv4: 10.77.0.1}}
status_listen: 127.0.0.1:9391
pools:
  - name: web
    settle_after: 60s
    quorum: 3
    check: {CHECK}
    backends:
      - {{name: web-1, address: 10.77.0.11}}
      - {{name: web-2, address: 10.77.0.12}}
      - {{name: web-3, address: 10.77.0.13, weight: 2}}
      - {{name: web-4, address: 10.77.0.14}}
      - {{name: web-5, address: 10.77.0.15}}
      - {{name: web-6, address: 10.77.0.16}}
  - name: api
    placement: maglev
    check: {CHECK}
    backends:
      - {{name: api-1, address: 10.77.0.17}}
      - {{name: api-2, address: 10.77.0.18, weight: 3}}
services:
  - {{name: www, address: 192.0.2.10, port: 80, protocol: tcp, pool: web, forward: ipip}}
  - {{name: www6, address: "2001:db8::10", port: 80, protocol: tcp, pool: web, forward: ipip}}
  - {{name: api, address: 192.0.2.11, port: 8080, protocol: tcp, pool: api, forward: l2}}
"""


def lab(*argv):
    return subprocess.run([TOP / "scripts/lab.sh", *argv], check=True, stdout=subprocess.DEVNULL)


def on(host, *argv, **options):
    return subprocess.Popen([TOP / "scripts/lab.sh", "exec", host, *map(str, argv)], **options)


@contextlib.contextmanager
def traffic(address, port, ports, pause):
    """Connections that stay open and ask again and again."""
    with on("client", TOP / "tests/lab/client.py", address, port, "--ports", ports, "--keep", "--pause", pause,
            "--until-eof", stdin=subprocess.PIPE, stdout=subprocess.PIPE) as p:
        p.stdout.readline()
        yield
        p.stdin.close()
        p.stdout.read()


def draw(file):
    """In the balancer's namespace: the page after it has lived for a while."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
    options = webdriver.ChromeOptions()
    with tempfile.TemporaryDirectory() as home:
        for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--lang=en",
                         f"--user-data-dir={home}/profile"):
            options.add_argument(argument)
        options.binary_location = "/usr/bin/chromium"
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        driver = webdriver.Chrome(service=Service("/usr/bin/chromedriver", env={**os.environ, "HOME": home}),
                                  options=options)
        try:
            driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
                "width": SIZE[0], "height": SIZE[1], "deviceScaleFactor": 1, "mobile": False})
            driver.get("http://127.0.0.1:9391/")
            print("open", flush=True)
            sys.stdin.readline()
            height = driver.execute_script("return document.querySelector('#pool-api').getBoundingClientRect().bottom + 20")
            shot = driver.execute_cdp_cmd("Page.captureScreenshot", {
                "format": "png", "captureBeyondViewport": True,
                "clip": {"x": 0, "y": 0, "width": SIZE[0], "height": height, "scale": 1}})
            pathlib.Path(file).write_bytes(base64.b64decode(shot["data"]))
            complaints = driver.get_log("browser")
            if complaints:
                sys.exit(f"the browser complains: {complaints}")
        finally:
            driver.quit()


def ringlb(*argv, host="lb"):
    if on(host, "ringlb", "-q", *argv).wait():
        sys.exit(f"ringlb {' '.join(map(str, argv))} failed")


def until_down(name):
    while True:
        shown = on("lb", "ringlb", "show", "web", stdout=subprocess.PIPE, text=True).communicate()[0]
        if any(line.split()[:1] == [name] and " down " in line for line in shown.splitlines()):
            return
        time.sleep(0.1)


def main(file):
    work = pathlib.Path(tempfile.mkdtemp(prefix="ringlb-picture-"))
    config = work / "ringlb.yaml"
    config.write_text(CONFIG)
    try:
        lab("up", "--backends", "8")
        for i in range(1, 7):
            ringlb("decap", "--from", "10.77.0.1", "eth0", host=f"b{i}")
        ringlb("attach", config)
        with on("lb", "ringlb", "run", config, stderr=subprocess.PIPE, text=True) as daemon:
            for line in daemon.stderr:
                if "serving" in line:
                    break
            with traffic("192.0.2.11", 8080, "21000-21029", 0.02), \
                 on("lb", TOP / "scripts/picture.py", "--draw", file, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                    text=True) as browser:
                if browser.stdout.readline() != "open\n":
                    sys.exit("no browser")
                with traffic("192.0.2.10", 80, "23000-23119", 0.1):  # the drained one's last
                    ringlb("backend", "set", "web", "web-5", "--state", "drain", "--save")
                    time.sleep(3)
                with traffic("192.0.2.10", 80, "24000-24199", 0.05), traffic("2001:db8::10", 80, "22000-22059", 0.05):
                    lab("stop", "b2")
                    until_down("web-2")
                    time.sleep(25)
                    browser.communicate("now\n")
            daemon.terminate()
            daemon.stderr.read()
        return browser.returncode
    finally:
        lab("down")
        config.unlink()
        for other in work.iterdir():
            other.unlink()
        work.rmdir()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--draw"]:
        draw(sys.argv[2])
    else:
        sys.exit(main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else TOP / "docs/status.png").resolve()))
