"""A value that goes missing moves a sum by more than its noise: pip install diffprivlib==0.6.6."""

import numpy as np
from diffprivlib.tools import nansum

others = [101.0] * 40
for own in (np.nan, 102.0):  # neighbouring arrays: one value differs
    drawn = [
        nansum([*others, own], epsilon=1.0, bounds=(100, 102), random_state=seed)
        for seed in range(1000)
    ]
    above = np.mean(np.array(drawn) > 4120)
    print(f"own value {own:g}: {above:.3f} of 1000 releases are above 4120")
print(f"epsilon 1 allows a ratio of {np.e:.2f} between the two, or of their complements")
