"""Losses on class logits and on views, each one formula, each without a host sync."""

import torch
from torch import Tensor
from torch.nn import functional

from shoal.vision._devices import gather_rows, mean_over_processes, rank, world_size

# ---- Losses on class logits, each one formula, each without a host sync --------------

TINY = 1e-8


def domain_likelihood(logits: Tensor, log_T: Tensor, codes: Tensor) -> Tensor:
    """Log q(d|x) of each row's own domain, through the classes; shape (n,).

    Parameters
    ----------
    logits : Tensor of shape (n, k)
    log_T : Tensor of shape (k, r)
        log q(d|y).
    codes : Tensor of shape (n,)
        Domain of each row.
    """
    log_g = functional.log_softmax(logits, dim=1)
    return torch.logsumexp(log_g + log_T.T[codes], dim=1)


def domain_loss(
    logits: Tensor, log_T: Tensor, codes: Tensor, weight: Tensor | None = None
) -> Tensor:
    """Mean of - log q(d|x): what the mixture minimizes, rows weighted."""
    return -weighted_mean(domain_likelihood(logits, log_T, codes), weight)


def posterior(logits: Tensor, log_T: Tensor, codes: Tensor) -> Tensor:
    """p_d(y|x), proportional to q(y|x) q(d|y); shape (n, k)."""
    log_g = functional.log_softmax(logits, dim=1)
    return torch.softmax(log_g + log_T.T[codes], dim=1)


def neighbour_consistency(
    logits: Tensor, neighbour_logits: Tensor, weight: Tensor | None = None
) -> Tensor:
    """Mean of - log sum_y q(y|x) q(y|x'): both in one class, and sure of it."""
    log_g = functional.log_softmax(logits, dim=1)
    log_h = functional.log_softmax(neighbour_logits, dim=1)
    return -weighted_mean(torch.logsumexp(log_g + log_h, dim=1), weight)


def self_label_loss(
    proba: Tensor,
    logits: Tensor,
    *,
    threshold: float,
    temperature: float = 0.0,
    weight: Tensor | None = None,
    balance: bool = False,
) -> Tensor:
    """Cross-entropy of one view's ``logits`` to what another view is sure of.

    Parameters
    ----------
    proba : Tensor of shape (n, k)
        Of the first view; no gradient flows into it.
    logits : Tensor of shape (n, k)
        Of the second view.
    threshold : float
        Rows whose largest probability is below it do not count.
    temperature : float, default=0.0
        The target is proportional to ``proba ** (1 / temperature)``; 0 takes the most
        probable class, 1 the probabilities as they are.
    weight : Tensor of shape (n,), default=None
    balance : bool, default=False
        Give each class that has sure rows in the batch the same weight.

    Returns
    -------
    Tensor
        Sum over the sure rows, divided by the weight of all rows: few sure rows pull
        little.
    """
    proba = proba.detach()
    sure, label = proba.max(dim=1)
    mask = (sure >= threshold).to(logits.dtype)
    if temperature == 0:
        target = functional.one_hot(label, proba.shape[1]).to(logits.dtype)
    else:
        target = torch.softmax(torch.log(proba.clamp_min(TINY)) / temperature, dim=1)
    each = -(target * functional.log_softmax(logits, dim=1)).sum(dim=1) * mask
    if balance:
        each = each * _even_classes(label, mask, proba.shape[1])
    return weighted_mean(each, weight)


def _even_classes(label: Tensor, mask: Tensor, n_classes: int) -> Tensor:
    """Weights of rows with which every class present weighs the same; mean 1."""
    members = functional.one_hot(label, n_classes).to(mask.dtype) * mask[:, None]
    count = members.sum(dim=0)
    present = (count > 0).to(mask.dtype).sum().clamp_min(1)
    return (mask.sum() / (present * count.clamp_min(1)))[label]


def weighted_mean(values: Tensor, weight: Tensor | None = None) -> Tensor:
    """Mean of ``values``; with weights, their sum divided by that of the weights.

    Among several processes, by the mean of their sums: the mean over processes is then
    that of one process with all rows.
    """
    if weight is None:
        return values.mean()
    return (values * weight).sum() / mean_over_processes(weight.sum())


# ---- Losses that tell views of the same image from views of others -------------------


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
