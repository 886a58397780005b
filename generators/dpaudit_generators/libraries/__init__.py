"""Libraries of synthetic data generators, each in a pinned environment of its own.

The adapters are not imported here: the reference worker runs them in their library's environment.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from dpaudit.external.environments import Environment
from dpaudit.external.generator import Library

_HERE = Path(__file__).parent


def _library(
    name: str, summary: str, methods: Mapping[str, str], *, python: str = "3.11"
) -> Library:
    return Library(
        name=name,
        environment=Environment(name=name, pins=_HERE / "pins" / f"{name}.txt", pythons=(python,)),
        adapter=_HERE / "adapters" / f"{name.replace('-', '_')}_adapter.py",
        methods=methods,
        summary=summary,
    )


datasynthesizer = _library(
    "datasynthesizer",
    "DataSynthesizer 0.1.13: independent histograms, or PrivBayes",
    {"independent": "Independent", "correlated": "Correlated"},
)
smartnoise_synth = _library(
    "smartnoise-synth",
    "smartnoise-synth 1.0.8 of OpenDP: marginals (MST, AIM, MWEM) and GANs",
    {
        "mst": "SmartnoiseMst",
        "aim": "SmartnoiseAim",
        "mwem": "SmartnoiseMwem",
        "dpgan": "SmartnoiseDpGan",
        "dpctgan": "SmartnoiseDpCtgan",
        "patectgan": "SmartnoisePateCtgan",
        "pategan": "SmartnoisePateGan",
    },
)
dpmm = _library(
    "dpmm",
    "dpmm 0.1.9 of SAS: marginals (PrivBayes, MST, AIM)",
    {"priv-bayes": "DpmmPrivBayes", "mst": "DpmmMst", "aim": "DpmmAim"},
)
ctgan = _library("ctgan", "ctgan 0.12.1 of SDV: not differentially private", {"ctgan": "SdvCtgan"})
diffprivlib = _library(
    "diffprivlib",
    "diffprivlib 0.6.6 of IBM: generators made of its histograms and models",
    {
        "histogram": "Histogram",
        "histogramdd": "HistogramDd",
        "gaussian-nb": "NaiveBayes",
        "linear-regression": "LinearRegression",
    },
)
opacus = _library(
    "opacus",
    "opacus 1.6.0: an autoregressive network trained by its DP-SGD",
    {"autoregressive": "Autoregressive"},
)
opendp = _library(
    "opendp",
    "opendp 0.16.0 with mbi: contingency tables (AIM, MST, fixed marginals)",
    {"aim": "OpenDpAim", "mst": "OpenDpMst", "fixed": "OpenDpFixed"},
)
privsyn_core = _library(
    "privsyn-core", "privsyn-core 0.1.1: marginals (PrivSyn)", {"privsyn": "PrivSyn"}
)
synthpriv = _library(
    "synthpriv",
    "synthpriv 0.2.1: a Gaussian copula with Laplace noise, and a GAN",
    {"dp-copula": "DpCopula", "dp-gan": "DpGan"},
)
pac_synth = _library(
    "pac-synth",
    "pac-synth 0.0.8 of Microsoft: noisy counts of combinations, in compiled code",
    {"aggregate-seeded": "AggregateSeeded"},
)
dp_cgans = _library(
    "dp-cgans", "dp-cgans 0.3.0: a conditional GAN with noisy gradients", {"dp-cgan": "DpCgan"}
)
dpart = _library(
    "dpart",
    "dpart 0.1.2 of Hazy: columns one after another (independent, PrivBayes, DP-synthpop)",
    {
        "independent": "DpartIndependent",
        "priv-bayes": "DpartPrivBayes",
        "synthpop": "DpartSynthpop",
    },
    python="3.9",
)
