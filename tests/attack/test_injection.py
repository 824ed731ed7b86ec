"""Payloads in every name and value: no script runs, no cell computes, no byte acts."""

import csv
import json
import re
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.attack.forked import Outcome, is_printable, shoal, warm

from shoal.io._notation import FORMULA, NUMBER, cell, is_utf8, uncell, visible

#: Thirty kinds of text that somebody may hope to be run.
PAYLOADS = (
    "<script>window.pwned=1</script>",
    "</script><script>window.pwned=2</script>",
    '"><img src=x onerror=window.pwned=3>',
    "'><svg/onload=window.pwned=4>",
    '" onmouseover="window.pwned=5" autofocus onfocus="window.pwned=5',
    "</style><script>window.pwned=6</script>",
    "</title><script>window.pwned=7</script>",
    "<!--<script>window.pwned=8</script>",
    "{{ 7*7 }}{% raw %}{{ self.__init__ }}",
    "${window.pwned=10}`",
    "javascript:window.pwned=11",
    "[x](javascript:window.pwned=12)",
    "![x](https://example.invalid/x.png)",
    "<iframe srcdoc='<script>parent.pwned=14</script>'>",
    "<base href=https://example.invalid/>",
    "<meta http-equiv=refresh content=0;url=https://example.invalid/>",
    "\\u003cscript\\u003ewindow.pwned=17\\u003c/script\\u003e",
    "&lt;script&gt;window.pwned=18&lt;/script&gt;",
    "=1+1",
    "=cmd|' /C calc'!A0",
    '=HYPERLINK("https://example.invalid","x")',
    "+1+cmd|' /C calc'!A0",
    "-1+cmd|' /C calc'!A0",
    "@SUM(1+1)*cmd|' /C calc'!A0",
    "\t=1+1",
    "\r\n=1+1,=2+2",
    "a\nb\n| c | d |",
    "\x1b[2J\x1b[31mred",
    "\x1b]0;title\x07\x1b]52;c;cHduZWQ=\x07",
    "nul\x00bell\x07back\x08\x7f\x9b31m",
    "\u202etxt.exe\u2066\u2028",
    "`$(touch owned)`;touch owned",
    "[bold red]markup[/bold red]",
)


def test_there_are_thirty_kinds() -> None:
    assert len(set(PAYLOADS)) == len(PAYLOADS) >= 30


# ---- one name at a time --------------------------------------------------------------


@pytest.mark.parametrize("payload", PAYLOADS)
def test_names_as_they_are_shown(payload: str) -> None:
    assert is_printable(visible(payload))
    assert visible(visible(payload)) == visible(payload)
    # inside JSON it is the same text to who reads it
    assert json.loads(visible(json.dumps(payload, ensure_ascii=False))) == payload


CELLS = ("'=x", "''@x", "'tis", "-", "＝1", "a;=cmd()", "=a;+b;'-c", "a;'=b", ";@x;",
         "x;'tis;y")  # fmt: skip


@pytest.mark.parametrize("payload", [*PAYLOADS, *CELLS])
def test_text_in_a_cell_is_no_formula_and_can_be_had_back(payload: str) -> None:
    written = cell(payload)
    # also to a spreadsheet that splits at semicolons
    assert not any(re.match(r"[=+\-@\t\r]", part) for part in written.split(";"))
    assert uncell(written) == visible(payload)


@pytest.mark.parametrize("value", [-5, -0.25, 3, "-5", "+3.5", "-1e-05", "5", "north"])
def test_numbers_and_plain_text_stay_as_they_are(value: object) -> None:
    assert cell(value) == value
    assert type(cell(value)) is type(value)


def test_halves_of_characters_are_no_text() -> None:
    assert is_utf8("Ängby \U0001f427")
    assert not is_utf8("\udcff")
    assert visible("\udcff") == "\\udcff"


# ---- a whole run of them -------------------------------------------------------------


def planted() -> pd.DataFrame:
    """A table in which every name and every value is a payload."""
    rng = np.random.default_rng(0)
    n_rows = 14
    site = np.repeat(np.array(PAYLOADS, dtype=object), n_rows)
    group = rng.random(len(site)) < np.repeat(rng.random(len(PAYLOADS)), n_rows)
    few = np.array(PAYLOADS, dtype=object)
    return pd.DataFrame(
        {
            PAYLOADS[1]: site,
            PAYLOADS[3]: np.where(group, 2.0, -2.0) + rng.normal(size=len(site)),
            PAYLOADS[19]: np.where(group, 1.0, -3.0) + rng.normal(size=len(site)),
            PAYLOADS[26]: rng.normal(size=len(site)),
            PAYLOADS[28]: few[np.where(group, 2, 21) + rng.integers(2, size=len(site))],
            "id": [f"{PAYLOADS[row % 33]} {row}" for row in range(len(site))],
            "truth": few[np.where(group, 4, 22)],
        }
    )


