"""Codes of wrong usage, of output that is in the way, and of sudden ends."""

from shoal.cli.catalogue._explanation import Explanation

USAGE = {
    "E001": Explanation(
        "a bug in shoal",
        "Something happened that shoal did not foresee. Files are written whole or not "
        "at all. Run the command again with --debug to see where it happened, and "
        "report that together with the output of `shoal version`.",
        exit_code=1,
    ),
    "E002": Explanation(
        "wrong usage",
        "The command line has an option, a value or a command that shoal does not "
        "know. `shoal --help` lists the commands, `shoal COMMAND --help` its options.",
        exit_code=2,
    ),
    "E003": Explanation(
        "interrupted",
        "The command was stopped by Ctrl-C. Files are written under a temporary name "
        "and renamed when all of them are whole, so that every file is either whole "
        "or as it was before.",
        exit_code=130,
    ),
    "E106": Explanation(
        "no domain given",
        "shoal learns from differences between domains: sites, hospitals, islands, "
        "years, stores, anything that says where a row comes from. Name that column "
        "with --domain, or pass several files, one domain each. The hint lists columns "
        "with few distinct values; which of them is the domain is for you to say.",
        exit_code=2,
    ),
    "E113": Explanation(
        "a number of classes that is none",
        "The number of classes is a whole number from 2, or the word auto, with which "
        "fit chooses it as `shoal choose` would. `shoal choose` takes a range such as "
        "2:8.",
        exit_code=2,
    ),
    "E136": Explanation(
        "the output exists",
        "What the command would write exists already, or lies where it must not: in "
        "the folder of the model that is being adapted, among the data, or in a folder "
        "that holds something else. Choose another place with --out. Where a run, a "
        "model, predictions or a training that was stopped are in the way, --force "
        "replaces them (`shoal pretrain` can also go on with --resume); other files in "
        "the folder are never touched, and data never replaced by predictions in "
        "parts. Three things are replaced without asking, and only where nobody "
        "changed them since: an earlier `shoal demo`, and the page and prevalence.csv "
        "of a run by `shoal report` and `shoal name`.",
        exit_code=2,
    ),
    "E140": Explanation(
        "cannot write",
        "The folder for the results cannot be made or written to: a file has its "
        "name, a permission is missing, or the disk is full. Choose another folder "
        "with --out.",
        exit_code=3,
    ),
    "E160": Explanation(
        "a configuration that cannot be used",
        "The file given with --config is not TOML, or holds an option that no command "
        "has, or a value of the wrong kind or out of range. Its keys are the long "
        'names of options (domain = "island", drop-missing-domain = true, features = '
        '["a", "b"]), at the top for every command or in a table such as [fit] for '
        "one. What is said on the command line wins.",
        exit_code=2,
    ),
    "E165": Explanation(
        "a training that ran away",
        "The loss is no longer a number: the steps were too large. Train again with a "
        "lower --learning-rate, or a larger --batch.",
        exit_code=4,
    ),
    "E166": Explanation(
        "workers of a training ended again and again",
        "On a Ray cluster a worker that dies is replaced, and the training goes on "
        "from its last checkpoint; this happened too often. Most often memory ran out "
        "(a smaller --batch or --size), or the cluster lost its machines. The same "
        "command with --resume goes on.",
        exit_code=3,
    ),
}
