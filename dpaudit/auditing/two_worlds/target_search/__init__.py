"""The most vulnerable record, found by small attacks before an audit (`target="vulnerable"`).

Published audits chose their target this way, at six times the cost of the audit itself ("The
Elusive Pursuit of Reproducing PATE-GAN", TMLR 2025, section 6.2: 64 candidates with 100 models in
each world). Here every model is trained without a random half of the candidates, so each model
serves all candidates (as the shadow models of Carlini et al. 2022, "Membership Inference Attacks
From First Principles", serve all records), and as many as the audit itself trains are plenty.

The verdict needs no correction for the choice. The target is a function of the table and of the
search's trainings. Those have their own role, so their random streams are independent of the
audit's, and no attack is fitted or scored on any of them. Given the target, the audit's trials are
the same as if it had been named beforehand, and the bound holds for each target.
"""
