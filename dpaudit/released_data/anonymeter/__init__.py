"""Attacks of the library anonymeter, in an environment of its own."""
