"""Membership inference attacks on synthetic tables, found by dpaudit through its registry."""
