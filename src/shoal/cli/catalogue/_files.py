"""Codes of files that cannot be found, read or understood."""

from shoal.cli.catalogue._explanation import Explanation

FILES = {
    "E101": Explanation(
        "no such file or folder",
        "Nothing has the name that was given; the hint names the nearest in the same "
        "folder, if one is near. Names are read from the folder in which the command "
        "runs.",
        exit_code=3,
    ),
    "E102": Explanation(
        "unknown format",
        "The format of a file is told by the end of its name: csv, tsv (also .gz), "
        "parquet, feather or arrow, npy, npz, h5ad, mtx, or a folder of images or "
        "texts. For another ending, say --format. Excel, Parquet, zip and gzip are "
        "recognized by their first bytes whatever they are called; save a sheet of "
        "Excel as CSV. Of compressed text only gzip is read: decompress .xz, .bz2 and "
        ".zst first.",
        exit_code=3,
    ),
    "E103": Explanation(
        "no rows",
        "The file has a header, or nothing at all, but no rows. Check the export or "
        "the filter that made it.",
        exit_code=3,
    ),
    "E104": Explanation(
        "wrong separator",
        "The lines were read as one column, or as fewer than another separator gives: "
        "semicolons where a comma stands for the decimal point, or tabs. Name it with "
        "--sep.",
        exit_code=3,
    ),
    "E105": Explanation(
        "not UTF-8",
        "A byte of the file is no UTF-8, which is how texts are expected. Files from "
        "older spreadsheets are often latin-1 or cp1252: say so with --encoding, or "
        "export the file as UTF-8.",
        exit_code=3,
    ),
    "E123": Explanation(
        "lengths differ",
        "The rows and the domains (or ids, or labels) came from two files of different "
        "length, so that it is not known which belongs to which. Make both from the "
        "same table, in the same order.",
        exit_code=3,
    ),
    "E124": Explanation(
        "wrong shape",
        "A table has rows and columns. An array with more dimensions is a stack of "
        "images or series: embed it first, or flatten it if that is what you mean. "
        "Images must be squares of one size, or be cut to it with --size.",
        exit_code=3,
    ),
    "E125": Explanation(
        "an array of Python objects",
        "The file holds objects, which can only be read with pickle, and pickle runs "
        "whatever code a file brings. shoal never loads it. Save a numeric array, or "
        "Parquet, or CSV.",
        exit_code=3,
    ),
    "E126": Explanation(
        "a degenerate embedding",
        "Many of the vectors are exactly alike. That is nearly always a fault of the "
        "step that made them: blank images, an encoder that did not load its weights, "
        "a default for what could not be read.",
        exit_code=3,
    ),
    "E127": Explanation(
        "images not found",
        "A folder of images holds one folder per domain, and the images below those: "
        "data/<domain>/*.jpg. No image was found at such a place.",
        exit_code=3,
    ),
    "E128": Explanation(
        "too many broken images",
        "More than one image in a hundred cannot be read. That is more than a few "
        "accidents: look at the files before leaving them out.",
        exit_code=3,
    ),
    "W128": Explanation(
        "broken images",
        "Some images cannot be read and are left out; the rest is used. Above one in "
        "a hundred the command stops instead.",
    ),
    "W129": Explanation(
        "the format tells the domain",
        "Images of different domains differ in format or size. A classifier of domains "
        "then sees the camera or the export rather than the contents, and classes are "
        "found that are domains under another name. Re-encode all alike.",
    ),
    "E130": Explanation(
        "not counts",
        "Counts are whole numbers from 0. Values that are negative or fractional have "
        "been normalized or transformed: name the layer with the raw counts "
        "(--layer counts), or leave --counts out and treat them as measurements.",
        exit_code=3,
    ),
    "E131": Explanation(
        "no such key in the AnnData file",
        "A domain, id or label is a column of obs; --layer names an entry of layers, "
        "--use-rep one of obsm. The hint lists those that exist.",
        exit_code=3,
    ),
    "E132": Explanation(
        "an optional package is missing",
        "Some formats need a package that shoal does not install by itself. The hint "
        "has the command that installs it.",
        exit_code=5,
    ),
    "E137": Explanation(
        "too big for this machine",
        "The rows as numbers would not fit in the memory that is free. Parquet files "
        "need not: --engine local reads them in parts, and so does --engine auto, the "
        "default. Of other formats fit a sample (--sample 200000) and let `shoal "
        "predict`, which reads in batches, class all rows. A network needs memory for "
        "a batch of images at a time: fewer of them (--batch) or smaller ones (--size) "
        "fit.",
        exit_code=3,
    ),
    "E142": Explanation(
        "a line that does not fit",
        "A line of the file has more or fewer cells than the header, most often from a "
        "separator or a quote inside a cell. The text names the line; correct it, or "
        "name the separator with --sep.",
        exit_code=3,
    ),
    "E143": Explanation(
        "a file that cannot be read",
        "The file is damaged, cut short, or not of the format that its name says. "
        "Check or replace it, or name its format with --format.",
        exit_code=3,
    ),
    "E146": Explanation(
        "no header",
        "The first line of the file holds numbers where the names of columns belong. "
        "Add a header line: columns are found by name, at fit and at predict.",
        exit_code=3,
    ),
}
