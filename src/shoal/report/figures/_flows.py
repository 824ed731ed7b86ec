"""Where rows go when there are more or fewer classes: the tree, and the neighbours."""

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from shoal.report._view import View, percent
from shoal.report.figures._svg import element, number, picture, tip

# ---- from two classes to all: which one splits into which, as bands of rows ----------

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


# ---- one class fewer, this fit, one class more ---------------------------------------

WIDTH, TOP, HEIGHT, GAP = 700, 34, 230, 7
NODE = 76  # width of a class
Box = tuple[float, float]  # upper and lower end


def neighbours_picture(view: View) -> Markup:
    """Fits with the next numbers of classes beside this one; bands are rows."""
    fewer, more = beside(view)
    shown = [one for one in (fewer, more) if one is not None]
    if not shown:
        return Markup("")
    ours = [sum(row) for row in shown[0]["shared"]]
    flows = _Flows(view, ours, sum(ours))
    first, last = NODE / 2 + 4, WIDTH - NODE / 2 - 4
    centre = WIDTH / 2 if fewer and more else last if fewer else first
    parts = [flows.side(fewer, first, centre)] if fewer else []
    parts += [flows.side(more, last, centre)] if more else []
    parts.append(flows.column(centre))
    most = max(len(view.classes), *(one["n_classes"] for one in shown))
    return picture(
        view,
        "neighbours",
        (WIDTH, TOP + HEIGHT + GAP * most),
        "Where the rows of each class go with other numbers of classes",
        " ".join(flows.said),
        parts,
        class_="flows",
    )


def beside(view: View) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """The fits with the next smaller and the next larger number of classes."""
    k = len(view.classes)
    known = [one for one in view.summary["neighbours"] if "shared" in one]
    fewer = [one for one in known if one["n_classes"] < k]
    more = [one for one in known if one["n_classes"] > k]
    return (fewer[-1] if fewer else None), (more[0] if more else None)


class _Flows:
    """Classes as boxes, as high as they have rows; bands lead to other fits."""

    def __init__(self, view: View, ours: Sequence[int], n_rows: int) -> None:
        self.view, self.n_rows = view, max(n_rows, 1)
        self.own = _stack(ours, self.n_rows)
        self.said: list[str] = []

    def column(self, x: float) -> Markup:
        """The classes of this report."""
        k = len(self.own)
        boxes = [
            self._box(x, box, self.view.hue(index),
                      self.view.name_html(f"c{index}", "tspan"), "own")
            for index, box in enumerate(self.own)
        ]  # fmt: skip
        return element("g", self._head(x, f"{k} classes (this report)"), *boxes)

    def side(self, other: dict[str, Any], x: float, centre: float) -> Markup:
        """The classes of another fit, and the bands that lead to them."""
        shared = other["shared"]
        sizes = [sum(column) for column in zip(*shared, strict=True)]
        order = sorted(range(len(sizes)), key=lambda j: _place(shared, self.own, j))
        stacked = _stack([sizes[j] for j in order], self.n_rows)
        boxes = dict(zip(order, stacked, strict=True))
        bands = self._bands(shared, boxes, centre, x)
        drawn = [
            self._box(x, boxes[j], "grey", f"{place + 1}", "")
            for place, j in enumerate(order)
        ]
        return element("g", self._head(x, f"{len(sizes)} classes"), *bands, *drawn)

    def _bands(
        self, shared: list[list[int]], boxes: dict[int, Box], centre: float, x: float
    ) -> list[Markup]:
        """One band for all rows that a class of ours and one of theirs share."""
        left, right = (x, centre) if x < centre else (centre, x)
        start = [box[0] for box in self.own]
        end = {j: box[0] for j, box in boxes.items()}
        found = []
        for index, row in enumerate(shared):
            for place, j in enumerate(boxes):
                if not row[j]:
                    continue
                tall = HEIGHT * row[j] / self.n_rows
                a, b = start[index], end[j]
                start[index], end[j] = a + tall, b + tall
                here, there = (b, a) if x < centre else (a, b)
                said = (
                    f"{row[j]:,} rows of {{c{index}}} "
                    f"({percent(row[j] / max(sum(row), 1))}) would be in class "
                    f"{place + 1} of {len(boxes)}."
                )
                self.said.append(said)
                path = _band(left + NODE / 2, right - NODE / 2, here, there, tall)
                hue = f"flow row {self.view.hue(index)}"
                found.append(element("path", tip(self.view, said), d=path, class_=hue))
        return found

    def _box(self, x: float, box: Box, hue: str, name: Any, class_: str) -> Markup:
        top, bottom = box
        share = percent((bottom - top) / HEIGHT)
        text = element("text", name, " · ", share, x=x, y=(top + bottom) / 2 + 4,
                       class_="tick")  # fmt: skip
        shape = element("rect", x=x - NODE / 2, y=top, width=NODE,
                        height=max(bottom - top, 1.0), rx=3, class_="node")  # fmt: skip
        return element("g", shape, text, class_=f"{hue} {class_}".strip())

    def _head(self, x: float, text: str) -> Markup:
        side = "start" if x < NODE else "end" if x > WIDTH - NODE else ""
        place = {"start": 2.0, "end": WIDTH - 2.0}.get(side, x)
        return element("text", text, x=place, y=16, class_=f"mark {side or 'centre'}")


def _stack(sizes: Sequence[int], n_rows: int) -> list[Box]:
    boxes, y = [], float(TOP)
    for size in sizes:
        boxes.append((y, y + HEIGHT * size / n_rows))
        y = boxes[-1][1] + GAP
    return boxes


def _place(shared: list[list[int]], own: list[Box], j: int) -> float:
    """Where the rows of a class of the other fit lie in this one, on average."""
    rows = sum(row[j] for row in shared)
    middles = [(top + bottom) / 2 for top, bottom in own]
    total = sum(row[j] * middle for row, middle in zip(shared, middles, strict=True))
    return total / rows if rows else float("inf")


def _band(left: float, right: float, a: float, b: float, tall: float) -> str:
    """A band that bends from one height to another."""
    turn = number((left + right) / 2)
    x0, x1 = number(left), number(right)
    return (
        f"M{x0} {number(a)}C{turn} {number(a)} {turn} {number(b)} {x1} {number(b)}"
        f"V{number(b + tall)}C{turn} {number(b + tall)} {turn} {number(a + tall)} "
        f"{x0} {number(a + tall)}Z"
    )
