import warnings

import numpy as np
import pytest
import torch
from torch import nn
from torch._dynamo.backends.common import aot_autograd

from shoal.exceptions import CompileWarning
from shoal.vision._discriminator import ImageDiscriminator
from shoal.vision._mixture import ImageMixture
from shoal.vision._settings import FineTuning
from shoal.vision._simclr import simclr
from shoal.vision._steps import compiling, part
from shoal_bench.moco import moco
from shoal_bench.scan import SCAN
from support import workers


@pytest.fixture(autouse=True)
def _forget_graphs():
    torch.compiler.reset()


def failing(graph, inputs):
    raise RuntimeError("PassManager::run failed")


def as_it_is(graph, inputs):
    return graph.forward


#: A backend that compiles the forward pass only.
FAILING_BACKWARD = aot_autograd(fw_compiler=as_it_is, bw_compiler=failing)


class Recorder:
    """A backend that keeps the code of the graphs and runs them as they are."""

    def __init__(self):
        self.graphs = []

    def __call__(self, graph, inputs):
        self.graphs.append(graph.code)
        return graph.forward


def pretrain(method, compile, **options):
    torch.manual_seed(0)
    return method(
        workers.make_images(),
        net=workers.Tiny(),
        epochs=2,
        batch_size=8,
        device="cpu",
        compile=compile,
        progress=False,
        **options,
    )


def discriminate(images, net, compile):
    return ImageDiscriminator(
        net,
        epochs=1,
        batch_size=64,
        view="crop",
        device="cpu",
        compile=compile,
        random_state=0,
    ).fit(images.X, images.domains)


def scan(images, net, compile):
    return SCAN(
        3,
        backbone=net,
        n_heads=2,
        head_epochs=30,
        epochs=1,
        self_label_epochs=1,
        threshold=0.5,
        batch_size=100,
        device="cpu",
        compile=compile,
        random_state=0,
    ).fit(images.X)


def mix(images, net, compile):
    return ImageMixture(
        3,
        backbone=net,
        fine_tuning=FineTuning(epochs=1, batch_size=100),
        refit=False,
        device="cpu",
        compile=compile,
        random_state=0,
    ).fit(images.X, images.domains)


def same_weights(one, other):
    pairs = zip(one.state_dict().values(), other.state_dict().values(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


def assert_parts_are_apart(graphs):
    kinds = {
        kind: [g for g in graphs if mark in g]
        for kind, mark in (("views", "grid_sample"), ("network", "conv2d"))
    }
    assert all(kinds.values())
    assert not {*kinds["views"]} & {*kinds["network"]}
    for graph in kinds["views"] + kinds["network"]:
        assert "cross_entropy" not in graph
        assert "log_softmax" not in graph


@pytest.mark.parametrize("method", [simclr, moco])
def test_pretraining_compiles_views_and_network_apart(method):
    backend = Recorder()
    compiled = pretrain(method, {"backend": backend})
    assert_parts_are_apart(backend.graphs)
    assert same_weights(compiled.net, pretrain(method, False).net)


def test_estimators_compile_views_and_network_apart(images, tiny_net):
    for fit in (discriminate, scan):
        backend = Recorder()
        compiled = fit(images, tiny_net, {"backend": backend})
        assert_parts_are_apart(backend.graphs)
        assert same_weights(compiled.net_, fit(images, tiny_net, False).net_)


def test_fine_tuning_compiles_views_and_network_apart(images, tiny_net):
    backend = Recorder()
    compiled = mix(images, tiny_net, {"backend": backend})
    assert_parts_are_apart(backend.graphs)
    assert compiled.held_out_ == mix(images, tiny_net, False).held_out_


def test_mixed_precision_compiles_to_whole_graphs():
    # A part that is not one graph would warn, which is an error here.
    compiled, plain = (
        pretrain(simclr, compile, autocast=torch.bfloat16).history["loss"]
        for compile in ({"backend": "aot_eager"}, False)
    )
    np.testing.assert_allclose(compiled, plain, rtol=0.02)


@pytest.mark.parametrize(
    "backend", [failing, FAILING_BACKWARD], ids=["all", "backward"]
)
def test_what_does_not_compile_runs_as_it_is_with_one_warning(backend):
    with pytest.warns(CompileWarning, match="failed for .*run.* as it is") as caught:
        compiled = pretrain(simclr, {"backend": backend})
    assert len(caught) == 1
    plain = pretrain(simclr, False)
    assert same_weights(compiled.net, plain.net)  # statistics of the norms as well
    assert compiled.history["loss"] == plain.history["loss"]


@pytest.mark.parametrize("backend", ["aot_eager", failing], ids=["compiled", "failed"])
@pytest.mark.filterwarnings("ignore::shoal.exceptions.CompileWarning")
def test_a_resumed_run_compiles_again_and_ends_the_same(backend, tmp_path):
    def stop(record):
        raise KeyboardInterrupt

    checkpoint, compile = tmp_path / "run.pt", {"backend": backend}
    with pytest.raises(KeyboardInterrupt):  # after 5 steps; the checkpoint has 4
        workers.train(checkpoint, on_epoch=stop, compile=compile)
    torch.compiler.reset()  # as in a new process
    resumed, history = workers.train(checkpoint, compile=compile)
    whole, whole_history = workers.train(compile=compile)
    assert history["loss"] == whole_history["loss"]
    assert all(same_weights(resumed[name], whole[name]) for name in whole)


def test_one_part_may_fail_alone():
    def picky(graph, inputs):
        if "grid_sample" in graph.code:
            raise RuntimeError("no grids here")
        return recorder(graph, inputs)

    recorder = Recorder()
    with pytest.warns(CompileWarning, match="make_views .*no grids here") as caught:
        compiled = pretrain(simclr, {"backend": picky})
    assert len(caught) == 1
    assert any("conv2d" in graph for graph in recorder.graphs)
    assert same_weights(compiled.net, pretrain(simclr, False).net)


def test_an_error_of_the_part_itself_is_raised_as_it_is():
    @part
    def wrong(x):
        return x @ x

    with compiling({"backend": "eager"}), warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeError, match="mat1 and mat2"):
            wrong(torch.ones(2, 3))


@pytest.mark.parametrize("setting", ["no-such-mode", {"backend": "no-such-backend"}])
def test_an_unknown_setting_is_no_reason_to_run_uncompiled(setting):
    with compiling(setting), pytest.raises(RuntimeError, match="no-such"):
        part(torch.square)(torch.ones(2))


def test_memory_that_runs_out_is_no_fault_of_the_compiler():
    def hungry(graph, inputs):
        def run(*tensors):
            raise torch.OutOfMemoryError("CUDA out of memory")

        return run

    @part
    def double(x):
        return 2 * x

    with compiling({"backend": hungry}), pytest.raises(torch.OutOfMemoryError):
        double(torch.ones(2))


def test_many_networks_of_one_kind_are_compiled_once():
    backend = Recorder()
    x = torch.ones(4, 3)
    for seed in range(12):  # more than torch compiles one function for
        torch.manual_seed(seed)
        net = nn.Linear(3, 2)

        @part
        def classify(x, net=net):
            return net(x)

        with compiling({"backend": backend}):
            torch.testing.assert_close(classify(x), net(x))
    assert len(backend.graphs) == 1


@pytest.mark.slow
def test_the_real_compiler_gives_nearly_the_same_training():
    compiled, plain = (pretrain(simclr, compile) for compile in (True, False))
    np.testing.assert_allclose(
        compiled.history["loss"], plain.history["loss"], rtol=1e-3
    )
