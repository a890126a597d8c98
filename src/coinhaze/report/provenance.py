"""The provenance of a result: version, inputs with digests, settings, method and accuracy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from coinhaze import __version__
from coinhaze.formats.registry import digest_of
from coinhaze.ledger.parquet import folder_files, is_folder
from coinhaze.measures import Scores


def provenance(
    scores: Scores, *, inputs: Sequence[str | Path] = (), command: str = ""
) -> dict[str, object]:
    """Return the provenance of scores, identical for the same inputs and command."""
    chain = scores.chain
    return made_by(inputs=inputs, command=command) | {
        "settings": chain.settings,
        "method": scores.method,
        "widest_interval_bits": scores.width,
        "miss": scores.summary().miss,
        "joint_miss": scores.joint_miss,
        "standard_error_bits": scores.summary().standard_error,
        "conservation_error": scores.conservation,
        "lower_bounds": scores.summary().lower_bounds,
        "completeness": scores.completeness.record(),
        "notes": list(scores.notes),
    }


def made_by(*, inputs: Sequence[str | Path] = (), command: str = "") -> dict[str, object]:
    """Return the software, the command, and every file that was read with its digest."""
    return {
        "software": f"coinhaze {__version__}",
        "command": command,
        "inputs": input_digests(inputs),
    }


def input_digests(inputs: Sequence[str | Path]) -> list[dict[str, str]]:
    """Return every file that was read, with its SHA-256."""
    return [{"file": name, "sha256": digest_of(path)} for name, path in _files(inputs)]


def _files(inputs: Sequence[str | Path]) -> list[tuple[str, Path]]:
    """Return every file that was read; those of a ledger folder as `folder/file`."""
    found = []
    for path in map(Path, inputs):
        if is_folder(path):
            found += [(f"{path.name}/{file.name}", file) for file in folder_files(path)]
        else:
            found.append((path.name, path))
    return found
