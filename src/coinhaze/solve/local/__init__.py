"""One coin: its row of B on as little of its past as the asked width takes."""
