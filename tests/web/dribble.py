"""`coinhaze serve` with no patience for requests that dribble in."""

from __future__ import annotations

from dataclasses import replace

from coinhaze.cli import serve
from coinhaze.web import server
from coinhaze.web.security.guard import Guard


def main() -> None:
    patient = server.server_of

    def prompt(app: Guard) -> object:
        app.limits = replace(app.limits, headers_within=0.5)
        return patient(app)

    server.server_of = prompt  # type: ignore[assignment]
    serve.command()


if __name__ == "__main__":
    main()
