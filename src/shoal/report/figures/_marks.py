"""A heat map: columns that tell classes apart, by class."""

from typing import Any

from markupsafe import Markup

from shoal.report._view import View, percent, short
from shoal.report.figures._svg import element, picture, tip

# Width and height of a cell, width of a letter, and letters of a name that are shown.
CELL, ROW, LETTER, LONGEST = 20.0, 22.0, 7.6, 16
# What is rarest is still seen to be a cell.
FAINTEST = 0.06


def marks_picture(view: View) -> Markup:
    """Rows are classes, columns the marks of each; the darkest class has most."""
    record = view.summary["marks"]
    marks, levels = record["marks"], record["levels"]
    names = [_cut(mark["name"]) for mark in marks]
    left = 14 + LETTER * max(min(len(one["name"]), LONGEST) for one in view.classes)
    top = 12 + LETTER * max(map(len, names))
    size = left + CELL * len(marks) + 4, top + ROW * len(levels) + 4
    heads = [
        element("text", name, x=0.0, y=0.0, class_="tick start",
                transform=f"translate({left + CELL * place + 14:.1f} {top - 6:.1f}) "
                "rotate(-90)")
        for place, name in enumerate(names)
    ]  # fmt: skip
    rows = [
        element("g", *_row(view, index, left, top), class_=view.hue(index))
        for index in range(len(levels))
    ]
    said = " ".join(
        f"{{c{index}}}: "
        + ", ".join(one["name"] for one in marks if one["of"] == f"c{index}")
        + "."
        for index in range(len(levels))
        if any(one["of"] == f"c{index}" for one in marks)
    )
    return picture(
        view, "marks", size, "Marks of the classes", said, [*heads, *rows],
        class_="heat",
    )  # fmt: skip


def _row(view: View, index: int, left: float, top: float) -> list[Markup]:
    record = view.summary["marks"]
    y = top + ROW * index
    label = view.name_html(f"c{index}", "tspan")
    cells = [element("text", label, x=4.0, y=y + 15, class_="domain")]
    for place, mark in enumerate(record["marks"]):
        level = record["levels"][index][place]
        column = [row[place] for row in record["levels"]]
        low = min(0.0, *column)
        share = (level - low) / max(max(column) - low, 1e-300)
        said = _said(mark["name"], level, record["unit"])
        cells.append(
            element("rect", tip(view, f"{said} in {{c{index}}}"), x=left + CELL * place,
                    y=y, width=CELL - 1, height=ROW - 1, class_="fill",
                    fill_opacity=max(share, FAINTEST))
        )  # fmt: skip
    return cells


def _said(name: str, level: float, unit: str) -> str:
    return f"{name}: {short(level) if unit == 'mean' else _share(level)}"


def _share(level: float) -> str:
    return percent(level) if level >= 0.1 else f"{100 * level:.2g}%"


def _cut(name: Any) -> str:
    text = str(name)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
