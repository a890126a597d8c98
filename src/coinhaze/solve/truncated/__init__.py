"""Acyclic chains in one topological pass, exact or with proven truncation."""
