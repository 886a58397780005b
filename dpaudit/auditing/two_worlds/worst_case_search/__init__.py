"""The worst case that shows most, found by small trials before an audit (`worst_case="search"`).

A leak shows on some tables only: a range read off the data on a table with an outlier, a batch size
on a table that fills its last batch. The candidates are all worst cases of the schema. Rounds have
about equal numbers of trainings, and the better half of the candidates enters the next round
(sequential halving: Karnin, Koren and Somekh 2013, "Almost Optimal Exploration in Multi-Armed
Bandits").

The verdict needs no correction for the choice, for the reasons of `target_search`: tables are built
from the public schema alone, and the search's trainings have their own role and random streams.
Given the worst case found, the audit is the same as if it had been named beforehand.
"""