class Attacked:
    """The folder of a run, and everything that its commands said."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.said = folder, []

    def __call__(self, *arguments: str) -> Outcome:
        found = shoal(arguments, self.folder)
        assert found.code == 0, found.said.decode("utf-8", "replace")[-500:]
        self.said.append(found.said)
        return found

    def text(self, name: str) -> str:
        return (self.folder / name).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacked]:
    warm()
    found = Attacked(tmp_path_factory.mktemp("injected"))
    planted().to_parquet(found.folder / "a.parquet", index=False)
    with chdir(found.folder):
        found(
            *("fit", "a.parquet", "--domain", PAYLOADS[1], "--id", "id", "--k", "2"),
            *(
                "--label",
                "truth",
                "--bootstrap",
                "10",
                "--out",
                "run",
                "--threads",
                "1",
            ),
        )
        found(
            "name", "run", "--set", f"c0={PAYLOADS[0]}", "--set", f"c1={PAYLOADS[20]}"
        )
        found("predict", "run", "a.parquet", "--out", "rows.csv")
        found("check", "a.parquet", "--domain", PAYLOADS[1], "--label", "truth")
    yield found
    assert not (found.folder / "owned").exists()


def test_terminals_get_printable_bytes(attacked: Attacked) -> None:
    for said in attacked.said:
        assert is_printable(said.decode("utf-8"))


CSVS = ("run/prevalence.csv", "run/class_counts.csv", "rows.csv")


@pytest.mark.parametrize("name", CSVS)
def test_spreadsheets_get_no_formula(attacked: Attacked, name: str) -> None:
    from openpyxl import Workbook

    content = attacked.text(name)
    assert is_printable(content)
    sheet = Workbook().active
    with (attacked.folder / name).open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    assert len({len(row) for row in rows}) == 1
    for row in rows:
        sheet.append(row)
        for text in row:
            assert NUMBER.fullmatch(text) or not re.match(r"[=+\-@\t\r]", text), text
    kinds = {one.data_type for line in sheet.iter_rows() for one in line}
    assert "f" not in kinds
    # a guard that would never see a formula shows nothing
    sheet.append(["=1+1"])
    assert sheet.cell(sheet.max_row, 1).data_type == "f"


def test_rows_keep_their_numbers(attacked: Attacked) -> None:
    rows = pd.read_csv(attacked.folder / "rows.csv")
    assert rows["margin"].dtype == rows["fit_score"].dtype == float
    assert len(rows) == len(planted())
    # blanks around words mean nothing
    sites = {visible(payload.strip()) for payload in PAYLOADS}
    assert set(map(uncell, rows["domain"])) == sites


def test_plain_csv_is_what_it_says(attacked: Attacked) -> None:
    with chdir(attacked.folder):
        attacked("predict", "run", "a.parquet", "--out", "plain.csv", "--plain-csv")
    rows = pd.read_csv(attacked.folder / "plain.csv", keep_default_na=False)
    found = set(rows["domain"])
    assert {"=1+1", "@SUM(1+1)*cmd|' /C calc'!A0", "a\nb\n| c | d |"} <= found


def test_the_card_is_text(attacked: Attacked) -> None:
    card = attacked.text("run/model/README.md")
    assert is_printable(card)
    assert "<script" not in card
    assert not re.search(r"(?<!\\)\[", card)  # no link and no picture
    # names with newlines and bars make no further row or column
    table = [line for line in card.splitlines() if line.startswith("| ")]
    n_sites = len({payload.strip() for payload in PAYLOADS})
    by_site = table[: n_sites + 2]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in by_site} == {4}


def test_the_report_runs_nothing(attacked: Attacked, browser) -> None:
    page_text = attacked.text("run/report.html")
    assert is_printable(page_text.replace("\t", ""))
    page = browser.new_page()
    events: list[str] = []
    page.on("dialog", lambda dialog: (events.append(dialog.message), dialog.dismiss()))
    page.on("pageerror", lambda error: events.append(str(error)))
    page.on("request", lambda request: events.append(request.url))
    address = (attacked.folder / "run" / "report.html").as_uri()
    page.goto(address)
    for place in page.locator("summary, button, label").all()[:60]:
        if place.is_visible():
            place.hover()
    assert page.evaluate("window.pwned") is None
    outside = [one for one in events if not one.startswith(("data:", address))]
    assert outside == []
    # and the names are there to be read
    shown = page.locator("body").inner_text()
    assert PAYLOADS[0] in shown
    page.close()


def test_json_and_the_terminal_agree(attacked: Attacked) -> None:
    with chdir(attacked.folder):
        found = attacked("name", "run", "--list", "--json")
    names = json.loads(found.said.decode())["data"]["after"]
    assert names == [PAYLOADS[0], PAYLOADS[20]]


def test_a_formula_is_what_spreadsheets_take_for_one() -> None:
    assert FORMULA.match("=x")
    assert not FORMULA.match("x=")
