"""Networks of many models in one stack, and the records they make; for every generator with one.

Every model's numbers are bit-identical to those it would get alone: `architecture` says what layers
there are, `stack` has the networks and their optimisers, `source` the random numbers of generator
networks and the form of their records, `model` trained networks without torch. Importing this
package does not import torch.
"""
