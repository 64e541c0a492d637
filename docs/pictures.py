"""Photograph the demonstration's report for the README, in light and dark.

    python run_findit.py demo
    python docs/pictures.py

It needs Chromium, chromedriver and selenium, and writes docs/pictures/<what>-<light|dark>.png.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.common.by import By

HERE = Path(__file__).resolve().parent
SIZE = (1240, 750)  # both heat maps side by side
SHOWN = {"model": "FindIt-Nano-px", "format": "xyxy_json_bbox_2d", "order": "worst"}
"""Which answer is shown: by filters of the gallery, the first one."""


def main() -> None:
    """Open the report twice and write the pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("report", nargs="?", type=Path, default=Path("outputs/demo/report.html"))
    parser.add_argument("--out", type=Path, default=HERE / "pictures")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    browser = start_browser()
    try:
        for theme in ("light", "dark"):
            use_theme(browser, theme)
            browser.get(given.report.resolve().as_uri())
            browser.save_screenshot(str(given.out / f"report-{theme}.png"))
            formats = element(browser, "#formats")
            browser.execute_script("arguments[0].style.padding = '0 16px 16px'", formats)
            formats.screenshot(str(given.out / f"formats-{theme}.png"))
            open_answer(browser)
            element(browser, "dialog[open]").screenshot(str(given.out / f"answer-{theme}.png"))
    finally:
        browser.quit()
    for path in sorted(given.out.glob("*.png")):
        print(f"{path}: {path.stat().st_size / 1000:.0f} kB")


def start_browser() -> Any:
    """Start Chromium without a window."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("chromium-browser") or ""
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(flag)
    options.add_argument(f"--window-size={SIZE[0]},{SIZE[1]}")
    return webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))


def use_theme(browser: Any, theme: str) -> None:
    """Prefer a colour scheme, and no motion, as a reader's system would."""
    features = {"prefers-color-scheme": theme, "prefers-reduced-motion": "reduce"}
    preferences = [{"name": name, "value": value} for name, value in features.items()]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": preferences})
    width, height = SIZE
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def open_answer(browser: Any) -> None:
    """Open the first answer of the gallery that the filters let through."""
    for name, value in SHOWN.items():
        browser.execute_script(
            "const input = document.getElementById(arguments[0]); input.value = arguments[1];"
            "input.dispatchEvent(new Event('input', {bubbles: true}));"
            "input.dispatchEvent(new Event('change', {bubbles: true}));",
            name,
            value,
        )
    element(browser, "#cards > *").click()


def element(browser: Any, selector: str) -> Any:
    """Return the first element, scrolled to."""
    target = browser.find_element(By.CSS_SELECTOR, selector)
    browser.execute_script("arguments[0].scrollIntoView()", target)
    return target


if __name__ == "__main__":
    main()
