"""A variance has no limit: pip install smartnoise-synth==1.0.5.

The file is loaded by itself: the package around it needs a scikit-learn below 0.24.
"""

from pathlib import Path
from runpy import run_path

import numpy as np
import pandas as pd
import snsynth

file = Path(snsynth.__file__).parent / "models" / "dp_covariance.py"
covariance = run_path(str(file))["DPcovariance"]

others = [(i % 10 + 0.5, (i * 7) % 10 + 0.5) for i in range(99)]
np.random.seed(0)
for name, own in (("with 5", (5.0, 5.0)), ("with 1000", (1000.0, 1000.0))):
    table = pd.DataFrame([*others, own], columns=["x", "y"])
    bounds = pd.DataFrame({"x": [0.0, 10.0], "y": [0.0, 10.0]})
    released = covariance(len(table), ["x", "y"], bounds, 1.0).release(table)
    print(f"{name}: variance of x {released[0]:.1f}; noise has scale 6")
