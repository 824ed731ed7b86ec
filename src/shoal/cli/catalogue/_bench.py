"""Codes of the benchmark."""

from shoal.cli.catalogue._explanation import Explanation

BENCH = {
    "E150": Explanation(
        "the benchmark's data are not there",
        "The runs asked for need files that shoal does not bring along: images, or "
        "features of them. The message names the file; results/README.md says what is "
        "in it and how it is made. Name the folder with --data or the environment "
        "variable SHOAL_DATA_DIR. `shoal bench run twin` needs no files of yours but "
        "Fashion-MNIST, `shoal bench run tiny` none at all.",
        exit_code=3,
    ),
    "E151": Explanation(
        "nothing to draw",
        "The store has no record of the grid asked for, so there is nothing to draw. "
        "Run the grid first, or name the store that holds its records with --store.",
        exit_code=3,
    ),
    "W150": Explanation(
        "runs that cannot be made here",
        "Some of the runs need a package or files that are not here; the others were "
        "made. What was left out stays missing in the store and is run by the same "
        "command where the package or the files are.",
    ),
    "W151": Explanation(
        "runs that failed",
        "Some runs ended with an error. They are kept apart from the results, each "
        "with its traceback, in failed.jsonl of the store, and are not tried again "
        "unless --retry-failed is given.",
    ),
}
