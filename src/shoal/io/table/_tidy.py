"""A table as it will be read, for those who have yet to say what is in it."""

from dataclasses import replace

import numpy as np
import pandas as pd

from shoal.io._options import SourceOptions
from shoal.io.table._cells import is_text, numbers, stripped
from shoal.io.table._columns import decimal_of


def tidy(frame: pd.DataFrame, decimal: str | None = None) -> pd.DataFrame:
    """The table with numbers for text that holds nothing else, and no blanks around.

    Before a domain is named there are no options to read by, but the file may have
    shown its ``decimal`` sign. Words for a gap among numbers are gaps here too.

    >>> frame = pd.DataFrame({"site": ["A ", "A", "B"], "size": ["3,5", "-", "4,25"]})
    >>> tidy(frame, ",").to_dict("list")
    {'site': ['A', 'A', 'B'], 'size': [3.5, nan, 4.25]}
    """
    options = SourceOptions(require_domain=False)
    written = replace(options.notation, decimal=decimal or decimal_of(frame, options))
    changed = {}
    for name in frame.columns:
        if not is_text(frame[name]):
            continue
        values, wrong = numbers(frame[name], written)
        if wrong.any() or np.isnan(values).all():
            changed[name] = stripped(frame[name])
        else:
            changed[name] = pd.Series(values, index=frame.index)
    return frame.assign(**changed)
