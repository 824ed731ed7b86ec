"""Batch norms: of all processes together, and of a network as it is used."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from shoal.vision._devices import mean_over_processes, world_size


class SharedNorm(_BatchNorm):
    """Batch norm over all processes, on any device; alone, the usual one.

    torch's own, ``nn.SyncBatchNorm``, is faster but knows no CPU.
    """

    @classmethod
    def of(cls, norm: _BatchNorm) -> "SharedNorm":
        """A norm with the very parameters and statistics of another."""
        shared = cls(
            norm.num_features,
            norm.eps,
            norm.momentum,
            norm.affine,
            norm.track_running_stats,
        )
        shared._parameters.update(norm._parameters)
        shared._buffers.update(norm._buffers)
        return shared.train(norm.training)

    def forward(self, input: Tensor) -> Tensor:
        """Normalize; in training mode by the batch of all processes."""
        if world_size() == 1 or not self.training:
            return super().forward(input)
        axes = [axis for axis in range(input.ndim) if axis != 1]
        shape = [1, -1] + [1] * (input.ndim - 2)
        mean = mean_over_processes(input.mean(axes))
        centred = input - mean.view(shape)
        variance = mean_over_processes(centred.square().mean(axes))
        n_values = world_size() * input.numel() // input.shape[1]
        self._follow(mean.detach(), variance.detach() * n_values / (n_values - 1))
        scaled = centred * torch.rsqrt(variance + self.eps).view(shape)
        if self.weight is None:
            return scaled
        return scaled * self.weight.view(shape) + self.bias.view(shape)

    @torch.no_grad()
    def _follow(self, mean: Tensor, variance: Tensor) -> None:
        """Move the running statistics as torch's batch norms do."""
        if self.running_mean is None or self.running_var is None:
            return
        assert self.num_batches_tracked is not None
        self.num_batches_tracked.add_(1)
        share = self.momentum
        if share is None:
            share = 1 / float(self.num_batches_tracked)
        self.running_mean.lerp_(mean, share)
        self.running_var.lerp_(variance, share)

    def _check_input_dim(self, input: Tensor) -> None:
        """Any number of axes after the second."""


def share_norms(module: nn.Module, device: torch.device) -> None:
    """Let the batch norms inside a module see all processes; alone, nothing happens.

    Names, parameters and statistics stay as they are, so that optimizers and weight
    files do not notice.
    """
    if world_size() == 1:
        return
    if device.type == "cuda":
        nn.SyncBatchNorm.convert_sync_batchnorm(module)
        return
    for parent in list(module.modules()):
        for name, child in parent.named_children():
            if isinstance(child, _BatchNorm) and not isinstance(child, SharedNorm):
                setattr(parent, name, SharedNorm.of(child))


@torch.no_grad()
def settle_norms(net: nn.Module, batches: Iterable[Tensor]) -> None:
    """Take the statistics of batch norms anew, from the network as it is used.

    While a network trains, dropout makes its values vary more than they do afterwards.
    With the statistics of the training, the answers of a network of many such blocks
    can be worse than guessing, however well it has learned.

    Parameters
    ----------
    net : Module
        The modes of all its modules come back afterwards; if a batch fails, its
        statistics too.
    batches : iterable of Tensor
        Input like that of its use, at least one batch; all batches count alike.

    References
    ----------
    Li X, Chen S, Hu X, Yang J (2019). Understanding the disharmony between dropout and
    batch normalization by variance shift. CVPR.
    """
    norms = [
        module
        for module in net.modules()
        if isinstance(module, _BatchNorm) and module.track_running_stats
    ]
    modes = {module: module.training for module in net.modules()}
    momenta = [norm.momentum for norm in norms]
    before = [{k: v.clone() for k, v in norm.named_buffers()} for norm in norms]
    n_batches = 0
    try:
        net.eval()
        for norm in norms:
            norm.reset_running_stats()
            norm.momentum = None  # the plain mean over batches
            norm.train()
        for batch in batches:
            net(batch)
            n_batches += 1
        if not n_batches:
            raise ValueError("batches must hold at least one batch, got none")
    except BaseException:
        for norm, buffers in zip(norms, before, strict=True):
            norm.load_state_dict(buffers, strict=False)
        raise
    finally:
        for norm, momentum in zip(norms, momenta, strict=True):
            norm.momentum = momentum
        for module, mode in modes.items():
            module.training = mode
