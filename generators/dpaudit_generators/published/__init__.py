"""Published PATE-GANs re-created: one trainer, one switch for each deviation."""
