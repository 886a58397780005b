"""Audits of many records per shadow model: each model serves them all, by a fair coin for each."""
