"""How fitted estimators show themselves in a notebook: their prevalences as a table."""

from html import escape
from typing import Any

import numpy as np
from sklearn import get_config

MOST_DOMAINS = 12
MOST_CLASSES = 12
# Colours follow the notebook's theme: only shades of the text colour are used.
STYLE = (
    (
        "<style>.shoal-repr{{font-size:90%;border-collapse:collapse;margin-top:.5em}}"
        ".shoal-repr td,.shoal-repr th{{padding:.2em .7em;text-align:right}}"
        ".shoal-repr th:first-child{{text-align:left}}</style>"
    )
    .replace("{{", "{")
    .replace("}}", "}")
)


class NotebookRepr:
    """Adds the prevalences of a fitted estimator to scikit-learn's own picture.

    Notebooks ask for ``_repr_html_`` or ``_repr_mimebundle_``; both obey scikit-learn's
    ``set_config(display=...)``.
    """

    @property
    def _repr_html_(self) -> Any:
        # A property, as in scikit-learn: there is no such thing with display="text".
        plain = super()._repr_html_  # type: ignore[misc]
        return lambda: plain() + prevalence_html(self)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = {"text/plain": repr(self)}
        if get_config()["display"] == "diagram":
            bundle["text/html"] = self._repr_html_()
        return bundle


def prevalence_html(model: Any) -> str:
    """Prevalences as a small table; empty before the fit.

    Parameters
    ----------
    model : LatentShiftEstimator

    Returns
    -------
    str
        HTML. At most 12 domains and 12 classes; the caption counts the others.
    """
    if not hasattr(model, "prevalence_"):
        return ""
    table = np.asarray(model.prevalence_)
    domains, names = list(model.domains_), list(model.class_names_)
    heads = "".join(f"<th>{escape(str(n))}</th>" for n in names[:MOST_CLASSES])
    rows = "".join(
        f"<tr><th>{escape(str(domain))}</th>{_cells(shares[:MOST_CLASSES])}</tr>"
        for domain, shares in zip(domains[:MOST_DOMAINS], table, strict=False)
    )
    caption = _caption(domains, names)
    return (
        f"{STYLE}<table class='shoal-repr'><caption>{caption}</caption>"
        f"<thead><tr><th>domain</th>{heads}</tr></thead><tbody>{rows}</tbody></table>"
    )


def _cells(shares: Any) -> str:
    """Shares with a shade behind them."""
    return "".join(
        "<td style='background:color-mix(in srgb,currentColor "
        f"{30 * share:.0f}%,transparent)'>{share:.0%}</td>"
        for share in shares
    )


def _caption(domains: list[Any], names: list[str]) -> str:
    more = [
        f"{len(values) - most} more {what}"
        for values, most, what in (
            (domains, MOST_DOMAINS, "domains"),
            (names, MOST_CLASSES, "classes"),
        )
        if len(values) > most
    ]
    return "share of each class in each domain" + "".join(f", {text}" for text in more)
