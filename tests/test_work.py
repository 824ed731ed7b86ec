"""Fits keep BLAS and OpenMP to one thread, and leave the process as it was."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from shoal import DomainMixture
from shoal._work import _pools, one_thread
from shoal.datasets import make_latent_shift


def counts(api):
    """Threads of the pools that fits use; others may have been loaded meanwhile."""
    blas, openmp = _pools()
    ours = [pool["filepath"] for one in (blas._pools, openmp) for pool in one.info()]
    return {
        pool["num_threads"]
        for pool in threadpool_info()
        if pool["user_api"] == api and pool["filepath"] in ours
    }


@pytest.fixture
def two_threads():
    # not as a context: that would keep other threads from lifting a limit
    limit = threadpool_limits(2)
    if counts("blas") != {2}:
        pytest.skip("BLAS has one thread only")
    yield
    limit.restore_original_limits()


@pytest.mark.usefixtures("two_threads")
def test_one_thread_inside_and_as_before_outside():
    with one_thread() as allowed:
        assert allowed == 2
        assert counts("blas") == counts("openmp") == {1}
        with one_thread() as allowed:
            assert allowed == 2
        assert counts("blas") == counts("openmp") == {1}
    assert counts("blas") == counts("openmp") == {2}


@pytest.mark.usefixtures("two_threads")
def test_the_last_of_several_threads_lifts_the_limit():
    """The first to enter leaves first, and does not free the other."""
    entered, left = Event(), Event()

    def outlast():
        with one_thread():
            entered.set()
            left.wait(10)
            return counts("blas")

    with ThreadPoolExecutor(1) as executor:
        with one_thread():
            later = executor.submit(outlast)
            assert entered.wait(10)
        left.set()
        assert later.result() == {1}
    assert counts("blas") == {2}


@pytest.mark.usefixtures("two_threads")
def test_a_fit_does_not_depend_on_the_threads_of_the_process():
    X, domains, _ = make_latent_shift(800, n_classes=3, n_domains=4, random_state=0)
    model = DomainMixture(3, random_state=0)
    several = model.fit(X, domains).prevalence_
    with threadpool_limits(1):
        one = model.fit(X, domains).prevalence_
    np.testing.assert_array_equal(several, one)
