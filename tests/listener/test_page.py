# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
The status page in a real browser, without a window: what it shows, by mouse and by keyboard, on a phone and on a desk.
Pictures of it stay in build/page/, to be looked at.
"""
import base64
import os
import time

import pytest

from conftest import ROOT
from sample import backend, pool, snapshot

pytestmark = pytest.mark.full
webdriver = pytest.importorskip("selenium.webdriver")
from selenium.common.exceptions import StaleElementReferenceException  # noqa: E402
from selenium.webdriver.chrome.service import Service  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import WebDriverWait  # noqa: E402

PICTURES = ROOT / os.environ.get("BUILD", "build") / "page"
DESK, PHONE = (1280, 900), (320, 640)


class Browser:
    def __init__(self, home):
        options = webdriver.ChromeOptions()
        for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu",
                         f"--user-data-dir={home}/profile", "--lang=en"):
            options.add_argument(argument)
        options.binary_location = "/usr/bin/chromium"
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        env = {**os.environ, "HOME": str(home), "TMPDIR": str(home)}
        self.driver = webdriver.Chrome(service=Service("/usr/bin/chromedriver", env=env), options=options)

    def look(self, size, dark=False):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": False})
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {
            "features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})

    def open(self, listener):
        self.driver.get(f"http://127.0.0.1:{listener.port}/")

    def script(self, text, *arguments):
        return self.driver.execute_script(text, *arguments)

    def find(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def text(self, selector="body"):
        return self.script("return document.querySelector(arguments[0])?.innerText || ''", selector)

    def wait(self, condition, seconds=15):
        """Until it holds. The page may replace an element while it is looked at."""
        return WebDriverWait(self.driver, seconds, 0.05, [StaleElementReferenceException]).until(lambda _: condition())

    def click(self, selector):
        self.script("document.querySelector(arguments[0]).scrollIntoView({block: 'center'})", selector)
        self.find(selector)[0].click()

    def press(self, *keys):
        webdriver.ActionChains(self.driver).send_keys(*keys).perform()

    def focused(self):
        return self.script("const e = document.activeElement; return e.id || e.className || e.tagName")

    def picture(self, name):
        PICTURES.mkdir(parents=True, exist_ok=True)
        width, height = self.script("return [innerWidth, document.documentElement.scrollHeight]")
        shot = self.driver.execute_cdp_cmd("Page.captureScreenshot", {
            "format": "png", "captureBeyondViewport": True,
            "clip": {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}})
        (PICTURES / f"{name}.png").write_bytes(base64.b64decode(shot["data"]))

    def complaints(self):
        return [entry["message"] for entry in self.driver.get_log("browser")]


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    it = Browser(tmp_path_factory.mktemp("chromium"))
    yield it
    it.driver.quit()


@pytest.fixture
def browser(chromium, listener):
    """With the page of an instance that has its troubles, alive."""
    chromium.look(DESK)
    assert listener.feed(snapshot(0)) and listener.feed(snapshot(1))
    chromium.complaints()  # those of the browser's own first page
    chromium.open(listener)
    chromium.wait(lambda: "web-6" in chromium.text("#app"))
    yield chromium
    assert chromium.complaints() == []
    chromium.driver.get("about:blank")


# The least contrast of any text on the page: 4.5 is what WCAG asks for.
CONTRAST = """
const canvas = new OffscreenCanvas(1, 1).getContext("2d", {willReadFrequently: true});
const rgba = (c) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = c; canvas.fillRect(0, 0, 1, 1);
	const d = canvas.getImageData(0, 0, 1, 1).data; return [d[0], d[1], d[2], d[3] / 255]; };
