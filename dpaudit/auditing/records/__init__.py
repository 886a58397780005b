"""Audits of many records per shadow model: each model includes each record by a fair coin."""
