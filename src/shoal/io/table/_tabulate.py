"""From the content of a source to a table: which rows stay, what each column is."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from shoal.exceptions import InputError
from shoal.io._files import join, require_columns
from shoal.io._settings import READING
from shoal.io.source._arrays import check_length, check_varied
from shoal.io.source._format import Content, is_sparse
from shoal.io.source._options import Options
from shoal.io.table._cells import learn_vocabulary, stripped, words
from shoal.io.table._columns import Feature, plan_columns
from shoal.io.table._domains import DomainRule, ask_for_domain, learn_domains
from shoal.io.table._missing import lacking, with_fill
from shoal.io.table._schema import Schema
from shoal.io.table._table import Column, Message, Table

Array = np.ndarray[Any, Any]


class Tabulation:
    """The steps from content to table; rows may go at each of them."""

    def __init__(self, content: Content, options: Options) -> None:
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
        self.messages: list[Message] = []
        self.kind = "counts" if options.counts else content.kind
        if self.kind == "table" and options.text is not None:
            self.kind = "text"

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
        domains, rule = self._domains()
        columns, features = self._columns()
        schema = self._schema(features, rule)
        if self.options.impute == "drop" and self.matrix is None:
            domains = self._drop_incomplete(schema, domains)
        X = schema.encode(self._rows(), self.messages, fitting=True)
        names = self._feature_names(schema)
        _check_size(X, names)
        if self.kind == "embedding":
            check_varied(X)
        shown = self.frame[schema.needed] if self.matrix is None else None
        return Table(
            X=X,
            domains=domains,
            ids=self._ids(),
            labels=self._labels(),
            feature_names=names,
            schema=schema,
            columns=columns,
            kind=self.kind,
            source=self.content.source,
            messages=self.messages,
            frame=shown,
            groups=self._groups(domains),
            places=self.frame.index.to_numpy(),
        )

    # ---- the steps ----------------------------------------------------------------

    def _check_names(self) -> None:
        known = [str(name) for name in self.frame.columns]
        for option in ("domain", "id", "label", "group", "text"):
            name = getattr(self.options, option)
            if name is not None and self.content.annotated and name not in known:
                hint = f"available: {join(known) or 'none'}"
                raise InputError("E107", f'no "{name}" in obs', hint)
            require_columns([] if name is None else [name], known, option)
        if self.options.domain is None and self.options.require_domain:
            raise ask_for_domain(self.frame, matrix=self.matrix is not None)

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
        names = ("group", "label", "id", "domain")  # the last word is the domain's
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
            else Column(name, "feature", "words are counted")
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

    def _schema(self, features: list[Feature], rule: DomainRule | None) -> Schema:
        options = self.options
        shared: dict[str, Any] = {
            "kind": self.kind,
            "domain": rule,
            "id": options.id,
            "label": options.label,
            "missing": options.missing,
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
        if options.text is not None:
            return Schema(**shared, text=options.text, vocabulary=self._vocabulary())
        filled = [
            with_fill(one, self.frame[one.name], options.missing, options.impute)
            for one in features
        ]
        single = all(self.frame[one.name].dtype == np.float32 for one in features)
        dtype = "float32" if single else "float64"
        return Schema(**shared, features=tuple(filled), dtype=dtype)

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

    def _feature_names(self, schema: Schema) -> list[str]:
        if self.matrix is None or schema.names:
            return schema.feature_names
        return [f"x{index}" for index in range(self.matrix.shape[1])]


def _check_size(X: Any, names: list[str]) -> None:
    """Raise E115 for numbers that cannot be squared."""
    values = X.data if is_sparse(X) else X
    if not values.size:
        return
    if max(float(values.max()), -float(values.min())) <= READING.largest:
        return
    place = int(np.argmax(np.abs(values)))
    column = X.indices[place] if is_sparse(X) else place % X.shape[1]
    raise InputError(
        "E115",
        f'"{names[column]}" holds {np.ravel(values)[place]:.3g}, too large to square',
        "rescale the column, or clean its rows",
    )


def _with_domains(content: Content, options: Options) -> Content:
    """Content with domains that were passed as values instead of as a column's name."""
    if "domain" in content.frame.columns:
        return content
    values = pd.Series(list(options.domain), dtype=object).infer_objects()
    check_length(content.n_rows, len(values), "domains")
    values.index = content.frame.index
    return replace(content, frame=content.frame.assign(domain=values))
