"""What formats of other packages are made of: their content, and the list of formats.

A format is one :class:`Format`, made known by :func:`register`; from then on
:func:`shoal.io.read`, :func:`shoal.io.batches` and every command take its files. An
estimator that stands in ``MODELS``, with the module it is from, can be saved.
"""

from shoal.io.model._values import MODELS as MODELS
from shoal.io.source._format import Content as Content
from shoal.io.source._format import Format as Format
from shoal.io.source._open import register as register
