"""A wallet's coins, each and together: bits, exposure, and which to spend."""
