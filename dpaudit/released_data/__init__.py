"""Audits a released synthetic table without its generator."""
