"""From two classes to all: which one splits into which, as bands of rows."""

from typing import Any

from markupsafe import Markup

from shoal.report._view import View, percent
from shoal.report.figures._svg import element, picture, tip

Record = dict[str, Any]
WIDTH, TOP, ROW, NAMES = 700, 40, 46, 150  # of a class at the right, and its name
THICK = 30.0  # all rows


def tree_picture(view: View) -> Markup:
    """The tree of the classes, left to right; nothing where there is none."""
    tree = view.summary.get("tree")
    if not tree:
        return Markup("")
    drawing = _Tree(view, tree)
    return picture(
        view,
        "tree",
        (WIDTH, TOP + ROW * tree["n_classes"]),
        "Which class splits into which",
        " ".join(drawing.said),
        drawing.parts,
        class_="tree",
    )


class _Tree:
    """Classes as bands that split; the y of a class is the mean of its leaves."""

    def __init__(self, view: View, tree: Record) -> None:
        self.view, self.tree = view, tree
        self.splits = [(_whole(one), one) for one in tree["splits"]]
        order = _leaves(tree)
        self.height = {y: TOP + ROW * (i + 0.5) for i, y in enumerate(order)}
        self.step = (WIDTH - NAMES) / (tree["n_classes"] - 0.75)
        self.parts: list[Markup] = []
        self.said: list[str] = []
        self._heads()
        self._draw(list(range(tree["n_classes"])), 1, tree["n_rows"])

    def x(self, level: float) -> float:
        return 10 + self.step * (level - 1)

    def _heads(self) -> None:
        for one in self.tree["splits"]:
            for y, text in (
                (14, f"{one['n_classes']}"),
                (30, percent(one["agreement"])),
            ):
                x = self.x(one["n_classes"])
                self.parts.append(element("text", text, x=x, y=y, class_="tick"))

    def _middle(self, members: list[int]) -> float:
        return sum(self.height[one] for one in members) / len(members)

    def _draw(self, members: list[int], start: int, rows: int) -> None:
        split = next((one for whole, one in self.splits if whole == members), None)
        end = self.tree["n_classes"] if split is None else split["n_classes"] - 1
        middle = self._middle(members)
        self._band(
            members, (start, middle), (end + (split is None) * 0.25, middle), rows
        )
        if split is None:
            name = self.view.name_html(f"c{members[0]}", "tspan")
            x, y = self.x(end + 0.25) + 6, middle + 4
            self.parts.append(element("text", name, x=x, y=y))
            return
        self.said.append(_sentence(split))
        for part, size in zip(split["parts"], split["rows"], strict=True):
            goal = (split["n_classes"], self._middle(part))
            self._band(part, (end, middle), goal, size)
            self._draw(part, split["n_classes"], size)
        if split["columns"]:
            name, by = split["columns"][0]
            self.parts.append(
                element("text", f"{name} {by:+.1f}", x=self.x(end + 0.5), y=middle + 4,
                        class_="tick halo")
            )  # fmt: skip

    def _band(
        self, members: list[int], begin: tuple[float, float], end: Any, rows: int
    ) -> None:
        half = max(1.0, THICK * rows / self.tree["n_rows"] / 2)
        (a, y), (b, z) = begin, end
        if self.x(b) <= self.x(a):
            return
        hue = self.view.hue(members[0]) if len(members) == 1 else "grey"
        ids = " and ".join(f"{{c{one}}}" for one in members)
        path = (
            f"M{self.x(a):.1f} {y - half:.1f}L{self.x(b):.1f} {z - half:.1f}"
            f"V{z + half:.1f}L{self.x(a):.1f} {y + half:.1f}Z"
        )
        said = tip(self.view, f"{ids}: {rows:,} rows")
        self.parts.append(element("path", said, d=path, class_=f"flow {hue}"))


def _whole(split: Record) -> list[int]:
    return sorted(split["parts"][0] + split["parts"][1])


def _leaves(tree: Record) -> list[int]:
    """Classes in an order in which no bands cross."""
    order = [list(range(tree["n_classes"]))]
    for split in tree["splits"]:
        place = order.index(_whole(split))
        order[place : place + 1] = split["parts"]
    return [one for (one,) in order]


def _sentence(split: Record) -> str:
    first, second = (
        " and ".join(f"{{c{one}}}" for one in part) for part in split["parts"]
    )
    sizes = " and ".join(f"{size:,}" for size in split["rows"])
    head = f"With {split['n_classes']} classes:"
    return f"{head} {first} apart from {second} ({sizes} rows)."
