"""Codes of columns, rows and domains that stop a command or deserve a look."""

from shoal.cli.catalogue._explanation import Explanation

COLUMNS = {
    "E107": Explanation(
        "no such column",
        "A column that the command names is not in the file. The hint has the nearest "
        "name; `shoal check` lists all columns.",
        exit_code=3,
    ),
    "E108": Explanation(
        "one domain",
        "All rows come from the same domain. Classes are told apart by how their "
        "shares move between domains, so one domain alone shows nothing: add the files "
        "of other sites, or choose another column. For groups within one domain use "
        "clustering.",
        exit_code=4,
    ),
    "E109": Explanation(
        "a domain that is an id or a number",
        "Nearly every row has a domain of its own, so that no domain has a mix to "
        "speak of. Group the values (--domain-bins 10 cuts a number into ten equal "
        "parts) or choose another column.",
        exit_code=3,
    ),
    "E110": Explanation(
        "rows without a domain",
        "Some rows do not say where they come from. Leave them out with "
        "--drop-missing-domain, or fill them in.",
        exit_code=3,
    ),
    "W111": Explanation(
        "a thin domain",
        "A domain has so few rows (or images) that its mix of classes cannot be read "
        "with any precision, whatever the method. Merge it with a domain of the same "
        "kind, or read its interval rather than its estimate. In the fit, domains "
        "count alike as long as none is very small; a row counts at most three times "
        "as much as the mean row, so a thin domain counts less than the others. A "
        "folder in which no image can be read is no domain at all and is left out.",
    ),
    "E112": Explanation(
        "more classes than domains",
        "Classes are told apart by how they shift between domains, and r domains can "
        "tell at most r classes apart. Ask for fewer classes, or use a finer column "
        "as the domain.",
        exit_code=4,
    ),
    "E114": Explanation(
        "no columns left",
        "Every column was set aside: the domain, ids, labels, free text, columns that "
        "never vary. `shoal check` lists each with its reason. Use --text for free "
        "text, or name columns with --features.",
        exit_code=3,
    ),
    "E115": Explanation(
        "missing or infinite values",
        "Some cells are empty or not finite. Filling them in is a decision: "
        "--impute median puts the column's median (the most frequent value for words) "
        "and keeps it in the model, so that later files are filled alike; a model that "
        "was fitted without it cannot. Where cells are missing for a reason that "
        "differs between domains, drop the column.",
        exit_code=3,
    ),
    "E116": Explanation(
        "free text among the columns",
        "A column holds sentences or names rather than numbers or a few categories. "
        "Read it as text with --text, or leave it out with --drop.",
        exit_code=3,
    ),
    "W117": Explanation(
        "a column that numbers the rows",
        "A column tells every row from the others: whole numbers that count the rows "
        "(gaps where rows were left out do not matter) or are called an id, or words "
        "of which nearly all differ. It is not used as a feature. Naming it with --id "
        "makes this quiet and puts it in the results; if it is a measurement after "
        "all, insist with --features.",
    ),
    "E119": Explanation(
        "mixed types",
        "A column is numeric but for a few cells, or its numbers are written for "
        "people: decimal commas, thousands separators, percent signs. If cells stand "
        "for a missing value, say so with --na; otherwise correct the rows.",
        exit_code=3,
    ),
    "E120": Explanation(
        "a column that looks like the answer",
        "A column has the name of a label (species, diagnosis, class, ...). As a "
        "feature it would give the answer away. --label holds it aside and uses it "
        "only to score; --features takes exactly the columns you name.",
        exit_code=3,
    ),
    "W121": Explanation(
        "a column names the domain",
        "One column alone tells where most rows come from: a site number, a date, a "
        "file format. Unless it is a property of the classes themselves, drop it: "
        "classes would be found that are domains under another name.",
    ),
    "W122": Explanation(
        "rows repeated across domains",
        "The same rows occur in more than one domain. Copies pull domains together "
        "and make the differences between their mixes look smaller than they are. "
        "Remove them.",
    ),
    "E141": Explanation(
        "columns of the same name",
        "Several columns have the same name, so that it is not known which one is "
        "meant. Rename or remove the copies.",
        exit_code=3,
    ),
    "W141": Explanation(
        "a column of dates",
        "Dates are not used as features: as numbers they often name the domain. Make "
        "the number you mean (the month, the age) a column of its own.",
    ),
    "W142": Explanation(
        "a column with very many values",
        "A column of words has more different values than can be told apart by their "
        "rows. It is not used: group the values, or read it as text with --text.",
    ),
    "E144": Explanation(
        "cells that hold lists",
        "Each cell of a column holds a list or another nested value. A table has one "
        "value per cell: write one column per number, or an npy file.",
        exit_code=3,
    ),
    "W144": Explanation(
        "rows left out",
        "Rows were left out as asked, as fit did, or because nothing was left of "
        "them. Fill them in to keep them.",
    ),
    "E145": Explanation(
        "an option that cannot be used so",
        "An option has a value that means nothing, or two options exclude each other. "
        "The text names them.",
        exit_code=2,
    ),
    "W145": Explanation(
        "thin domains merged",
        "Domains with few rows became one domain, as asked with --merge-small. Its mix "
        "is that of all of them together, and describes none of them.",
    ),
    "W143": Explanation(
        "values that the model has not seen",
        "A column of categories holds values that no row of the fit had. They count as "
        "none of the known values, so that the other columns decide. Many of them are "
        "a sign that the column means something else here.",
    ),
    "W146": Explanation(
        "texts without a known word",
        "Some texts hold none of the words that the model counts. They say nothing "
        "about the class, which is then that of their domain: check the column.",
    ),
    "W148": Explanation(
        "a number that may mean missing",
        "Many tables write -999 or 9999 where nothing was measured. Here such a number "
        "lies far from all others of its column, and would be taken as a measurement. "
        "If it means missing, say so with --na, and with --impute what to do about it.",
    ),
    "E148": Explanation(
        "a group that cuts through a domain",
        "--group names a column that puts whole domains together: patients by disease, "
        "plots by treatment. Here the rows of one domain are in several groups, or in "
        "none. Choose another column, or a finer domain.",
        exit_code=3,
    ),
    "E147": Explanation(
        "files with different columns",
        "Several files were given, one domain each, and one lacks a column that "
        "another has. Give all files the same columns, or leave the column out of all.",
        exit_code=3,
    ),
}
