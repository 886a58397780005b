"""One record's value, released by nanmean with almost no noise: pip install diffprivlib==0.6.6."""

import numpy as np
from diffprivlib.tools import nanmean

others = [np.nan] * 50
for own in (0.0, 1.0):  # neighbouring arrays: one value differs
    drawn = [
        nanmean([*others, own], epsilon=1.0, bounds=(0, 1), random_state=seed)
        for seed in range(1000)
    ]
    print(f"own value {own:g}: {np.mean(np.array(drawn) > 0.5):.3f} of 1000 releases are above 0.5")
print(f"epsilon 1 allows a ratio of {np.e:.2f} between the two")
