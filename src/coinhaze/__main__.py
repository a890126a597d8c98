"""Run the command with `python -m coinhaze`."""

from coinhaze.cli import main

main()
