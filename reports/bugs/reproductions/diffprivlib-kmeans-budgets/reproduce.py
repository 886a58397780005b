"""K-means spends more than its epsilon: pip install diffprivlib==0.6.6."""

from unittest.mock import patch

import numpy as np
from diffprivlib.models import KMeans, k_means

RECORDS = 60
given = {"GeometricFolded": [], "LaplaceBoundedDomain": []}  # epsilons, by mechanism


def noted(name):
    """The mechanism, which notes its epsilon."""
    kind = getattr(k_means, name)

    def make(*, epsilon, **others):
        given[name].append(epsilon)
        return kind(epsilon=epsilon, **others)

    return patch.object(k_means, name, make)


for dims in (2, 6, 20, 100):
    for epsilons in given.values():
        epsilons.clear()
    half = np.arange(RECORDS) % 2
    table = np.repeat(half, dims).reshape(RECORDS, dims).astype(float)
    model = KMeans(2, epsilon=1.0, bounds=(0, 1), random_state=0)
    with noted("GeometricFolded"), noted("LaplaceBoundedDomain"):
        model.fit(table)
    (count,), (each,) = (set(given[name]) for name in given)
    steps = len(given["GeometricFolded"])  # one mechanism for the counts of a step
    spent = steps * (count + dims * each)  # a record is in one cluster
    print(f"{dims} columns: {steps} steps, {count:.4f} + {dims} x {each:.4f} each: {spent:.2f}")
print("epsilon given: 1.0")
