"""Which fine-tuning to keep: every start with every setting, judged held out."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from shoal.likelihood._problem import Fit
from shoal.mixture import DomainMixture
from shoal.validation import row_weights
from shoal.vision._encode import nearest
from shoal.vision._images import ImageSet
from shoal.vision._nets import Backbone
from shoal.vision._rows import SplitRows
from shoal.vision.mixture._finetune import FineTuned, FineTuning, fine_tune
from shoal.vision.mixture._net import MixtureNet, as_linear, refit_part

Array = np.ndarray[Any, Any]


class Try(NamedTuple):
    """A fine-tuning and where it came from."""

    start: int
    frozen: DomainMixture
    setting: FineTuning
    tuned: FineTuned


@dataclass
class Tuner:
    """Fine-tunes frozen solutions of one set of rows.

    Attributes
    ----------
    images : ImageSet
    features : ndarray of shape (n, n_columns)
        What the frozen mixtures saw.
    codes : ndarray of shape (n,)
    train, valid : ndarray
        Row numbers to fit and to judge by.
    backbone : Backbone
        Copied for every fine-tuning.
    projection : fitted PCA or None
        From features of unit length to ``features``.
    options : dict
        ``seed``, ``compile`` and ``progress`` of :func:`fine_tune`.
    parts : dict of int to Fit
        Frozen solutions refitted without the held-out rows, by number of the start;
        filled as they are needed.
    """

    images: ImageSet
    features: Array
    codes: Array
    train: Array
    valid: Array
    backbone: Backbone
    projection: Any
    options: dict[str, Any]
    parts: dict[int, Fit] = field(default_factory=dict)

    def try_all(
        self, starts: Sequence[DomainMixture], settings: Sequence[FineTuning]
    ) -> list[Try]:
        """Fine-tune every start with every setting, without the held-out rows."""
        rows = self._rows(starts[0], self.train, settings)
        found = []
        for number, frozen in enumerate(starts):
            if number not in self.parts:
                self.parts[number] = refit_part(
                    frozen, self.features, self.codes, self.train
                )
            part = self.parts[number]
            for setting in settings:
                net = self._make_net(
                    frozen, part.weights, part.domain_given_class, setting
                )
                tuned = fine_tune(net, rows, setting, **self.options)
                found.append(Try(number, frozen, setting, tuned))
        return found

    def repeat(self, chosen: Try) -> FineTuned:
        """Fine-tune once more on all rows, from the frozen solution of all rows."""
        frozen, setting = chosen.frozen, chosen.setting
        rows = self._rows(frozen, np.arange(len(self.codes)), [setting])
        net = self._make_net(
            frozen, frozen.weights_, frozen.domain_given_class_, setting
        )
        until = max(chosen.tuned.epoch, 1)
        return fine_tune(net, rows, setting, until=until, **self.options)

    def _rows(
        self, frozen: DomainMixture, train: Array, settings: Sequence[FineTuning]
    ) -> SplitRows:
        weight = row_weights(self.codes, frozen.domain_weight_) * len(self.codes)
        wanted = max((s.n_neighbours for s in settings if s.consistency), default=0)
        wanted = min(wanted, len(train) - 1)
        near = None
        if wanted:
            found = nearest(self.features[train], wanted, device=self.images.device)
            near = train[found[0]]
        return SplitRows.of(self.images, self.codes, weight, train, self.valid, near)

    def _make_net(
        self,
        frozen: DomainMixture,
        weights: Array,
        domain_given_class: Array,
        setting: FineTuning,
    ) -> MixtureNet:
        return MixtureNet(
            copy.deepcopy(self.backbone),
            as_linear(frozen, weights, self.projection),
            domain_given_class,
            freeze_statistics=setting.batch_norm == "frozen",
        )
