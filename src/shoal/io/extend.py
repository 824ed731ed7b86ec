"""What formats and writers of other packages are made of, loaded on first use.

A format is one :class:`Format`, made known by :func:`register`; from then on
:func:`shoal.io.read`, :func:`shoal.io.batches` and every command take its files. An
estimator that stands in ``MODELS``, with the module it is from, can be saved.
:func:`write_whole` and :func:`whole_file` write files that appear whole or not at all.
"""

from typing import TYPE_CHECKING

from shoal._lazy import lazy_names as _lazy_names

if TYPE_CHECKING:
    from shoal.io._files import whole_file as whole_file
    from shoal.io._files import write_whole as write_whole
    from shoal.io.model._values import MODELS as MODELS
    from shoal.io.source._format import Content as Content
    from shoal.io.source._format import Format as Format
    from shoal.io.source._open import register as register

# Those who only write files need not have pandas.
__getattr__, __dir__ = _lazy_names(
    __name__,
    {
        "Content": "shoal.io.source._format",
        "Format": "shoal.io.source._format",
        "MODELS": "shoal.io.model._values",
        "register": "shoal.io.source._open",
        "whole_file": "shoal.io._files",
        "write_whole": "shoal.io._files",
    },
)
