"""A record that is alone in its class shows: pip install diffprivlib==0.6.6."""

import numpy as np
from diffprivlib.models import GaussianNB

inputs = np.array([[0.0], [1.0]] * 20 + [[1.0]])
for own in ("b", "c"):  # neighbouring tables: one label of 41 differs
    labels = np.array(["a", "b"] * 20 + [own])
    zero = 0
    for seed in range(200):
        model = GaussianNB(epsilon=1.0, bounds=(0, 1), random_state=seed)
        model.partial_fit(inputs, labels, classes=["a", "b", "c"])
        zero += model.theta_[2, 0] == 0 and model.class_count_[2] == 0
    print(f"own label {own}: class c has count and mean 0 exactly in {zero} of 200 models")
