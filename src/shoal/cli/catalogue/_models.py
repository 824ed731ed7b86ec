"""Codes of models, of new data for them, and of what a fit could not answer."""

from shoal.cli.catalogue._explanation import Explanation

MODELS = {
    "E133": Explanation(
        "a column that the model needs",
        "The model was fitted with a column that the new file does not have. Columns "
        "are found by name, so order does not matter and further columns are ignored. "
        "Supply it under the same name, or refit without it. Where the column of the "
        "domain is missing, --pooled classes rows without it.",
        exit_code=6,
    ),
    "E134": Explanation(
        "a domain that the model has not seen",
        "The class of a row depends on how frequent each class is where the row comes "
        "from, and the model does not know that for a new domain. Learn its mix with "
        "`shoal adapt`, or use the mix of all training domains with --pooled.",
        exit_code=6,
    ),
    "E135": Explanation(
        "not a model that can be read",
        "The folder is not a model of shoal, was written by a newer version, or a file "
        "in it is damaged. Models are JSON and plain arrays; nothing in them is run. "
        "Upgrade shoal, or fit again.",
        exit_code=6,
    ),
    "E138": Explanation(
        "nothing to find",
        "On held-out rows, the domain of a row cannot be guessed better than blindly. "
        "The mix of classes may be the same everywhere, the features may not carry "
        "the classes, or there may be too few rows. More of the same rows will not "
        "help if the mix is the same: look for domains that differ.",
        exit_code=4,
    ),
    "W139": Explanation(
        "a class that lives in one domain",
        "Nearly all of a class was found in one domain. It can be real (on the "
        "penguins' islands two species breed on one island each) or it can be that "
        "domain's instrument, protocol or season: then the class is the domain under "
        "another name, and its prevalence says nothing. Look at some of its rows and "
        "ask whether they could have been found elsewhere.",
    ),
    "W160": Explanation(
        "no clear number of classes",
        "Several numbers of classes explain held-out rows about equally well, or more "
        "would be better than those tried. fit goes on with the fewest of the best. "
        "`shoal choose` shows the curve; set the number with --k if you know better.",
    ),
    "E161": Explanation(
        "names that cannot be used",
        "Classes are called by their id (c0, c1, ...) or their current name, and no "
        "two classes may share a name. `shoal name MODEL --list` shows them. A merge "
        "needs at least two classes and leaves at least two.",
        exit_code=2,
    ),
    "E164": Explanation(
        "these data cannot be fitted",
        "The rows could be read, but the estimator refuses them, for the reason it "
        "gives: fewer distinct words than classes, for example. Ask for fewer classes "
        "with --k, or use more columns or rows; `shoal check` shows what was read.",
        exit_code=4,
    ),
    "W161": Explanation(
        "a remark of the fit",
        "The estimator noticed something about the data and went on: columns that "
        "never vary, a class without rows, a climb that ended early. The text says "
        "which.",
    ),
    "E162": Explanation(
        "the run lacks a file",
        "The command needs a file of the run that is not there: the report is drawn "
        "from summary.json, which `shoal fit` writes beside the model. Give the folder "
        "of the run rather than a bare model, or pass the data as well.",
        exit_code=6,
    ),
    "W162": Explanation(
        "merged classes are drawn apart",
        "The summary of the run knows the classes as they were fitted. After a merge "
        "they share a name in the page, but each keeps its own card. Pass the data to "
        "`shoal report` to draw them as one.",
    ),
    "E163": Explanation(
        "a prevalence that cannot be used",
        "A class mix has one share per class, from 0 to 1, adding to 1. --prevalence "
        "reads a CSV with the columns class_id (or class_name) and estimate, or JSON "
        'such as {"c0": 0.7, "c1": 0.3}. Of the prevalence.csv that `shoal adapt` '
        "writes, the rows of the domain that was added count; of any other file with "
        "several domains, keep the rows of one.",
        exit_code=3,
    ),
    "W164": Explanation(
        "a class needs a new name",
        "With --names and the folder of an earlier run, a class takes the name of an "
        "earlier one if at least 80% of the rows of either are in the other. A class "
        "without such a counterpart keeps its id: look at its card and name it with "
        "`shoal name`.",
    ),
    "E168": Explanation(
        "small domains and --redact, for data read in parts",
        "With --redact no domain of fewer than ten rows is named. Rows in memory lose "
        "such a name before the fit; rows that are read in parts carry it into every "
        "pass, so the fit is refused instead. Leave the rows of these domains out, "
        "join them to another domain, or fit without --redact.",
        exit_code=3,
    ),
    "E167": Explanation(
        "a domain of the model without rows",
        "A model is judged, and its report drawn anew, by rows of every domain that it "
        "knows. Some domain has none in these data: pass the rows of the fit. A domain "
        "that was learned by `shoal adapt` counts too, and one of fewer than ten rows "
        "has lost its name in a fit with --redact: such a model cannot be judged "
        "again.",
        exit_code=6,
    ),
    "W165": Explanation(
        "a part of the training is not compiled",
        "Steps of a network's training are compiled where that works, which makes them "
        "faster. One part could not be, and runs as it is written: the results are the "
        "same, only later. The text names the part and the reason.",
    ),
    "W166": Explanation(
        "a page above its size",
        "Pictures, rows and points of the maps were left out of the report, and what "
        "is left is still larger than --max-mb. The page is written all the same. "
        "Choose fewer --sections, or allow the size that the message says.",
    ),
    "W163": Explanation(
        "rows unlike those of training",
        "Many of the new rows lie outside of what the model has seen. Their classes "
        "are a guess, and a prevalence made of them too: a new kind of row may be "
        "among them, or the instrument changed. Look at the rows with a small "
        "fit_score before you use them.",
    ),
}
