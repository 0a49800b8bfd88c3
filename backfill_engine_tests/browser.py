"""A headless browser that clicks, by WebDriver: JSON over HTTP, all in the standard library."""

import base64
import json
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backfill_engine_tests.ports import find_free_port

_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
_ENTER = "\ue007"
_SETTINGS = {
    "capabilities": {
        "alwaysMatch": {
            "goog:chromeOptions": {
                "args": [
                    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
                    *("--no-first-run", "--disable-background-networking", "--disable-sync"),
                    *("--disable-component-update", "--window-size=1440,1000"),
                ]
            }
        }
    }
}


@dataclass(frozen=True)
class Browser:
    """One page, and what a person does with it; elements are named by XPath.

    Attributes:
        session: the address of the WebDriver session.
    """

    session: str

    def open(self, url: str) -> None:
        """Opens a page."""
        _ask("POST", f"{self.session}/url", {"url": url})

    def click(self, xpath: str, *, seconds: float = 60) -> None:
        """Clicks an element as soon as it can be clicked."""
        self._do(xpath, "click", {}, seconds=seconds)

    def fill(self, xpath: str, text: str) -> None:
        """Replaces the text of a field, and presses Enter."""
        self._do(xpath, "clear", {}, seconds=60)
        self._do(xpath, "value", {"text": text + _ENTER}, seconds=60)

    def type(self, text: str) -> None:
        """Types where the cursor is."""
        pressed = [
            {"type": kind, "value": letter} for letter in text for kind in ("keyDown", "keyUp")
        ]
        keyboard = {"type": "key", "id": "keyboard", "actions": pressed}
        _ask("POST", f"{self.session}/actions", {"actions": [keyboard]})

    def wait_for(self, xpath: str, *, seconds: float = 60) -> str:
        """Waits until an element shows, and returns its text."""
        found = self._find(xpath, seconds=seconds)
        return _ask("GET", f"{self.session}/element/{found}/text")

    def read_text(self) -> str:
        """All text that the page shows."""
        return self.wait_for("//body")

    def resize(self, height: int = 1000) -> None:
        """Makes the window higher or lower, for what a picture is to show."""
        size = {"width": 1440, "height": height}
        _ask("POST", f"{self.session}/window/rect", size)

    def take_screenshot(self, path: Path) -> None:
        """Writes what is seen as a PNG."""
        path.write_bytes(base64.b64decode(_ask("GET", f"{self.session}/screenshot")))

    def _find(self, xpath: str, *, seconds: float) -> str:
        deadline = time.monotonic() + seconds
        while True:
            query = {"using": "xpath", "value": xpath}
            found = _ask("POST", f"{self.session}/elements", query)
            if found:
                return found[0][_ELEMENT]
            assert time.monotonic() < deadline, f"no {xpath} within {seconds} s"
            time.sleep(0.5)

    def _do(self, xpath: str, what: str, body: dict[str, Any], *, seconds: float) -> None:
        """Does it again while the page is still moving: elements come, go and cover each other."""
        deadline = time.monotonic() + seconds
        while True:
            found = self._find(xpath, seconds=max(1, deadline - time.monotonic()))
            try:
                _ask("POST", f"{self.session}/element/{found}/{what}", body)
            except PageError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.5)
            else:
                return


class PageError(Exception):
    """What the driver answers of an element that can't be used, in its words."""


def _ask(method: str, url: str, body: dict[str, Any] | None = None) -> Any:
    request = urllib.request.Request(
        url,
        data=None if body is None else json.dumps(body).encode(),
        headers={"content-type": "application/json"},
        method=method,
    )
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.load(answer)["value"]
    except urllib.error.HTTPError as error:
        raise PageError(json.load(error)["value"]["message"]) from None


@contextmanager
def open_browser() -> Iterator[Browser]:
    """A browser of its own, without a profile; it ends with the block."""
    program = shutil.which("chromedriver")
    assert program, "no chromedriver: install Debian's packages chromium and chromium-driver"
    port = find_free_port()
    driver = subprocess.Popen([program, f"--port={port}"], stdout=subprocess.DEVNULL)
    try:
        address = f"http://127.0.0.1:{port}"
        _wait_until_up(address)
        session = _ask("POST", f"{address}/session", _SETTINGS)["sessionId"]
        yield Browser(f"{address}/session/{session}")
        _ask("DELETE", f"{address}/session/{session}")
    finally:
        driver.terminate()
        driver.wait(timeout=30)


def _wait_until_up(address: str) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            if _ask("GET", f"{address}/status")["ready"]:
                return
        except OSError:
            assert time.monotonic() < deadline, "the browser's driver doesn't answer"
        time.sleep(0.2)
