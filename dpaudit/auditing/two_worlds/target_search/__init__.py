"""The most vulnerable record, found by small attacks before an audit (`target="vulnerable"`).

Published audits chose their target so, at six times the price of the audit itself ("The Elusive
Pursuit of Reproducing PATE-GAN", TMLR 2025, section 6.2: 64 candidates with 100 models in each
world). Here every model is trained without a random half of the candidates, so that each of them
serves all candidates (as the shadow models of Carlini et al. 2022, "Membership Inference Attacks
From First Principles", serve all records), and as many as the audit has are plenty.

The verdict needs no correction for the choice. The target is a function of the table and of the
search's trainings; those have a role of their own, so their random streams are independent of the
audit's, and no attack is fitted on or scored on any of them. Given the target, the audit's trials
are what they would have been had it been named beforehand, and the bound holds for each target.
"""
