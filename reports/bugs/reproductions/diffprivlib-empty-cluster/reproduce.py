"""A record that is alone in its cluster shows in k-means: pip install diffprivlib==0.6.6."""

import numpy as np
from diffprivlib.models import KMeans

TRIALS, FEATURES = 200, 6
for own in (0.0, 1.0):  # neighbouring tables: one record of 201 differs
    table = np.vstack([np.zeros((200, FEATURES)), np.full((1, FEATURES), own)])
    outside = 0
    for seed in range(TRIALS):
        model = KMeans(2, epsilon=1.0, bounds=(0, 1), random_state=seed).fit(table)
        other = model.cluster_centers_[model.cluster_centers_.sum(axis=1).argmax()]
        outside += bool(((other < 0.25) | (other > 0.75)).any())
    print(f"own record {own:g}: second centre outside [0.25, 0.75] in {outside} of {TRIALS}")
print(f"epsilon 1 allows a ratio of {np.e:.2f} between the two, or of their complements")
