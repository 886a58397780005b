"""Why each deviation can be seen at a level, or at none: one line each, for the page."""

from __future__ import annotations

from typing import Final

WHY: Final = {
    "original": "the critic reads the records: its score leaks, and after long training the rows; "
    "what it learns from, under its noisy labels, is the records",
    "updated": "noise of scale λ, not 1/λ: labels are the votes of teachers who all have the last "
    "part; the target is in it in 2 of 5 trainings here",
    "synthcity": "rows: the generator is drawn towards real records; released: the student learns "
    "from them",
    "turing": "as original",
    "borealis": "the batch follows the number of records, and so does the number of labels; labels "
    "alone would tell more than is claimed only if all five parts shifted to the attacker's liking",
    "smartnoise": "k is 1 of 1999 records and 2 of 2000, and two teachers' tie is a coin; it shows "
    "because at λ 100 an iteration of labels without noise is spent before the budget is checked; "
    "at λ 0.001 labels show less than is claimed",
    "pate-gan-switched": "keeps its promise; the null control of this table",
    "no-pate": "the critic reads the records: its score leaks, and generated rows follow; what it "
    "learns from is the records",
    "partition-all-rows": "one record moves all k votes, hidden by noise of 1/λ; a perfect "
    "attacker would prove it, but teachers of all records hardly move for one",
    "partition-last-only": "one record moves all votes, but only if it is in the last part, with "
    "chance 1/k; the others are not used at all",
    "partition-reshuffled": "one record reaches all teachers in time; as `partition-all-rows`",
    "accountant-missing-log": "over-counts, and the stop is by the cost that no votes change: the "
    "same labels, in the same number",
    "accountant-exponent-slip": "under-counts what is reported; the stop is by the cost that no "
    "votes change, so the same labels in the same number: only `dpaudit trace` sees it",
    "bounds-from-data": "the output's range is the table's (where the other records are "
    "not all equal)",
    "noise-gaussian-on-labels": "noise on the majority, as if one label were asked: thousands are, "
    "so they average out; teachers that have time to learn show it",
    "noise-scale-inverted": "noise of scale 0.001 on votes hides none",
    "delta-xor": "3.8 times as many labels, which the accountant's slack pays for",
    "delta-multiplied": "24 times as many labels: a perfect attacker gets 2 from them, which takes "
    "thousands of models to prove",
    "labels-copied": "synthetic labels are the table's, in its order; the naive features of the "
    "average case do not show it",
    "teachers-refitted": "no matter of privacy: any teacher may be asked",
    "output-not-inverted": "a fixed function of the output",
    "integers-truncated": "a fixed function of the output",
    "partition-by-position": "removing the first record shifts every part by one; a perfect "
    "attacker would prove it with tables made for that, here parts are alike",
    "teachers-from-rows": "k is 1 or 2 by one record; noise of 1/λ on either hides it",
    "batch-from-rows": "the number of labels gives the number of records wherever n // k is below "
    "the public batch (6 records and k 2: 3, without one 2), which it is not in the average case",
    "student-sees-real-rows": "its score of the target, and what it learns from",
    "generator-sees-real-rows": "its weights follow them; after longer training (synthcity) its "
    "rows, too",
    "conditions-from-data": "rows follow their conditions, which are real values; the student is "
    "shown these as well",
    "queries-not-accounted": "free labels are not used, so they say little; if they were, "
    "1000 iterations of them would break the claim",
    "delta-ignored": "1/(n√n): few records pay for many labels, and their number gives n",
    "budget-exceeded": "at any λ one iteration is answered: at λ 100 without noise, but after one "
    "iteration teachers have hardly learnt; at λ 0.001 it is 2 % too many",
    "one-noise-charged-as-two": "one draw is enough and is charged as more: it over-counts",
    "sampling-noise-differs": "no matter of privacy: another public distribution",
    "output-shifted": "a fixed function of the output",
    "penalty-from-teachers": "with `no-pate`, which it needs: what that shows",
}
"""By implementation and switch."""
