"""Scores of a history: passes over its tape, what they give, and questions about them."""
