"""Colours of classes: the eight of Okabe and Ito, told apart by every kind of eye."""

#: Colours that stay apart under all common forms of colour blindness, best first.
OKABE_ITO = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#D55E00",
    "#56B4E9",
    "#F0E442",
    "#000000",
)
#: More classes than colours: all grey, and one at a time highlighted.
GREY = "#8A8F98"
#: Shapes of matplotlib, one per colour: nothing rests on colour alone.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")


def class_color(index: int, n_classes: int) -> str:
    """Colour of a class, grey where there are more classes than colours."""
    return OKABE_ITO[index] if n_classes <= len(OKABE_ITO) else GREY
