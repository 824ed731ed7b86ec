"""How fitted estimators show themselves in a notebook: verdict, mix and classes."""

from html import escape
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from sklearn import get_config

MOST_DOMAINS = 12
MOST_CLASSES = 12
# Colours follow the notebook's theme: only shades of the text colour are used.
STYLE = (
    "<style>.shoal-repr{font-size:90%;border-collapse:collapse;margin-top:.5em}"
    ".shoal-repr td,.shoal-repr th{padding:.2em .7em;text-align:right}"
    ".shoal-repr th:first-child{text-align:left}"
    ".shoal-repr tfoot td,.shoal-repr tfoot th{border-top:1px solid currentColor}"
    ".shoal-verdict{margin:.6em 0 0}</style>"
)
# What diagnose said of a fit; beside the models, so that asking does not change them.
VERDICTS: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
SIGNS = {
    "clear": ("\N{CHECK MARK}", "Clear: no check found a sign of a problem"),
    "caution": ("\N{WARNING SIGN}", "Use with caution"),
    "do not use": ("\N{MULTIPLICATION X}", "Do not use"),
}


class NotebookRepr:
    """Adds what was found to scikit-learn's own picture of an estimator.

    Notebooks ask for ``_repr_html_`` or ``_repr_mimebundle_``; both obey scikit-learn's
    ``set_config(display=...)``.
    """

    @property
    def _repr_html_(self) -> Any:
        # A property, as in scikit-learn: there is no such thing with display="text".
        plain = super()._repr_html_  # type: ignore[misc]
        return lambda: plain() + found_html(self)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = {"text/plain": repr(self)}
        if get_config()["display"] == "diagram":
            bundle["text/html"] = self._repr_html_()
        return bundle

    def _remember(self, diagnosis: Any) -> None:
        """Keep the verdict to show it; None keeps nothing."""
        if diagnosis is not None:
            VERDICTS[self] = diagnosis

    def _remembered(self) -> Any:
        return VERDICTS.get(self)


def found_html(model: Any) -> str:
    """Verdict, then prevalences as a small table; empty before the fit.

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
        _row(domain, shares)
        for domain, shares in zip(domains[:MOST_DOMAINS], table, strict=False)
    )
    caption = _caption(domains, names)
    return (
        f"{STYLE}{_verdict_html(model)}"
        f"<table class='shoal-repr'><caption>{caption}</caption>"
        f"<thead><tr><th>domain</th>{heads}</tr></thead><tbody>{rows}</tbody>"
        f"<tfoot>{_row('mean of the domains', table.mean(axis=0))}</tfoot></table>"
    )


def _verdict_html(model: Any) -> str:
    diagnosis = VERDICTS.get(model)
    n_domains, n_classes = np.shape(model.prevalence_)
    found = f"{n_classes} classes in {n_domains} domains."
    if diagnosis is None:
        asked = "Not checked yet: <code>model.diagnose(X, domains)</code> says whether "
        return f"<p class='shoal-verdict'>{found} {asked}to trust them.</p>"
    sign, words = SIGNS[diagnosis.verdict]
    return (
        f"<p class='shoal-verdict'><strong>{sign} {words}.</strong> {found} "
        f"{escape(_weakest(diagnosis))}</p>"
    )


def _weakest(diagnosis: Any) -> str:
    """What speaks most against the classes; empty where nothing does."""
    for status in ("fail", "caution"):
        for finding in diagnosis.findings:
            if finding.status == status:
                return str(finding.reason)
    return ""


def _row(name: Any, shares: Any) -> str:
    return f"<tr><th>{escape(str(name))}</th>{_cells(shares[:MOST_CLASSES])}</tr>"


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
