"""The documentation's page of options: `python -m coinhaze.options > docs/options.md`."""

from __future__ import annotations

from coinhaze.options import FORMER, PASSED_ON, SUBJECTS, Option, options_of


def options_page() -> str:
    """Give the documentation's page of options, as Markdown."""
    lines = [
        "# Options",
        "",
        "<!-- Written by `python -m coinhaze.options`; a test compares. -->",
        "",
        "Every option of the commands and of the Python functions. An option is spelled the same",
        "in every command that takes it; `coinhaze COMMAND --help` lists those of a command, and",
        "where a command has another default it says so there.",
    ]
    for subject in SUBJECTS:
        lines += ["", f"## {str(subject.__doc__).rstrip('.')}", ""]
        lines += ["| command line | Python | values | meaning | default |", "|---|---|---|---|---|"]
        lines += [_page_row(option) for option in options_of(subject) if not option.hidden]
    lines += ["", "## Former spellings", ""]
    lines += ["They still work until version 2, and say what replaced them.", ""]
    lines += ["| command | before | now |", "|---|---|---|"]
    lines += [
        f"| `{command}` | `{before}` | {f'`{now}`' if now else 'the default'} |"
        for command, spellings in FORMER.items()
        for before, now in spellings.items()
    ]
    forms = "`-o FILE`, whose name says what is written"
    lines += [f"| `{command}` | `--as html` | {forms} |" for command in ("origins", "wallet")]
    return "\n".join(lines) + "\n"


def _page_row(option: Option) -> str:
    spelling = ", ".join(filter(None, (option.short, option.spelling)))
    values = option.all_choices() if option.only_choices else (option.shown_metavar(),)
    kind = {bool: "", int: "whole number", float: "number"}.get(option.kind, "text")
    said = option.help_text().removeprefix(option.help)
    default = said.strip().removeprefix("[default: ").removesuffix("]")
    cells = (
        f"`{spelling}`" if option.command_line else "",
        f"`{option.name}`" if option.subject in PASSED_ON else "",
        " or ".join(f"`{v}`" for word in values for v in word.split("|") if v) or kind,
        option.help,
        default,
    )
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    print(options_page(), end="")
