"""Which of many domains are looked at one by one.

Of thousands of thin domains, those that differ most are those whose few rows chance has
drawn from one class: a list of them is a list of accidents.
"""

from collections.abc import Sequence

from shoal.report._settings import SETTINGS


def looked_at(thin: Sequence[bool]) -> list[int]:
    """Domains whose own shares are told: all of a few; of many, those not thin."""
    if len(thin) <= SETTINGS.domains_drawn:
        return list(range(len(thin)))
    return [d for d, few_rows in enumerate(thin) if not few_rows]


def drawn(
    estimate: Sequence[Sequence[float]], sizes: Sequence[int], thin: Sequence[bool]
) -> tuple[list[int], str]:
    """Domains that pictures show, and which these are (nothing where it is all).

    Those furthest from the mean mix; where all are thin, the largest.
    """
    n_domains = len(estimate)
    if n_domains <= SETTINGS.domains_drawn:
        return list(range(n_domains)), ""
    among = looked_at(thin)
    if not among:
        order = sorted(range(n_domains), key=lambda d: (-sizes[d], d))
        which = "with most rows, all of them thin"
    else:
        mean = [sum(column) / n_domains for column in zip(*estimate, strict=True)]
        away = {
            d: max(abs(a - b) for a, b in zip(estimate[d], mean, strict=True))
            for d in among
        }
        order = sorted(among, key=lambda d: (-away[d], d))
        which = "whose mix differs most from the average"
        which += ", thin ones left out" * (len(among) < n_domains)
    return sorted(order[: SETTINGS.domains_drawn]), which
