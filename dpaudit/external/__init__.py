"""Generators that run in a process of their own: another environment, another language."""
