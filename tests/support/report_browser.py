"""The report in a real browser: what tests of it share."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from vlmeval_findit.leaderboard import make_board
from vlmeval_findit.report import make_page
from vlmeval_findit.scoring import load_runs

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
NEEDS_CHROMIUM = pytest.mark.skipif(
    CHROMIUM is None or DRIVER is None, reason="chromium and chromedriver are not installed"
)
IN_BROWSER = [NEEDS_CHROMIUM, pytest.mark.slow]
EVIL = "<img src=x onerror=\"document.title='run'\"><script>document.title = 'run'</script>"
"""What no page should run."""
LOADED = "return document.readyState === 'complete'"  # On a busy machine get() may return before


def start_browser(**experimental: Any) -> Any:
    """Start Chromium without a window; it notes what pages log and load."""
    webdriver = pytest.importorskip("selenium.webdriver")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(flag)
    for name, value in experimental.items():
        options.add_experimental_option(name, value)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))
    driver.set_window_size(1200, 1000)
    return driver


def write_report(runs: Path) -> Path:
    """Write the report of a folder of runs, and return it."""
    path = runs.parent / "report.html"
    html = make_page(make_board(load_runs([runs])), datetime.now(UTC))
    path.write_text(html, encoding="utf-8")
    return path


@contextmanager
def opened_page(
    browser: Any, page: Path, address: str = "", title: str = "FindIt report"
) -> Iterator[Any]:
    """Open a page; afterwards nothing that it shows was run, and nothing was logged."""
    browser.get("about:blank")
    browser.get_log("browser")
    browser.get_log("performance")
    browser.get(page.as_uri() + address)
    shown(browser, LOADED)
    yield browser
    logged = browser.get_log("browser")
    assert logged == [], logged
    assert browser.title == title
    assert browser.execute_script("return document.querySelectorAll('main img').length") == 0


@contextmanager
def emulated(browser: Any, width: int = 0, **features: str) -> Iterator[None]:
    """Have a window of another width, or a reader of other preferences (``color_scheme``)."""
    preferences = [
        {"name": f"prefers-{name.replace('_', '-')}", "value": value}
        for name, value in features.items()
    ]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": preferences})
    if width:
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        yield
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def shown(browser: Any, script: str) -> Any:
    """Return what the script returns once it is true, which it must be soon."""
    wait = pytest.importorskip("selenium.webdriver.support.wait")
    waiting = wait.WebDriverWait(browser, 60, poll_frequency=0.02)
    return waiting.until(lambda driver: driver.execute_script(script))


def texts(browser: Any, selector: str) -> list[str]:
    script = "return [...document.querySelectorAll(arguments[0])].map(node => node.innerText)"
    return browser.execute_script(script, selector)


def text_of(browser: Any, name: str) -> str:
    return browser.execute_script("return document.getElementById(arguments[0]).textContent", name)


def choose(browser: Any, **values: str) -> list[str]:
    """Set inputs, a select by value or by how an option begins; returns the cards shown then."""
    for name, value in values.items():
        browser.execute_script(
            "const e = document.getElementById(arguments[0]), text = arguments[1];"
            "const options = [...(e.options || [])];"
            "const option = options.find(each => each.value === text) ||"
            "  options.find(each => each.textContent.startsWith(text));"
            "e.value = option ? option.value : text;"
            "e.dispatchEvent(new Event(e.type === 'search' ? 'input' : 'change', {bubbles: true}))",
            name,
            value,
        )
    return texts(browser, "#cards .card")


def press(browser: Any, *keys: str) -> None:
    """Press keys where the focus is, as a keyboard does: what has it may just go away.

    Keys that are held begin a text, as ``Keys.SHIFT + "a"``.
    """
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.keys import Keys

    for text in keys:
        held = [key for key in text if key in (Keys.CONTROL, Keys.ALT, Keys.SHIFT)]
        chain = ActionChains(browser)
        for key in held:
            chain.key_down(key)
        chain.send_keys(text[len(held) :])
        for key in held:
            chain.key_up(key)
        chain.perform()


def drawn(browser: Any, section: str) -> Any:
    """Return the chart of a section, once the script has drawn it."""
    browser.execute_script(f"document.querySelector('{section} .chart').scrollIntoView()")
    shown(browser, f"return document.querySelector('{section} .drawing > div svg')")
    return browser.find_element("css selector", f"{section} .chart")


def luminance(colour: Sequence[float]) -> float:
    parts = [c / 255 for c in colour]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(ink: Sequence[float], ground: Sequence[float]) -> float:
    low, high = sorted((luminance(ink), luminance(ground)))
    return (high + 0.05) / (low + 0.05)
