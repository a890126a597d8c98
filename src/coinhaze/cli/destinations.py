"""coinhaze destinations: where one node's money went."""

from __future__ import annotations

from typing import Any

import click

from coinhaze.cli.options import Command
from coinhaze.cli.origins import ReportOfNode, report_on_node, takes_node


@click.command("destinations", cls=Command)
@takes_node
def command(**given: Any) -> None:
    """Show where NODE's money went, largest share first, who holds it, and its flow by hop.

    Example: coinhaze destinations transfers.csv alice
    """
    from coinhaze.report import destinations as words

    kind = ReportOfNode(
        words.explain_forward,
        text=words.destinations_text,
        json=words.destinations_json,
        dot=words.destinations_dot,
        html=words.destinations_page,
    )
    report_on_node(kind, "destinations", "following", **given)
