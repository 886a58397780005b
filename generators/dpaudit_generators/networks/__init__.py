"""Networks of many models in one stack, and the records they make; for every generator with one.

Every model's numbers are bit-identical to those it would get alone (`slices`): `stack` has layers
and their gradients, `adam` trains them, `draws` their random numbers, `rows` the form of
records, `source` the generator networks with their noise. Importing this package does not import
torch.
"""
