"""Looking at pages as people do, and noting what the browser asked of whom."""

from __future__ import annotations

import base64
from typing import Any
from urllib.parse import urlsplit

DESKTOP, PHONE, SMALL = (1280, 900), (390, 844), (320, 640)


class Browsing:
    """Tabs of one browser; requests to other hosts are blocked, and noted."""

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
        context.set_default_timeout(30_000)
        self._contexts.append(context)
        host = urlsplit(site.address).netloc
        context.route("**/*", lambda route: self._judge(route, host))
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

    def _judge(self, route: Any, host: str) -> None:
        address = urlsplit(route.request.url)
        if address.netloc == host:
            route.continue_()
        else:
            self.elsewhere.append(route.request.url)
            route.abort()

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


def settled(page: Any) -> None:
    """Wait until nothing is being loaded."""
    page.wait_for_load_state("networkidle")
