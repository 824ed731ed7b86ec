"""The checks of a diagnosis that have a word for a code."""

from shoal.cli.catalogue._explanation import Explanation

CHECKS = {
    "misfit": Explanation(
        "the classes do not explain how domains differ",
        "Rows are sorted into cells, and their counts per domain are compared with "
        "what the classes and their mixes predict. More misfit than the model itself "
        "would give by chance means more classes, or classes that do not look alike "
        "everywhere. The unexplained share says how much of the differences between "
        "domains is left.",
    ),
    "gain-kept": Explanation(
        "domain signal that no class carries",
        "A free guesser of domains is compared with one that must guess through the "
        "classes. What it knows more is a difference between domains that the classes "
        "do not explain: an instrument, a site, a date, or classes still missing.",
    ),
    "alike": Explanation(
        "a class looks different from domain to domain",
        "Within a class, rows of different domains should look alike; here they lie "
        "apart. The class may be two classes, or the domains measure differently. "
        "Compare the surest rows of the class in the two domains named.",
    ),
    "condition": Explanation(
        "mixes that are combinations of others",
        "The class mixes of the domains are nearly dependent, so that small errors in "
        "the data become large ones in the prevalences. Use fewer classes, or domains "
        "with other mixes.",
    ),
    "rank": Explanation(
        "fewer classes are supported",
        "The table of cells by domains has fewer directions than classes were asked "
        "for. The others rest on little: use fewer classes, more rows or more domains.",
    ),
    "anchors": Explanation(
        "no rows belong surely to a class",
        "Classes are pinned down by rows that only one class can produce. Where every "
        "row could be of two classes, the classes found may be mixtures of the true "
        "ones. Features that separate them better help; more rows do not.",
    ),
    "empty": Explanation(
        "a class without rows",
        "A class holds almost no rows in any domain. Use fewer classes.",
    ),
    "starts": Explanation(
        "other solutions fit as well",
        "Fits from other starts are as good and class the rows differently: the data "
        "do not pin the classes down. Refit with other seeds and compare; use fewer "
        "classes if they disagree.",
    ),
}
