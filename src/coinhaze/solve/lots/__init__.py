"""Ordered policies: money moves as lots, each from one source."""
