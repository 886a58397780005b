"""Dates as numbers: days since 1970-01-01, with fractions for times, in UTC.

A column keeps how its dates are written, so that a generator receives them as they were: as text in
a form of `strptime` or ISO 8601, or as timestamps. The latter two may have a time zone, which
follows in its form, such as "timestamp Europe/Berlin". Dates without one are in UTC.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpaudit.errors import SchemaError
from dpaudit.formatting import quote

TIMESTAMP: Final = "timestamp"
"""The form of dates that are no text, but pandas' own."""
MIXED: Final = "ISO8601"
"""The form of text in any of the ways of ISO 8601."""
UTC: Final = "UTC"
_DAYS: Final = (
    *("%Y-%m-%d", "%d.%m.%Y", "%Y/%m/%d", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%d-%b-%Y"),
    *("%d.%m.%y", "%d/%m/%y", "%m/%d/%y", "%d-%b-%y"),
)
"""Ways to write a day; of two that fit all texts the first is taken."""
_TIMES: Final = (
    *("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", "T%H:%M", "T%H:%M:%S", "T%H:%M:%S.%f"),
    *(" %I:%M %p", " %I:%M:%S %p"),
)
_FORMS: Final = (*map("".join, itertools.product(_DAYS, _TIMES)), MIXED)
_FIRST: Final = 50
"""If some of so many texts look like no date, the column has none."""
_MICROSECONDS: Final = 86_400e6
"""Microseconds of a day."""


def form_of_dates(values: pd.Series[Any]) -> str | None:
    """How the dates of a column are written; None if not all of them are dates in one form."""
    if isinstance(values.dtype, pd.DatetimeTZDtype):
        zone = str(values.dtype.tz)
        return f"{TIMESTAMP} {zone if is_zone(zone) else UTC}"
    if _are_stamps(values):
        return TIMESTAMP
    if values.dtype.kind in "iufbc":
        return None
    present = values.dropna()
    first = present.head(_FIRST)
    if not len(first) or pd.api.types.infer_dtype(present) != "string":
        return None
    if not first.str.match(r"\d{1,4}[-./](\d{1,2}|[A-Za-z]{3})[-./]\d{1,4}").all():
        return None
    texts = present.drop_duplicates()
    fitting = (form for form in _FORMS if not np.isnan(_parse(first, form)).any())
    form = next((form for form in fitting if not np.isnan(_parse(texts, form)).any()), None)
    if form == MIXED and (offsets := _offsets_of(texts)):
        return f"{MIXED} {offsets[0] if len(offsets) == 1 else UTC}"
    return form


def odd_dates(texts: Sequence[str]) -> list[str]:
    """The texts that are no dates in the form in which most are dates."""
    given = pd.Series(texts, dtype=object)
    parsed = [np.isnan(_parse(given, form)) for form in _FORMS]
    return given[min(parsed, key=np.count_nonzero)].tolist()


def is_form(form: str) -> bool:
    """Whether dates can be written like this."""
    kind, _, zone = form.partition(" ")
    return "%" in form or (kind in (TIMESTAMP, MIXED) and (not zone or is_zone(zone)))


def is_zone(name: str) -> bool:
    """Whether a time zone of this name is known."""
    try:
        return pd.Timestamp(0, tz=name).tz is not None
    except (KeyError, ValueError, OSError):
        return False


def _offsets_of(texts: pd.Series[Any]) -> list[str]:
    """The different offsets from UTC at the ends of texts, as names of time zones."""
    ends = texts.str.extract(r":\d\d(?:\.\d+)?(Z|[+-]\d\d:?\d\d)$", expand=False)
    hours = ends.dropna().str.replace(r"(\d\d):?(\d\d)$", r"\1:\2", regex=True).unique()
    return [UTC if end in ("Z", "+00:00", "-00:00") else f"{UTC}{end}" for end in hours]


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
        row = int(np.flatnonzero(bad)[0])
        raise SchemaError(
            f"column {values.name!r}: row {row} is not a date"
            f"{f' of the form {form}' if '%' in form else ''}{quote(values.iloc[row])}"
        )
    return days


def write_dates(days: npt.NDArray[Any], form: str) -> pd.Series[Any]:
    """Days since 1970-01-01 as dates in a form; missing ones stay missing."""
    numbers = np.asarray(days, dtype=np.float64)
    whole = np.where(np.isnan(numbers), 0.0, np.rint(numbers * _MICROSECONDS)).astype(np.int64)
    stamps = pd.Series(whole.astype("datetime64[us]")).mask(np.isnan(numbers))
    kind, _, zone = form.partition(" ")
    if kind not in (TIMESTAMP, MIXED):
        return stamps.dt.strftime(form).astype(object)
    if zone:
        stamps = stamps.dt.tz_localize(UTC).dt.tz_convert(zone)
    if kind == TIMESTAMP:
        return stamps
    return stamps.map(pd.Timestamp.isoformat, na_action="ignore").astype(object)


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
    for each in dict.fromkeys((form if "%" in form else MIXED, MIXED)):
        left = np.flatnonzero(np.isnan(days[:-1]))
        if len(left):
            days[left] = _parse(pd.Series(distinct[left]), each)
    return np.asarray(days[codes], dtype=np.float64)


def _parse(texts: pd.Series[Any], form: str) -> npt.NDArray[np.float64]:
    """The days of texts in this form; NaN for others."""
    return _days(pd.to_datetime(texts, format=form, errors="coerce", utc=True))
