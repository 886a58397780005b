"""The prediction task of `utility` and `frontier`: label, test rows and classifiers."""

from __future__ import annotations

from typing import Annotated

import typer

LabelColumn = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column to predict. Default: the schema's label.",
        show_default=False,
    ),
]
PositiveValue = Annotated[
    str | None,
    typer.Option(
        metavar="VALUE",
        help="Value of the label that counts as positive. Default: the second of two.",
        show_default=False,
    ),
]
TestShare = Annotated[
    float, typer.Option(metavar="SHARE", help="Share of --data held out for testing.")
]
Classifiers = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="Classifier to train; repeatable. Default: the twelve of the PATE-GAN paper.",
        show_default=False,
    ),
]
