"""Read data of any kind into a :class:`~shoal.io.Table`."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from shoal.exceptions import InputError
from shoal.io._batches import read_images
from shoal.io._files import join, require_columns
from shoal.io._options import SourceOptions
from shoal.io._sentences import told_of
from shoal.io.source._arrays import check_length, check_size, check_varied
from shoal.io.source._format import Content
from shoal.io.source._open import open_content
from shoal.io.table._cells import stripped, words
from shoal.io.table._columns import Feature, decimal_of, plan_columns
from shoal.io.table._domains import DomainRule, ask_for_domain, learn_domains
from shoal.io.table._missing import filled_unasked, lacking, left_open, with_fill
from shoal.io.table._schema import Schema
from shoal.io.table._table import Column, Message, Table
from shoal.io.table._words import learn_vocabulary

Array = np.ndarray[Any, Any]


def read(
    data: Any,
    *,
    domain: Any = None,
    domain_file: Any = None,
    id: str | None = None,
    label: str | None = None,
    known: str | None = None,
    group: str | None = None,
    order: str | None = None,
    features: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    text: str | None = None,
    counts: bool = False,
    layer: str | None = None,
    use_rep: str | None = None,
    format: str | None = None,
    sheet: str | None = None,
    sep: str | None = None,
    decimal: str | None = None,
    encoding: str = "utf-8",
    na: Sequence[str] = (),
    na_only: bool = False,
    impute: str | None = None,
    sample: int | None = None,
    seed: int = 0,
    domain_bins: int | None = None,
    drop_missing_domain: bool = False,
    merge_small: str | None = None,
    require_domain: bool = True,
    domain_from: str | None = None,
    skip_bad: bool = False,
    encoder: str | None = None,
) -> Table:
    """Read a table, and say how every column was understood.

    Parameters
    ----------
    data : path, list of paths, "-", or a table
        A file (csv, tsv, txt, jsonl, also .gz; parquet; feather or arrow; xlsx; dta;
        sas7bdat, xpt; npy; npz; h5ad; mtx), a folder ``root/<domain>/...`` of images or
        of .txt files, several files (one domain each, named after the file), ``"-"``
        for CSV on standard input, or a pandas, polars or pyarrow table, AnnData object,
        array or sparse matrix.
    domain : str or array-like, default=None
        Column that says where a row comes from; for arrays also its values.
    domain_file : path, default=None
        Domains in a file of their own, one a line or npy, for npy, npz and mtx.
    id, label : str, default=None
        Columns that name the rows, and that hold true classes (only for scoring).
    known : str, default=None
        Column of classes known of some rows, for ``fit`` to use as ``labels``.
    group : str, default=None
        Column with the group of each domain, such as healthy or ill; not a feature.
    order : str, default=None
        Column that says when a row is from, as a number or a date; not a feature.
    features : list of str, default=None
        Use these columns and no others, also if a rule would set them aside.
    drop : list of str, default=()
        Columns to leave out.
    text : str, default=None
        Column whose words are counted: those in two rows at least and in half of the
        rows at most, without function words of the language found, and of them the
        20,000 most frequent.
    counts : bool, default=False
        The columns are counts of words: whole numbers from 0.
    layer, use_rep : str, default=None
        Matrix of an AnnData file, instead of X.
    sheet : str, default=None
        Of an Excel workbook with several.
    format, sep, decimal, encoding : str
        Where the file's name or content does not tell. Commas, semicolons, tabs and
        bars are found as separators, decimal commas (3,5) as well as points, and
        UTF-16 and cp1252 (with a warning) as well as UTF-8.
    na : sequence of str, default=()
        Further cells that mean "no value".
    na_only : bool, default=False
        Only empty cells and those of ``na`` do: where ``NA`` is a species.
    impute : {None, "median", "mean", "drop", "keep", "stop"}, default=None
        What becomes of missing values: the median or mean of a number and the most
        frequent value of a category; the row is left out; in a table, they stay missing
        (NaN), for a fit that takes them; or an error. None: of a table, few are filled
        in as by "median", with a warning that counts them; many are an error.
    sample : int, default=None
        Draw so many rows at random, in bounded memory.
    seed : int, default=0
        For ``sample``.
    domain_bins : int, default=None
        Cut a number into so many domains of about equal size.
    drop_missing_domain : bool, default=False
        Leave out rows without a domain.
    merge_small : str, default=None
        Domains with fewer than 30 rows become one of this name.
    require_domain : bool, default=True
        Whether rows without any domain are an error (E106).
    domain_from : str, default=None
        For images: regular expression whose first group is the domain.
    skip_bad : bool, default=False
        For images: go on also when more than 1 % cannot be read.
    encoder : str, default=None
        For texts: "use-multilingual" (of the extra ``shoal[text]``) makes points of
        them, instead of counting their words.

    Returns
    -------
    Table

    Raises
    ------
    InputError
        With a code, the column and the first row concerned, and the fix.

    Notes
    -----
    *Missing values* are empty or blank cells, ``NA``, ``NaN``, ``nan``, ``null``,
    ``NULL``, ``<NA>`` and those of ``na``, in every column; in a column of numbers also
    ``-``, ``n/a``, ``?`` and their like, with a warning. Unless ``impute`` says what to
    do, they are an error where more than a fifth of a column is missing, or all of it
    in a domain. At predict, the values learned in fit are used, or such rows left out
    as in fit. Infinite values are always an error. Blanks around words mean nothing.

    *Categories* are text columns with at most 50 distinct values (1,000 if asked for by
    ``features``), each of which becomes a column of zeros and ones. *Dates*, columns
    that differ in every row, text with more values and constant columns are set aside
    and listed in ``columns``; running text and columns that look like the answer are
    errors.

    Rows are counted from 1 in messages, the header left out.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"site": ["a", "b"] * 40, "size": [3.5, 1.2] * 40})
    >>> table = read(frame, domain="site")
    >>> table.X.shape, table.feature_names, table.domains[:2].tolist()
    ((80, 1), ['size'], ['a', 'b'])
    """
    given = {name: value for name, value in locals().items() if name != "data"}
    options = SourceOptions(**given)
    content = open_content(data, options)
    if content.kind == "images":
        if order is not None or known is not None:
            text = f'a folder of images has no column "{order or known}"'
            raise InputError("E107", text, "leave --order and --known out")
        return read_images(Path(content.source["path"]), options)
    options.refuse_unfit(content.matrix is None, content.annotated)
    return Tabulation(content, options).table()


class Tabulation:
    """The steps from content to table; rows may go at each of them."""

    def __init__(self, content: Content, options: SourceOptions) -> None:
        if content.kind == "text":  # a folder: its columns have one meaning only
            options = replace(options, domain="domain", id="path", text="text")
        elif content.by_file is not None:
            options = replace(options, domain=content.by_file)
        elif options.domain is not None and not isinstance(options.domain, str):
            content = _with_domains(content, options)
            options = replace(options, domain="domain")
        elif options.domain_file is not None:
            options = replace(options, domain="domain")
        self.content, self.options = content, options
        self.messages: list[Message] = list(content.messages)
        self.kind = "counts" if options.counts else content.kind
        if self.kind == "table" and options.text is not None:
            self.kind = "text"
        options.refuse_encoder(self.kind)

    @property
    def frame(self) -> pd.DataFrame:
        """Named columns of the rows that are left."""
        return self.content.frame

    @property
    def matrix(self) -> Any:
        """The same rows as a matrix, where there is one."""
        return self.content.matrix

    def table(self) -> Table:
        """Take the steps."""
        self._check_names()
        # of what could not be drawn while it was read
        self.content = self.content.sample(self.options.sample, self.options.seed)
        self.options = replace(self.options, decimal=self._decimal())
        domains, rule = self._domains()
        columns, features = self._columns()
        schema, options = self._schema(features, rule), self.options
        if options.impute == "drop" and self.matrix is None:
            domains = self._drop_incomplete(schema, domains)
        schema, X = self._encoded(schema, domains)
        names = self._feature_names(schema)
        check_size(X, names)
        if self.kind == "embedding":
            check_varied(X)
        shown = self.frame[schema.needed] if self.matrix is None else None
        return Table(
            X=X,
            domains=domains,
            ids=self._ids(),
            labels=self._labels(),
            known=self._known(),
            feature_names=names,
            schema=schema,
            columns=columns,
            kind=self.kind,
            source=self.content.source | told_of(options.encoder),
            messages=self.messages,
            frame=shown,
            groups=self._groups(domains),
            order=self._order(),
            places=self.frame.index.to_numpy(),
            described=self._described(),
        )

    # ---- the steps ----------------------------------------------------------------

    def _check_names(self) -> None:
        known = [str(name) for name in self.frame.columns]
        for option in ("domain", "id", "label", "known", "group", "order", "text"):
            name = getattr(self.options, option)
            if name is not None and self.content.annotated and name not in known:
                hint = f"available: {join(known) or 'none'}"
                raise InputError("E107", f'no "{name}" in obs', hint)
            require_columns([] if name is None else [name], known, option)
        if self.options.domain is None and self.options.require_domain:
            decimal = self.options.decimal or self.content.decimal
            matrix = self.matrix is not None
            raise ask_for_domain(self.frame, matrix=matrix, decimal=decimal)

    def _decimal(self) -> str:
        """How text writes numbers: as told, as the file shows, as the cells do."""
        return (
            self.options.decimal
            or self.content.decimal
            or decimal_of(self.frame, self.options)
        )

    def _domains(self) -> tuple[Array | None, DomainRule | None]:
        if self.options.domain is None:
            return None, None
        series = self.frame[self.options.domain]
        counts = self.kind == "counts"
        domains, keep, rule, messages = learn_domains(
            series, self.options, counts=counts
        )
        self.messages += messages
        self._keep(keep)
        if self.content.by_file is not None:
            rule = replace(rule, column=None)
        return domains, rule

    def _columns(self) -> tuple[list[Column], list[Feature]]:
        options = self.options
        # the last word is the domain's
        names = ("order", "group", "known", "label", "id", "domain")
        given = {getattr(options, role): role for role in names}
        roles = {name: role for name, role in given.items() if name is not None}
        known = [str(name) for name in self.frame.columns]
        if self.matrix is None and options.text is None:
            plan = plan_columns(self.frame, options, roles)
            self.messages += plan.messages
            return plan.columns, plan.features
        aside = "beside the matrix" if self.matrix is not None else "beside the text"
        columns = [
            Column(name, roles.get(name, "set aside"), aside)
            if name != options.text
            else Column(name, "feature", options.text_becomes)
            for name in known
        ]
        return columns, []

    def _groups(self, domains: Array | None) -> dict[Any, str] | None:
        """The group of each domain; E109 where its rows do not agree."""
        name = self.options.group
        if name is None or domains is None:
            return None
        cells = words(self.frame[name], self.options.missing)
        pairs = pd.DataFrame({"domain": domains, "group": cells}).drop_duplicates()
        twice = pairs["domain"].duplicated(keep=False)
        lacking = pairs["group"].isna()
        if not (twice | lacking).any():
            return dict(zip(pairs["domain"].tolist(), pairs["group"], strict=True))
        first = pairs[twice | lacking].iloc[0]["domain"]
        found = pairs[pairs["domain"] == first]["group"].dropna().tolist()
        what = f"more than one group ({join(found, 2)})" if len(found) > 1 else "gaps"
        raise InputError(
            "E109",
            f'"{name}" has {what} in the domain "{first}"',
            "a group holds whole domains: choose another column for --group",
        )

    def _order(self) -> Array | None:
        """When each row is from; E175 now rather than after a fit."""
        if self.options.order is None:
            return None
        from shoal.analysis._trend import times_of

        order = self.frame[self.options.order].to_numpy()
        times_of(order, None, len(order))
        return order

    def _schema(self, features: list[Feature], rule: DomainRule | None) -> Schema:
        options = self.options
        shared: dict[str, Any] = {
            "kind": self.kind,
            "domain": rule,
            "id": options.id,
            "label": options.label,
            "missing": options.missing,
            "gaps": options.notation.gaps,
            "decimal": options.notation.decimal,
            "sep": options.sep,
        }
        if self.matrix is not None:
            return Schema(
                **shared,
                n_columns=int(self.matrix.shape[1]),
                names=tuple(self.content.matrix_names or ()),
                layer=options.layer,
                use_rep=options.use_rep,
                dtype="float32" if self.matrix.dtype == np.float32 else "float64",
            )
        shared["drop_incomplete"] = options.impute == "drop"
        shared["keep_missing"] = options.impute == "keep" and self.kind == "table"
        if options.text is not None:
            shared |= {"text": options.text, "encoder": options.encoder}
            encoded = options.encoder is not None
            return Schema(**shared, vocabulary=() if encoded else self._vocabulary())
        filled = [
            with_fill(one, self.frame[one.name], options.notation, options.impute)
            for one in features
        ]
        single = all(self.frame[one.name].dtype == np.float32 for one in features)
        dtype = "float32" if single else "float64"
        return Schema(**shared, features=tuple(filled), dtype=dtype)

    def _described(self) -> Any:
        """What people know rows by: words, where an encoder makes points of texts."""
        if self.options.encoder is None:
            return self.content.described
        words_only = Schema(text=self.options.text, vocabulary=self._vocabulary())
        return words_only.encode(self.frame), list(words_only.vocabulary)

    def _vocabulary(self) -> tuple[str, ...]:
        column = self.frame[self.options.text]
        cells = [cell or "" for cell in words(column, ("",))]
        vocabulary = learn_vocabulary(cells)
        if len(vocabulary) < 2:
            raise InputError(
                "E114",
                f'"{self.options.text}" has {len(vocabulary)} words that occur in two '
                "rows and not in most rows",
                "choose another text column, or more rows",
            )
        return vocabulary

    def _drop_incomplete(self, schema: Schema, domains: Array | None) -> Array | None:
        missing = lacking(self.frame, schema)
        if missing.all():
            raise InputError(
                "E115", "every row has a missing value", "--impute median, or --drop"
            )
        if missing.any():
            text = f"{int(missing.sum()):,} rows with missing values were left out"
            self.messages.append(Message("W144", text, "--impute median keeps them"))
            self._keep(~missing)
        return None if domains is None else domains[~missing]

    def _encoded(self, schema: Schema, domains: Array | None) -> tuple[Schema, Any]:
        """The schema, which may fill a few gaps in now, and X by it."""
        said: list[Message] = []
        try:
            X = schema.encode(self._rows(), said, fitting=True)
        except InputError as error:
            unasked = self.options.impute is None and self.kind == "table"
            if error.code != "E115" or not unasked:
                raise
            schema, told = filled_unasked(self.frame, schema, domains, error)
            said = [told]
            X = schema.encode(self._rows(), said, fitting=True)
        self.messages += said + left_open(self.frame, schema)
        return schema, X

    # ---- small helpers ------------------------------------------------------------

    def _keep(self, mask: Array) -> None:
        if not mask.all():
            self.content = self.content.take(mask)

    def _rows(self) -> Any:
        return self.frame if self.matrix is None else self.matrix

    def _ids(self) -> Any:
        name = self.options.id
        return self.content.ids if name is None else self.frame[name].to_numpy()

    def _labels(self) -> Any:
        name = self.options.label
        return None if name is None else stripped(self.frame[name]).to_numpy()

    def _known(self) -> Any:
        if self.options.known is None:
            return None
        cells = words(self.frame[self.options.known], self.options.missing)
        return np.array([one if one != "-1" else None for one in cells], object)

    def _feature_names(self, schema: Schema) -> list[str]:
        if self.matrix is None or schema.names:
            return schema.feature_names
        return [f"x{index}" for index in range(self.matrix.shape[1])]


def _with_domains(content: Content, options: SourceOptions) -> Content:
    """Content with domains that were passed as values instead of as a column's name."""
    if "domain" in content.frame.columns:
        return content
    values = pd.Series(list(options.domain), dtype=object).infer_objects()
    check_length(content.n_rows, len(values), "domains")
    values.index = content.frame.index
    return replace(content, frame=content.frame.assign(domain=values))
