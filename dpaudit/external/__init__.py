"""Generators that run in a separate process: another environment, another language."""
