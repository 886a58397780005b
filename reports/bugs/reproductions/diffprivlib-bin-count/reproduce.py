"""The number of bins tells of one record: pip install diffprivlib==0.6.6."""

import warnings

from diffprivlib.tools import histogram

warnings.simplefilter("error")  # a PrivacyLeakWarning would end the program: there is none
for own in (50.0, 100.0):  # neighbouring arrays: one value differs
    bins = {
        len(histogram([50.0] * 40 + [own], epsilon=1.0, bins="auto", range=(0, 100))[0])
        for _ in range(100)
    }
    print(f"own value {own:g}: number of bins in 100 releases: {sorted(bins)}")
