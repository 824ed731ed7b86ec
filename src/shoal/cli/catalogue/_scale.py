"""Codes of work in parts, on this machine or on a cluster."""

from shoal.cli.catalogue._explanation import Explanation

SCALE = {
    "E170": Explanation(
        "no Ray cluster answers",
        "--engine ray was told an --address at which no Ray cluster answers. `ray "
        "start --head` starts one and prints its address; without --address, the "
        "cluster that Ray itself finds is used, or a new one on this machine.",
        exit_code=3,
    ),
    "E171": Explanation(
        "a worker ended again and again",
        "A part of the data ended every process that worked on it, most often because "
        "memory ran out. Use fewer --workers, so that each has more memory, or write "
        "the file with smaller row groups. Parts that were finished are kept: the same "
        "command with the same --checkpoint goes on from them.",
        exit_code=3,
    ),
    "E172": Explanation(
        "not for data that are read in parts",
        "Data larger than memory are read in parts, by --engine local or ray: Parquet "
        "files, a folder of them or a pattern such as 'rows/*.parquet', with a column "
        "(or a folder name such as site=A) that says where a row comes from. Other "
        "formats, and options that need all rows at once, are not for them.",
        exit_code=2,
    ),
    "W170": Explanation(
        "passes that have not converged",
        "Over data that are read in parts, prevalences are made exact by passes over "
        "all rows. The last of them still moved a prevalence by more than sampling "
        "would: the shares are near, not exact. A larger --sample to begin with helps, "
        "and from Python more passes (`passes=`).",
    ),
}
