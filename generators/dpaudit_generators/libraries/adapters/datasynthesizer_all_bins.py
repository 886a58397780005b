"""Correlated mode of DataSynthesizer 0.1.13 with one expression changed: it measures all bins.

The library measures the bins up to the highest that a record of the table is in. It is the control
of that finding: run by the reference worker, as an adapter.
"""

import inspect

from DataSynthesizer.lib import PrivBayes
from datasynthesizer_adapter import Correlated, DataDescriber

BINS = {}
measure = PrivBayes.get_noisy_distribution_of_attributes
if inspect.getsource(measure).count("range(int(encoded_dataset[attr].max()) + 1)") != 1:
    raise ImportError("this release of DataSynthesizer does not have the line that is changed")


def measure_all(attributes, *rest):
    """As the library, whose `range` of each attribute in turn has all bins here."""
    bins = iter(attributes)
    PrivBayes.range = lambda _: range(BINS[next(bins)])
    try:
        return measure(attributes, *rest)
    finally:
        del PrivBayes.range


PrivBayes.get_noisy_distribution_of_attributes = measure_all
encode = DataDescriber.encode_dataset_into_binning_indices


def encode_and_count(describer):
    """Encodes the table, and notes how many bins each column has."""
    BINS.update(
        {name: len(one.distribution_bins) for name, one in describer.attr_to_column.items()}
    )
    return encode(describer)


DataDescriber.encode_dataset_into_binning_indices = encode_and_count


class AllBins(Correlated):
    """PrivBayes, of all bins."""
