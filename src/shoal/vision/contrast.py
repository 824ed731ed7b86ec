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
        others = torch.cat([gather_rows(first), gather_rows(second)])
        return _find_partners(torch.cat([first, second]), others, temperature)


def info_nce(views: Tensor, others: Tensor, temperature: float) -> Tensor:
    """Cross-entropy of finding each view's partner among others.

    Parameters
    ----------
    views : Tensor of shape (2 n, width)
        First views of the n images of this process, then their second views.
    others : Tensor of shape (m, width)
        Of unit length: first views of the images of all processes, their second views,
        and whatever else is to be told from the partner. A view itself is no choice.
    temperature : float
        As in :func:`nt_xent`.

    References
    ----------
    Van den Oord A, Li Y, Vinyals O (2018). Representation learning with contrastive
    predictive coding. arXiv:1807.03748.
    """
    with torch.autocast(views.device.type, enabled=False):
        return _find_partners(
            functional.normalize(views.float()), others.float(), temperature
        )


def _find_partners(views: Tensor, others: Tensor, temperature: float) -> Tensor:
    """Loss of views of unit length; see :func:`info_nce`."""
    n = len(views) // 2
    n_all = n * world_size()
    place = torch.arange(n, device=views.device) + rank() * n
    itself = torch.cat([place, place + n_all])
    partner = torch.cat([place + n_all, place])
    logits = views @ others.T / temperature
    columns = torch.arange(len(others), device=views.device)
    # Masks instead of cross_entropy, whose gather does not compile on every GPU.
    found = torch.where(partner[:, None] == columns, logits, 0).sum(1)
    logits = logits.masked_fill(itself[:, None] == columns, -torch.inf)
    return (logits.logsumexp(1) - found).mean()
