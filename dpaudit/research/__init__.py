"""Methods that only studies use; no audit, command or generator depends on them.

- `bands`, `order_statistics`: simultaneous bounds over all thresholds (`reports/calibration`)
- `universal`: e-values for arms of unequal size (`reports/calibration`)
- `smooth_sensitivity`: the price of publishing a data-dependent epsilon (`reports/pate_adult`)
- `holm`: several generators at once; documented for users, in no study yet
"""
