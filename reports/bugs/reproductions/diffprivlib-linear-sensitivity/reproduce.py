"""A sum of squares without noise: pip install diffprivlib==0.6.6."""

import numpy as np
from diffprivlib.models import LinearRegression

inputs = np.full((11, 1), 0.1)
for own in (0.1, 1.0):  # neighbouring tables: the input of one record differs
    inputs[-1] = own
    table, slopes = inputs.copy(), []
    for seed in range(1000):
        model = LinearRegression(
            epsilon=1.0, bounds_X=(0, 1), bounds_y=(0, 1), fit_intercept=False, random_state=seed
        )
        slopes.append(abs(model.fit(table, np.full(11, 0.5)).coef_[0]))
    print(f"own input {own:g}: {np.mean(np.array(slopes) > 10):.3f} of 1000 slopes are beyond 10")
print(f"epsilon 1 allows a ratio of {np.e:.2f} between the two")
