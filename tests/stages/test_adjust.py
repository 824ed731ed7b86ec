import numpy as np
import pytest
from numpy.testing import assert_allclose

from shoal.stages.adjust import pseudo_inverse, simplex_least_squares


@pytest.mark.parametrize("solve", [pseudo_inverse, simplex_least_squares])
@pytest.mark.parametrize("n_domains", [4, 7])
def test_population_tables_give_back_the_posterior(solve, n_domains, seed):
    rng = np.random.default_rng(seed)
    domain_given_class = rng.dirichlet(np.full(n_domains, 0.5), 4)
    class_given_x = rng.dirichlet(np.full(4, 0.5), 50)
    got = solve(class_given_x @ domain_given_class, domain_given_class)
    assert_allclose(got, class_given_x, atol=1e-6)
