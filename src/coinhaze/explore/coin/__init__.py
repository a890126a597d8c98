"""One coin: its origins, the flow of its money, exposure, and other rules and measures."""
