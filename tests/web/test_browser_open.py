"""The ways into the page, in a real browser, and what of them others get to see."""

from __future__ import annotations

import http.server
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest
from benchmarks.served import Served, serving

from coinhaze.cli.serve import way_in
from web.browsing import PATIENCE

CHROMIUM = shutil.which("chromium")
PAGES = ("/", "/l/town", "/api/v1/ledgers")


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    if CHROMIUM is None:
        pytest.skip("no chromium here: the page cannot be opened")
    ledger = tmp_path / "town.csv"
    ledger.write_text("from,to,value\nalice,carol,3\nbob,carol,5\n")
    with serving(ledger) as found:
        yield found


@dataclass
class Listener:
    """A server on another port of the same host that writes down all it is told."""

    port: int = 0
    told: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def listening(own: str) -> Iterator[Listener]:
    """Listen until the end of the block; its page asks `own` for whatever a page can."""
    found = Listener()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found.told.append((self.path, dict(self.headers)))
            page = (
                f'<img src="{own}/"><iframe src="{own}/l/town"></iframe><a href="{own}/">in</a>'
                f'<form action="{own}/enter" method="post"><button>post</button></form>'
            ).encode()
            # A login of the same name, asked for where the page asks for its own.
            wants = self.path == "/enter"
            self.send_response(401 if wants else 200)
            if wants:
                self.send_header("www-authenticate", 'Basic realm="coinhaze", charset="UTF-8"')
            self.send_header("content-type", "text/html")
            self.send_header("content-length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, *_: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        found.port = server.server_port
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield found
        server.shutdown()
        thread.join(10)


@contextmanager
def browser_at(folder: Path) -> Iterator[Any]:
    """Open a browser that keeps its history in a folder."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            str(folder), executable_path=CHROMIUM, args=["--no-sandbox"]
        )
        context.set_default_timeout(PATIENCE)
        yield context
        context.close()


def history_of(folder: Path) -> list[str]:
    """Read the addresses that a browser's history holds, once it is closed."""
    import sqlite3

    with sqlite3.connect(folder / "Default" / "History") as history:
        return [url for (url,) in history.execute("SELECT url FROM urls")]


def test_nothing_that_others_see_or_history_keeps_opens_the_page(
    served: Served, tmp_path: Path
) -> None:
    folder, seen = tmp_path / "profile", list[str]()
    elsewhere = tmp_path / "elsewhere.html"
    elsewhere.write_text(f'<a href="{served.address}/l/town">a link</a>')
    with listening(served.address) as listener:
        with browser_at(folder) as context:
            context.on("page", lambda page: page.on("framenavigated", lambda f: seen.append(f.url)))
            page = context.new_page()
            # Not in yet: the page says what to do, and tells nothing.
            page.goto(elsewhere.as_uri())
            page.click("a")
            page.get_by_text("only with its token").first.wait_for()
            assert "town.csv" not in page.content()
            # The printed address opens, and is replaced.
            page.goto(served.first)
            page.get_by_text("town.csv").first.wait_for()
            assert page.url == f"{served.address}/"
            assert context.cookies() == []
            assert (
                page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}])").find(
                    served.token
                )
                == -1
            )
            # Reload, a second tab, a link on another site, and back.
            page.reload()
            page.get_by_text("town.csv").first.wait_for()
            second = context.new_page()
            second.goto(f"{served.address}/l/town")
            second.get_by_text("town.csv").first.wait_for()
            second.goto(elsewhere.as_uri())
            second.click("a")
            second.get_by_text("town.csv").first.wait_for()
            second.goto(f"{served.address}/l/town/coin/carol")
            second.locator("#bits").wait_for()
            second.go_back()
            second.get_by_text("town.csv").first.wait_for()
            assert "code=" not in second.url
            # The same browser visits another port: by hand, by link, at the same paths.
            other = context.new_page()
            for path in ("/", "/l/town", "/l/town/coin/carol", "/?a"):
                other.goto(listener.address + path)
            page.evaluate(f"location.href = '{listener.address}/from-the-page'")
            page.wait_for_url(f"{listener.address}/from-the-page")
            with pytest.raises(Exception, match="ERR_INVALID_AUTH_CREDENTIALS"):
                other.goto(f"{listener.address}/enter")
            seen += [page.url, second.url, other.url]
        told = listener.told
    assert len(told) >= 6
    for path, headers in told:
        # Whatever it was told, it sends on: as it came, and what each header holds as a token.
        lower = {name.lower(): value for name, value in headers.items()}
        assert not {"cookie", "authorization"} & lower.keys()
        assert served.address not in lower.get("referer", "")
        for way in (path, *PAGES):
            sent = {k: v for k, v in headers.items() if k.lower() not in ("host", "connection")}
            answer = httpx2.get(served.address + way, headers=sent, timeout=60)
            assert answer.status_code in (401, 403)
            assert "town.csv" not in answer.text
    kept = {url for url in (*history_of(folder), *seen, served.first) if served.address in url}
    assert any("/l/town" in url for url in kept)
    assert not any(served.token in url for url in kept)
    with browser_at(tmp_path / "another") as context:
        page = context.new_page()
        for url in sorted(kept):
            assert page.goto(url).status == 401
            page.get_by_text("only with its token").first.wait_for()
            assert "town.csv" not in page.content()
        # A code that was used says so kindly, and the token can be pasted there.
        page.goto(served.first)
        page.get_by_text("used already").wait_for()
        page.fill("#enter-token", "wrong")
        page.click("#enter-form button")
        page.get_by_text("not the token").wait_for()
        page.fill("#enter-token", served.token)
        page.click("#enter-form button")
        page.get_by_text("town.csv").first.wait_for()


def test_open_leads_in_by_a_file_that_only_this_user_can_read(
    served: Served, tmp_path: Path
) -> None:
    with way_in(served.first) as file, browser_at(tmp_path / "profile") as context:
        page = context.new_page()
        page.goto(file)
        page.get_by_text("town.csv").first.wait_for()
        assert page.url == f"{served.address}/"


def test_only_this_user_can_read_the_file_that_holds_the_code() -> None:
    with way_in("http://127.0.0.1:1/?code=abc") as address:
        page = Path(address.removeprefix("file://"))
        assert page.stat().st_mode & 0o077 == 0
        assert page.parent.stat().st_mode & 0o077 == 0
    assert not page.exists()
