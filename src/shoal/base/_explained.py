"""Why a row is of its class, as a method of every estimator, and what that asks."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from shoal.probability import TINY

if TYPE_CHECKING:
    from shoal.analysis._explain import RowExplanation

Array = np.ndarray[Any, Any]


class UsualRow(NamedTuple):
    """What stands for columns that are not seen, and which the fit has used.

    Attributes
    ----------
    values : ndarray of shape (n_features,)
        NaN where the fit integrates out what it does not see.
    used : ndarray of shape (n_features,), bool
    """

    values: Array
    used: Array


class ExplainsRows:
    """The question, and two hooks that a fit answers better where it can."""

    class_weight_: Array

    def explain(
        self,
        x: Any,
        domain: Any = None,
        *,
        prevalence: Any = None,
        against: Any = None,
        random_state: Any = 0,
    ) -> "RowExplanation":
        """Why a row is of its class: evidence in nats, by column and by domain.

        Parameters
        ----------
        x : array-like of shape (n_features,) or (1, n_features)
            One row.
        domain : hashable, default=None
            Where it comes from; None for the equal mix of the training domains.
        prevalence : array-like of shape (n_classes,), default=None
            Class mix of a domain that fit has not seen, instead.
        against : int or str, default=None
            The class that the most probable one is held against; the next when None.
        random_state : int, RandomState instance or None, default=0
            Draws orders of columns where these are more than ten.

        Returns
        -------
        RowExplanation
            Parts that add up to the log odds of the two classes: the log odds of their
            shares in the domain, and what each column adds (its Shapley value, against
            the column not being seen or being as usual). See
            :class:`shoal.analysis.RowExplanation`.
        """
        from shoal.analysis._explain import explain

        how = {"prevalence": prevalence, "against": against}
        return explain(self, x, domain, **how, random_state=random_state)

    def _log_evidence(self, X: Any, codes: Array | None) -> Array:
        """Log p(x|y) of validated rows, up to a number for each row.

        In the domains of the rows, where these change it. From q(y|x) unless the fit
        knows better: that cannot tell apart what is too improbable for a float.
        """
        given = np.maximum(self._class_given_x(X), TINY)
        return np.asarray(np.log(given) - np.log(np.maximum(self.class_weight_, TINY)))

    def _usual_row(self) -> UsualRow | None:
        """The row that columns are held against; None where rows have no columns."""
        return None

    def _class_given_x(self, X: Any) -> Array:
        raise NotImplementedError


def usual_row(used: Array, centre: Array) -> UsualRow:
    """From the centre of the columns that the fit has used."""
    values = np.zeros(len(used))
    values[used] = centre
    return UsualRow(values, used)
