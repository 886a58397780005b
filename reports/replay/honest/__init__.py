"""Honest generators, each at exactly its claim, and the same code with one mistake."""
