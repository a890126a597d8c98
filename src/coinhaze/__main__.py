"""Run the command with `python -m coinhaze`."""

from coinhaze.working_folder import drop_from_path

drop_from_path()  # before anything outside the standard library is imported

from coinhaze.cli import main  # noqa: E402

main()
