"""The model has the class of one record: pip install diffprivlib==0.6.6."""

import warnings

import numpy as np
from diffprivlib.models import GaussianNB

warnings.simplefilter("error")  # a PrivacyLeakWarning would end the program: there is none
inputs = np.array([[0.0], [1.0]] * 20 + [[1.0]])
for own in ("b", "c"):  # neighbouring tables: one label of 41 differs
    labels = np.array(["a", "b"] * 20 + [own])
    known = {
        tuple(
            GaussianNB(epsilon=1.0, bounds=(0, 1), random_state=seed).fit(inputs, labels).classes_
        )
        for seed in range(200)
    }
    print(f"own label {own}: classes of 200 models: {known}")
