"""Distributions built from this checkout, and bare environments that they are installed into."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
UV = str(Path(sys.executable).with_name("uv"))


def done(*command: str | Path, folder: Path = ROOT) -> str:
    """Run a command that must succeed; give what it prints."""
    result = subprocess.run(
        [str(word) for word in command], cwd=folder, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, f"{command}: {result.stdout[-2000:]}{result.stderr[-4000:]}"
    return result.stdout


def build(folder: Path) -> tuple[Path, Path]:
    """Build a wheel and a source distribution with the pinned tools; give their paths."""
    done(UV, "build", "-q", "--no-build-isolation", "--python", sys.executable, "-o", folder)
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, sdist


@dataclass(frozen=True)
class Bare:
    """An environment with one distribution and what it depends on, in the pinned versions."""

    folder: Path

    @classmethod
    def made(cls, folder: Path, distribution: Path, extra: str = "") -> Bare:
        """Make a new environment and install a distribution into it, with an extra or none."""
        wanted = f"coinhaze{f'[{extra}]' if extra else ''} @ {distribution.as_uri()}"
        done(UV, "venv", "-q", "--python", sys.executable, folder)
        pinned = ("-c", ROOT / "requirements/dev.txt")
        done(UV, "pip", "install", "-q", "--python", folder / "bin/python", *pinned, wanted)
        return cls(folder)

    @property
    def python(self) -> Path:
        return self.folder / "bin/python"

    def run(self, *words: str, folder: Path) -> subprocess.CompletedProcess[str]:
        """Run `coinhaze` with these words; nothing of the checkout is on its path."""
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
        return subprocess.run(
            [str(self.folder / "bin/coinhaze"), *words],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
