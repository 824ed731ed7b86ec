"""Losses that tell views of the same image from views of others."""

import torch
from torch import Tensor
from torch.nn import functional

from shoal.vision.parallel import gather_rows, rank, world_size

__all__ = ["info_nce", "nt_xent"]


def nt_xent(first: Tensor, second: Tensor, temperature: float) -> Tensor:
    """Normalized temperature-scaled cross-entropy of two views of the same images.

    Every view looks for its partner among all other views of the batch, over all
    processes: the mean over rows i of ``-log(exp(s(i, p_i)) / sum over j != i of
    exp(s(i, j)))`` with s the cosine divided by the temperature.

    Parameters
    ----------
    first, second : Tensor of shape (n, width)
        Projections; row i of both comes from the same image.
    temperature : float
        Smaller values look harder at the nearest of the others.

    Returns
    -------
    Tensor
        A number.

    References
    ----------
    Chen T, Kornblith S, Norouzi M, Hinton G (2020). A simple framework for contrastive
    learning of visual representations. ICML.
    """
    # In float32 whatever the autocast: a cosine over 0.1 has two digits in bf16.
    with torch.autocast(first.device.type, enabled=False):
        first = functional.normalize(first.float())
        second = functional.normalize(second.float())
        n, n_processes = len(first), world_size()
        views = torch.cat([first, second])
        if n_processes > 1:
            others = torch.cat([gather_rows(first), gather_rows(second)])
        else:
            others = views
        place = torch.arange(n, device=first.device) + rank() * n
        itself = torch.cat([place, place + n * n_processes])
        partner = torch.cat([place + n * n_processes, place])
        logits = views @ others.T / temperature
        columns = torch.arange(len(others), device=first.device)
        logits = logits.masked_fill_(itself[:, None] == columns, -torch.inf)
        return functional.cross_entropy(logits, partner)


def info_nce(
    queries: Tensor, keys: Tensor, queue: Tensor, temperature: float
) -> Tensor:
    """Cross-entropy of finding each query's own key among the keys of a queue.

    Parameters
    ----------
    queries, keys : Tensor of shape (n, width)
        Two views of the same images; no gradient flows into the keys.
    queue : Tensor of shape (n_queue, width)
        Normalized keys of earlier images.
    temperature : float
        As in :func:`nt_xent`.

    References
    ----------
    He K, Fan H, Wu Y, Xie S, Girshick R (2020). Momentum contrast for unsupervised
    visual representation learning. CVPR.
    """
    with torch.autocast(queries.device.type, enabled=False):
        queries = functional.normalize(queries.float())
        keys = functional.normalize(keys.detach().float())
        own = (queries * keys).sum(1, keepdim=True)
        logits = torch.cat([own, queries @ queue.T], 1) / temperature
        first = torch.zeros(len(logits), dtype=torch.long, device=logits.device)
        return functional.cross_entropy(logits, first)
