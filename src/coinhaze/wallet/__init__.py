"""A wallet's coins, individually and together: bits, exposure, and which to spend."""
