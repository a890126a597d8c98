"""How much of what nodes hold came from a list, by every rule side by side."""
