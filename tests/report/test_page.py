"""The page in a real browser: no error, every section, phone, dark mode, and nothing loaded."""

from __future__ import annotations

import shutil
from itertools import pairwise

import pytest

from safespn.cli.app import run
from tests.cli.conftest import ONE_NETWORK, patients

SECTIONS = [
    "fit", "comparison", "relevance", "densities", "queries", "measurements", "disagreements", "unlikely", "quality",
    "safety", "training", "soft-labels", "settings",
]  # fmt: skip


# One process: each would fit the models of its own pages.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("demo")]


@pytest.fixture(scope="module")
def browser():
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver_path = shutil.which("chromedriver")
    if chromium is None or driver_path is None:
        pytest.skip("needs Chromium and its driver (Debian: chromium, chromium-driver)")
    webdriver = pytest.importorskip("selenium.webdriver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver_path))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def pages(tmp_path_factory, demo_run):
    """Reports of the demo, of a mixed table with gaps, and of one without unlabelled rows; a learning curve."""
    folder = tmp_path_factory.mktemp("pages")
    shutil.copy(demo_run[1] / "report.html", folder / "numbers.html")
    for name, frame in {"mixed": patients(), "labelled": patients(60, 60)}.items():
        frame.rename(columns={"age": "age <b>in years</b> " + "x" * 80}).to_csv(folder / f"{name}.csv", index=False)
        files = ["-o", str(folder / "m"), "--report", str(folder / f"{name}.html")]
        assert run(["fit", str(folder / f"{name}.csv"), "-t", "outcome", "-q", *files]) == 0
    curve = ["--labelled", "8,20", "--trials", "2", "--report", str(folder / "curve.html")]
    assert run(["evaluate", str(folder / "labelled.csv"), "-t", "outcome", *ONE_NETWORK, "-q", *curve]) == 0
    return folder


def show(browser, path, width: int, scheme: str) -> None:
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 500},
    )
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    browser.get_log("browser"), browser.get_log("performance")
    browser.get(path.as_uri())


CONTRAST = """
function light(text) {
  const parts = text.match(/[\\d.]+/g).slice(0, 3).map(v => v / 255)
    .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
}
function back(element) {
  for (let at = element; at; at = at.parentElement) {
    const colour = getComputedStyle(at).backgroundColor;
    if (colour !== 'rgba(0, 0, 0, 0)') return colour;
  }
  return 'rgb(255, 255, 255)';
}
let worst = 21;
const texts = 'p, li, dt, dd, th, td, h1, h2, h3, a, strong, caption, small, svg text';
for (const element of document.querySelectorAll(texts)) {
  if (element.classList.contains('skip')) continue;
  const style = getComputedStyle(element);
  const front = light(element.tagName === 'text' ? style.fill : style.color), behind = light(back(element));
  worst = Math.min(worst, (Math.max(front, behind) + 0.05) / (Math.min(front, behind) + 0.05));
}
return worst;
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("name", ["numbers", "mixed", "labelled", "curve"])
def test_page(browser, pages, name, width, scheme):
    show(browser, pages / f"{name}.html", width, scheme)
    assert browser.get_log("browser") == []
    requested = [
        entry["message"] for entry in browser.get_log("performance") if "requestWillBeSent" in entry["message"]
    ]
    assert not [message for message in requested if '"url":"http' in message]
    size = browser.execute_script("return [document.documentElement.scrollWidth, window.innerWidth]")
    assert size[0] <= width, size
    sections = browser.execute_script("return [...document.querySelectorAll('main section')].map(s => s.id)")
    assert sections == (["curve"] if name == "curve" else SECTIONS)
    empty = browser.execute_script(
        "return [...document.querySelectorAll('main section')].filter(s => s.innerText.length < 40).map(s => s.id)"
    )
    assert empty == []
    assert browser.execute_script(CONTRAST) >= 4.5


@pytest.mark.parametrize("name", ["numbers", "mixed", "labelled", "curve"])
def test_page_is_accessible(browser, pages, name):
    show(browser, pages / f"{name}.html", 390, "light")
    look = browser.execute_script
    levels = look("return [...document.querySelectorAll('h1, h2, h3')].map(h => +h.tagName[1])")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert look("return document.documentElement.lang") == "en"
    pictures = look(
        "return [...document.querySelectorAll('svg')].filter(s => s.getAttribute('aria-hidden') !== 'true')"
        ".map(s => s.getAttribute('aria-label'))"
    )
    assert all(pictures)
    assert look("return [...document.querySelectorAll('nav a')].every(a => document.querySelector(a.hash))")
    assert look("return [...document.querySelectorAll('th')].every(th => th.scope)")
    ids = look("return [...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))
    assert look("return document.scripts.length") == 0


def test_names_from_the_table_are_text_and_no_markup(pages):
    page = (pages / "mixed.html").read_text()
    assert "<b>in years" not in page
    assert "&lt;b&gt;in years" in page