const over = (a, b) => [0, 1, 2].map((i) => a[i] * a[3] + b[i] * (1 - a[3])).concat(1);
const light = (c) => { const [r, g, b] = c.map((v) => v / 255).map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
	return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const behind = (e) => { if (!e) return [255, 255, 255, 1]; return over(rgba(getComputedStyle(e).backgroundColor), behind(e.parentElement)); };
const opacity = (e) => e ? Number(getComputedStyle(e).opacity) * opacity(e.parentElement) : 1;
let least = [99, ""];
const walk = document.createTreeWalker(document.getElementById("app"), NodeFilter.SHOW_TEXT);
while (walk.nextNode()) {
	const e = walk.currentNode.parentElement;
	if (!walk.currentNode.data.trim() || e.closest("svg, .hidden") || !e.offsetParent) continue;
	const back = behind(e), c = rgba(getComputedStyle(e).color), front = over([...c.slice(0, 3), c[3] * opacity(e)], back);
	const [hi, lo] = [light(front), light(back)].sort((a, b) => b - a), ratio = (hi + 0.05) / (lo + 0.05);
	if (ratio < least[0]) least = [ratio, e.className + ": " + walk.currentNode.data];
}
return least;
"""


@pytest.mark.parametrize("size", [DESK, PHONE, (390, 844), (820, 1180)], ids=lambda s: f"{s[0]}")
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_fits_and_can_be_read(browser, size, dark):
    browser.look(size, dark)
    assert browser.script("return document.documentElement.scrollWidth") <= size[0]
    wide = browser.script("return [...document.querySelectorAll('#app *')].filter((e) => !e.closest('svg') && "
                          "e.getBoundingClientRect().right > innerWidth + 1).map((e) => e.className)")
    assert wide == []
    ratio, where = browser.script(CONTRAST)
    assert ratio >= 4.5, where
    browser.picture(f"{size[0]}-{'dark' if dark else 'light'}")


def test_says_what_is_the_matter(browser):
    assert browser.text("h1") == "All 3 services are ready"
    hero = browser.text(".hero")
    assert "web-2 in pool web is down" in hero and "timeout after 1 s: connected, no answer" in hero
    assert "What runs differs from its file in 2 points." in hero
    web = browser.text("#pool-web")
    for text in ("3.12 % moving, settles in 11 m", "4/5", "drain", "12 flows left", "safe to remove in 11 m",
                 "40.0 % by weight", "down"):
        assert text in web, text
    everything = browser.text("#app")
    for text in ("dropped no neighbour", "check the route to the backend", "live: pool web: web-5 up -> drain",
                 "rollback to 4", "44.0 MiB", "341, 28.7 ms on average"):
        assert text in everything, text


def test_services_that_are_not_ready(browser, listener):
    whole = snapshot(2)
    whole["show"]["services"][2]["ready"] = False
    whole["show"]["interfaces"][1]["mode"] = "missing"
    whole["ready"]["api"] = {"ready": False, "reason": "interface eth1 is missing"}
    assert listener.feed(whole)
    browser.wait(lambda: browser.text("h1") == "1 of 3 services is not ready")
    assert "Interface eth1 is missing" in browser.text(".hero")
    assert browser.find(".hero.bad")
    browser.picture("not-ready")


def test_lives(browser, listener):
    def forwarded():
        return browser.text(".verdicts .count")

    first = forwarded()
    assert listener.feed(snapshot(5))
    browser.wait(lambda: forwarded() not in ("", first))
    browser.wait(lambda: len(browser.find(".tile .spark .stroke")) == 2)
    assert browser.text(".live") == "Live"


def test_click_opens_details(browser):
    browser.click("#pool-web .backend-name")
    browser.wait(lambda: "Went down, came up" in browser.text("#pool-web .details"))
    assert "status 200" in browser.text("#pool-web .details")
    assert browser.find("#pool-web .backend-name")[0].get_attribute("aria-expanded") == "true"
    browser.picture("details")
    browser.click("#pool-web .backend-name")
    browser.wait(lambda: not browser.find("#pool-web .details"))


def test_ring_and_table_point_at_each_other(browser):
    webdriver.ActionChains(browser.driver).move_to_element(browser.find("#pool-web .backend-name")[2]).perform()
    browser.wait(lambda: "web-3" in browser.script("return document.querySelector('#pool-web .ring').textContent"))
    assert browser.find("#pool-web .ring.hot .piece.on")
    browser.script("document.querySelectorAll('#pool-api .piece')[1].dispatchEvent(new MouseEvent('click'))")
    browser.wait(lambda: "fd00::2" in browser.text("#pool-api .details"))


def test_keyboard(browser, listener):
    browser.press(Keys.TAB)
    assert browser.focused() == "skip"
    browser.press(Keys.ENTER)
    browser.wait(lambda: browser.focused() == "page" or browser.focused() == "content")
    while browser.focused() != "backend-name":
        browser.press(Keys.TAB)
    browser.press(Keys.ENTER)
    browser.wait(lambda: browser.find("#pool-web .details"))
    outline = browser.script("return getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    # The focus stays where it is while the page lives on.
    browser.script("document.activeElement.dataset.mine = 1")
    assert listener.feed(snapshot(9))
    browser.wait(lambda: "16 m" in browser.text("#pool-web") or "safe to remove in 11 m" in browser.text("#pool-web"))
    assert browser.script("return document.activeElement.dataset.mine") == "1"
    browser.press(Keys.SPACE)
    browser.wait(lambda: not browser.find("#pool-web .details"))


def test_pause(browser, listener):
    browser.script("document.querySelector('.live').focus()")
    browser.press(Keys.SPACE)
    browser.wait(lambda: browser.text(".live") == "Paused")
    before = browser.text(".verdicts")
    assert listener.feed(snapshot(7))
    time.sleep(2.5)  # nothing may happen
    assert browser.text(".verdicts") == before
    browser.press(Keys.SPACE)
    browser.wait(lambda: browser.text(".live") == "Live" and browser.text(".verdicts") != before)


def test_old_news(browser):
    """What runs is no longer heard of, though the listener answers."""
    browser.wait(lambda: browser.text(".live").endswith(" s old"))
    assert browser.find(".live.lost")


def test_nothing_attached(browser, listener):
    whole = snapshot(3)
    for key in ("show", "stats", "ready", "memory", "unresolved", "rings", "health"):
        del whole[key]
    assert listener.feed({**whole, "attached": False})
    browser.wait(lambda: browser.text("h1") == "Not attached")
    assert "Generations" in browser.text("#app")


def test_a_thousand_backends(browser, listener):
    whole = snapshot(4)
    many = [backend(f"b-{i}", f"10.1.{i // 250}.{i % 250 + 1}", 1) for i in range(1000)]
    many[999].update(health="down", points=0)
    whole["show"]["pools"] = [pool("many", many)]
    whole["rings"] = []
    whole["stats"]["backends"] = [{"pool": "many", "name": b["name"], "identity": b["name"], "address": b["address"],
                                   "packets": 5, "bytes": 500, "flows": 0, "state": "up"} for b in many]
    assert listener.feed(whole)
    browser.wait(lambda: "Show all 1" in browser.text("#pool-many"))
    assert "b-999" in browser.find("#pool-many .backend-name")[0].text  # what is down comes first
    assert len(browser.find("#pool-many .backend-name")) == 40
    browser.click("#pool-many .all")
    browser.wait(lambda: len(browser.find("#pool-many .backend-name")) == 1000)
    took = browser.script("const t = performance.now(); draw(); return performance.now() - t")
    assert took < 500


def test_without_script(browser, listener):
    browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.look(PHONE)
        browser.open(listener)
        assert browser.find("#plain")[0].is_displayed() and not browser.find("#app")[0].is_displayed()
        assert "Pool web: ring, 2000 points" in browser.find("#plain")[0].text
        browser.picture("without-script")
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_nothing_else_may_run(browser):
    """The policy holds: what somebody managed to write into the page does nothing."""
    browser.script("try { const s = document.createElement('script'); s.textContent = 'window.hacked = 1';"
                   "document.body.append(s); } catch { }")
    assert browser.script("return window.hacked") is None
    assert browser.script("return fetch('http://127.0.0.2:9/').then(() => 'sent', () => 'refused')") == "refused"
    assert all("Content Security Policy" in text or "TrustedScript" in text or "violates" in text
               for text in browser.complaints())


def test_listener_goes_away(chromium, listener):
    chromium.look(DESK)
    assert listener.feed(snapshot(0))
    chromium.open(listener)
    chromium.wait(lambda: chromium.text("h1"))
    listener.process.stdin.close()
    assert listener.process.wait(20) == 0
    listener.socket.close()
    chromium.wait(lambda: chromium.text(".live") == "Connection lost")
    assert chromium.text("h1")  # the last that is known stays
    assert all("ERR_CONNECTION" in text for text in chromium.complaints())
    chromium.driver.get("about:blank")
    listener.close = lambda: 0
