"""Every attack on the trials of one role: split, fit, choose a threshold, score once, bound.

The trials of each world are split by a seeded shuffle before any score is computed. Classifier,
threshold and direction come from the fitting part alone (threshold and direction by
cross-validation inside it); the scored part is scored once. Scoring trials that helped to choose
the threshold would break the confidence level.
"""
