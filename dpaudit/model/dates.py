"""Dates as numbers: days since 1970-01-01, with fractions for times, in UTC.

A column keeps how its dates are written, so that a generator receives them as they were.
"""

from __future__ import annotations

import itertools
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpaudit.errors import SchemaError

TIMESTAMP: Final = "timestamp"
"""The form of dates that are no text, but pandas' own."""
MIXED: Final = "ISO8601"
"""The form of text in any of the ways of ISO 8601, with time zones too."""
_DAYS: Final = ("%Y-%m-%d", "%d.%m.%Y", "%Y/%m/%d", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y")
"""Ways to write a day; of two that fit all texts the first is taken."""
_TIMES: Final = ("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", "T%H:%M", "T%H:%M:%S", "T%H:%M:%S.%f")
_FORMS: Final = (*map("".join, itertools.product(_DAYS, _TIMES)), MIXED)
_FIRST: Final = 50
"""If some of so many texts look like no date, the column has none."""
_MICROSECONDS: Final = 86_400e6
"""Microseconds of a day."""


def form_of_dates(values: pd.Series[Any]) -> str | None:
    """How the dates of a column are written; None if not all of them are dates in one form."""
    if _are_stamps(values):
        return TIMESTAMP
    if values.dtype.kind in "iufbc":
        return None
    present = values.dropna()
    first = present.head(_FIRST)
    if not len(first) or pd.api.types.infer_dtype(present) != "string":
        return None
    if not first.str.match(r"\d{1,4}[-./]\d{1,2}[-./]\d{1,4}").all():
        return None
    texts = present.drop_duplicates()
    return next((form for form in _FORMS if not np.isnan(_parse(texts, form)).any()), None)


def dates_of(values: pd.Series[Any]) -> pd.Series[Any]:
    """The dates of a column as timestamps."""
    form = form_of_dates(values)
    assert form is not None
    return write_dates(days_of(values, form), TIMESTAMP).set_axis(values.index)


def days_of(values: pd.Series[Any], form: str) -> npt.NDArray[np.float64]:
    """Dates [n] as days since 1970-01-01, missing ones as NaN; numbers are days already.

    Args:
        values: Timestamps, numbers, or text in this form or that of ISO 8601.
        form: How the column's dates are written.

    Raises:
        SchemaError: If a value cannot be read as any of these; names its row.
    """
    if _are_stamps(values):
        return _days(values)
    if values.dtype.kind in "iuf":
        return values.to_numpy(dtype=np.float64, copy=True)
    present = np.flatnonzero(values.notna())
    given = values.iloc[present]
    days = np.full(len(values), np.nan)
    is_text = np.array([isinstance(value, str) for value in given], dtype=bool)
    days[present[is_text]] = _days_of_text(given[is_text], form)
    if not is_text.all():  # timestamps, numbers
        others = given[~is_text]
        numbers = pd.to_numeric(others, errors="coerce").astype("float64")
        stamps = pd.to_datetime(others, errors="coerce", utc=True)
        days[present[~is_text]] = np.where(numbers.isna(), _days(stamps), numbers)
    bad = np.isnan(days) & values.notna().to_numpy(dtype=bool)
    if bad.any():
        raise SchemaError(
            f"column {values.name!r}: row {int(np.flatnonzero(bad)[0])} is not a date"
            f"{'' if form in (TIMESTAMP, MIXED) else f' of the form {form}'}"
        )
    return days


def write_dates(days: npt.NDArray[Any], form: str) -> pd.Series[Any]:
    """Days since 1970-01-01 as dates in a form; missing ones stay missing."""
    numbers = np.asarray(days, dtype=np.float64)
    whole = np.where(np.isnan(numbers), 0.0, np.rint(numbers * _MICROSECONDS)).astype(np.int64)
    stamps = pd.Series(whole.astype("datetime64[us]")).mask(np.isnan(numbers))
    if form == TIMESTAMP:
        return stamps
    if form == MIXED:
        return stamps.map(pd.Timestamp.isoformat, na_action="ignore").astype(object)
    return stamps.dt.strftime(form).astype(object)


def iso_date(days: float) -> str:
    """A date as text in the way of ISO 8601, without a time if that is midnight."""
    stamp = pd.Timestamp(round(days * _MICROSECONDS), unit="us")
    return stamp.date().isoformat() if float(days).is_integer() else stamp.isoformat()


def _are_stamps(values: pd.Series[Any]) -> bool:
    return values.dtype.kind == "M" or isinstance(values.dtype, pd.DatetimeTZDtype)


def _days(stamps: pd.Series[Any]) -> npt.NDArray[np.float64]:
    plain = pd.to_datetime(stamps, utc=True).dt.tz_localize(None)
    numbers = plain.to_numpy().astype("datetime64[us]").astype(np.float64) / _MICROSECONDS
    return np.where(plain.isna(), np.nan, numbers)


def _days_of_text(texts: pd.Series[Any], form: str) -> npt.NDArray[np.float64]:
    """The days of texts in this form or that of ISO 8601; NaN for one in neither."""
    codes, distinct = pd.factorize(texts)
    days = np.full(len(distinct) + 1, np.nan)
    for each in dict.fromkeys((MIXED if form == TIMESTAMP else form, MIXED)):
        left = np.flatnonzero(np.isnan(days[:-1]))
        if len(left):
            days[left] = _parse(pd.Series(distinct[left]), each)
    return np.asarray(days[codes], dtype=np.float64)


def _parse(texts: pd.Series[Any], form: str) -> npt.NDArray[np.float64]:
    """The days of texts in this form; NaN for others."""
    return _days(pd.to_datetime(texts, format=form, errors="coerce", utc=True))
