"""Looking at pages as people do, and noting what the browser asked of whom."""

from __future__ import annotations

import base64
from typing import Any
from urllib.parse import urlsplit

DESKTOP, PHONE, SMALL = (1280, 900), (390, 844), (320, 640)
PATIENCE = 120_000  # milliseconds until a page is as expected; kernels may be compiled first


class Browsing:
    """Tabs of one browser; requests to other hosts lead nowhere, and are noted."""

    def __init__(self, browser: Any) -> None:
        self._browser = browser
        self._contexts: list[Any] = []
        self.elsewhere: list[str] = []
        self.complaints: list[str] = []

    def open(
        self,
        site: Any,
        path: str = "/",
        *,
        size: tuple[int, int] = DESKTOP,
        dark: bool = False,
        script: bool = True,
    ) -> Any:
        """Open a page in a new window of somebody who has come in before."""
        context = self._browser.new_context(
            viewport={"width": size[0], "height": size[1]},
            color_scheme="dark" if dark else "light",
            java_script_enabled=script,
            reduced_motion="reduce",
            # As somebody who has come in before: the browser sends its login with every request.
            extra_http_headers={"authorization": login_of(site.token)},
        )
        context.set_default_timeout(PATIENCE)
        self._contexts.append(context)
        host = urlsplit(site.address).netloc
        context.on("request", lambda request: self._judge(request.url, host))
        page = context.new_page()
        page.on("console", self._listen)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.goto(site.address + path)
        return page

    def close(self) -> None:
        """Close all, and check that all stayed here."""
        for context in self._contexts:
            context.close()
        assert self.elsewhere == []
        assert self.complaints == []

    def _judge(self, address: str, host: str) -> None:
        if urlsplit(address).netloc.rpartition("@")[2] != host:  # name and password come before
            self.elsewhere.append(address)

    def _listen(self, message: Any) -> None:
        # Pages that say something is not there have their status: browsers tell of that too.
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.complaints.append(message.text)


def login_of(token: str) -> str:
    """Give the header that a browser sends once it keeps the login."""
    return "Basic " + base64.b64encode(f"coinhaze:{token}".encode()).decode()


def log_in(page: Any, token: str) -> None:
    """Let the browser keep the login as it does for people; what it downloads needs that."""
    status = page.evaluate(
        """token => new Promise(done => {
            const asked = new XMLHttpRequest();
            asked.open("GET", "/enter", true, "coinhaze", token);
            asked.onloadend = () => done(asked.status);
            asked.send();
        })""",
        token,
    )
    assert status == 200


def width_of(page: Any) -> int:
    """Give how wide a page is laid out: more than the window means sideways scrolling."""
    width: int = page.evaluate("document.documentElement.scrollWidth")
    return width


def expect(what: Any) -> Any:
    """Expect something of a page or of a part of it, and wait until it is so.

    What a person's click changes may come with the next page: `is_visible`, `count` and
    `evaluate` look at once, and may still see the old one.
    """
    from playwright.sync_api import expect as expected

    expected.set_options(timeout=PATIENCE)
    return expected(what)


def whole(page: Any) -> None:
    """Wait until the parts that come after the page are there."""
    expect(page.locator("[data-load], [aria-busy=true]")).to_have_count(0)
