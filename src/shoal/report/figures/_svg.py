"""A few words of SVG: elements, and pictures that can be heard as well as seen."""

from collections.abc import Iterable
from typing import Any

from markupsafe import Markup, escape

from shoal.report._view import View


def number(value: float) -> str:
    """A coordinate with two digits at most."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def percent_of(share: float) -> str:
    """A share as a width."""
    return f"{100 * share:.3f}%"


def element(tag: str, *children: Any, **attributes: Any) -> Markup:
    """One element; ``class_`` and ``data_name`` become ``class`` and ``data-name``.

    Examples
    --------
    >>> element("text", "a < b", x=1.5, class_="label")
    Markup('<text x="1.5" class="label">a &lt; b</text>')
    """
    written = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{_attribute(value)}"'
        for name, value in attributes.items()
        if value is not None
    )
    inside = Markup("").join(escape(child) for child in children)
    return Markup(f"<{tag}{written}>{inside}</{tag}>")


def _attribute(value: Any) -> Any:
    return number(value) if isinstance(value, float) else escape(value)


def tip(view: View, text: str, tag: str = "title") -> Markup:
    """Words that a pointer or a screen reader finds; they follow renamed classes."""
    plain = view.named(text)
    return element(tag, plain, data_text=text if plain != text else None)


def picture(
    view: View,
    key: str,
    size: tuple[float, float],
    title: str,
    description: str,
    children: Iterable[Any],
    *,
    class_: str = "",
) -> Markup:
    """An SVG with a title and a description made of its numbers.

    Parameters
    ----------
    view : View
    key : str
        Unique on the page.
    size : tuple of float
        Width and height; the picture shrinks with the page, never grows.
    title, description : str
        ``{c0}`` stands for the name of a class.
    children : iterable of Markup
    class_ : str, default=""
    """
    width, height = (number(float(side)) for side in size)
    plain = view.named(title), view.named(description)
    labels = [
        element(tag, text, id=f"{key}-{tag}", data_text=raw if raw != text else None)
        for tag, text, raw in zip(
            ("title", "desc"), plain, (title, description), strict=True
        )
    ]
    return element(
        "svg",
        *labels,
        *children,
        role="img",
        aria_labelledby=f"{key}-title {key}-desc",
        viewBox=f"0 0 {width} {height}",
        width=width,
        height=height,
        class_=f"picture {class_}".strip(),
    )
