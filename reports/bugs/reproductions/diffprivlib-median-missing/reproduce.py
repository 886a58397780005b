"""One missing value makes the answer NaN: pip install diffprivlib==0.6.6."""

import numpy as np
from diffprivlib.tools import median

others = [number / 41 for number in range(1, 41)]
for own in (0.5, np.nan):  # neighbouring arrays: one value differs
    missing = sum(
        np.isnan(median([*others, own], epsilon=1.0, bounds=(0, 1), random_state=seed))
        for seed in range(1000)
    )
    print(f"own value {own:g}: {missing} of 1000 releases are NaN")
