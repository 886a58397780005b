"""Settles whether a differentially private synthetic data generator keeps its promise."""
