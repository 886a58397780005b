"""Networks of many models in one stack, and the records they make; for every generator with one.

Every model's numbers are bit-identical to those it would get alone: `stack` has layers, their
gradients and Adam, `source` the generator networks with their random numbers and the form of
records, `model` trained networks without torch. Importing this package does not import torch.
"""
