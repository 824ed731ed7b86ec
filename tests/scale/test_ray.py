"""The same on a Ray cluster of two nodes, also when workers or drivers are killed."""

import numpy as np
import pytest
from tests.scale.conftest import PART_ROWS

from shoal import DomainMixture, scale
from shoal.exceptions import CodedError
from support.scripts import script

MIXTURE = DomainMixture(3, search=False, random_state=0)
OPTIONS = {"domain": "site", "sample": 2_000, "passes": 1, "part_rows": PART_ROWS}
ENDED = ("worker in fit", "worker in counting clusters", "worker in predict",
         "node in fit", "node in predict")  # fmt: skip
DRIVERS = ("driver in fit", "driver in predict")


@pytest.fixture(scope="module")
def kills():
    """benchmarks/kills.py: who ends what, and what must stay the same."""
    pytest.importorskip("ray")
    with script("benchmarks/kills.py") as module:
        yield module


@pytest.fixture(scope="module")
def cluster(kills):
    """Two nodes of one core each on this machine; all end with it."""
    with kills.two_nodes() as nodes:
        yield nodes


@pytest.fixture(scope="module")
def problem(kills, world, tmp_path_factory):
    """The rows of these tests, as the experiments take them."""
    scratch = tmp_path_factory.mktemp("undisturbed")
    return kills.Problem(world.folder, OPTIONS["sample"], PART_ROWS, scratch)


# ---- the same numbers ------------------------------------------------------------


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("name", ["mixture", "ddfa"])
def test_a_fit_is_the_same_bit_for_bit(problem, name):
    model = problem.fit(name, engine="ray")
    assert problem.same_fit(name, model)
    assert model.scale_["engine"] == "ray"


@pytest.mark.usefixtures("cluster")
def test_a_bad_row_is_named_from_afar(world, tmp_path):
    bad = world.frame.copy()
    bad.loc[9_123, "x2"] = np.nan
    bad.to_parquet(tmp_path / "rows.parquet", row_group_size=1_000)
    with pytest.raises(CodedError, match="row 9124, x2") as error:
        scale.fit(MIXTURE, tmp_path, engine="ray", **OPTIONS)
    assert error.value.code == "E115"


# ---- workers, nodes and drivers that are killed ----------------------------------


def test_all_experiments_are_asked_for(kills):
    assert set(kills.EXPERIMENTS) == {*ENDED, *DRIVERS}


@pytest.mark.parametrize("name", ENDED)
def test_what_is_killed_changes_nothing(kills, problem, cluster, tmp_path, name):
    """Each experiment once; benchmarks/kills.py repeats them ten times."""
    facts = kills.EXPERIMENTS[name](problem, cluster, tmp_path)
    assert (facts["killed"], facts["equal"]) == (1, True)


@pytest.mark.parametrize("name", DRIVERS)
def test_a_killed_driver_is_followed_by_another(
    kills, problem, cluster, tmp_path, name
):
    """kill -9 when a third is done; the second call does the others and no more."""
    facts = kills.EXPERIMENTS[name](problem, cluster, tmp_path)
    assert facts["equal"]
    assert 3 <= facts["kept"] < facts["parts"] == 10
    assert not list(tmp_path.glob(".*"))  # nothing of the first call is left
