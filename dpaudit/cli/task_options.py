"""Options that say what classifiers are to predict, and on which rows: of utility and frontier."""

from __future__ import annotations

from typing import Annotated

import typer

LabelColumn = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="The column to predict. Default: the schema's label.",
        show_default=False,
    ),
]
PositiveValue = Annotated[
    str | None,
    typer.Option(
        metavar="VALUE",
        help="Its value to predict. Default: the second of two.",
        show_default=False,
    ),
]
TestShare = Annotated[
    float, typer.Option(metavar="SHARE", help="Share of --data held out for tests.")
]
Classifiers = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="A classifier; repeatable. Default: the twelve of the papers.",
        show_default=False,
    ),
]
