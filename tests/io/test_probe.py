"""The made-up rows of a saved model are nobody's: they warn of nothing."""

import warnings
from pathlib import Path

import numpy as np
import pytest

import shoal
from shoal.exceptions import UnseenWordWarning


@pytest.fixture
def model() -> shoal.DiscreteMixture:
    """Of counts in which the second of six words never occurs."""
    counts = np.array(
        [[81, 0, 6, 13, 2, 1], [18, 0, 48, 34, 1, 4], [45, 0, 30, 25, 3, 2]]
    )
    model = shoal.DiscreteMixture(2, input="counts", random_state=0)
    return model.fit(counts, ["n", "s", "w"])


def test_words_of_the_probe_do_not_warn(
    model: shoal.DiscreteMixture, tmp_path: Path
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shoal.save(model, tmp_path / "model")
        again = shoal.load(tmp_path / "model")
    with pytest.warns(UnseenWordWarning, match="^1 of 1 words"):
        again.predict_proba(np.eye(6)[[1]])
