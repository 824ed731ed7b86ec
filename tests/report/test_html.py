"""The page: numbers of the summary, words for every picture, nothing from outside."""

import base64
import copy
import hashlib
import json
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose

from shoal.report import render, summarize, write
from shoal.report._html import SECTIONS, _fit, mark_words
from shoal.report._view import View, prevalence_records, rename
from shoal.report.figures._maps import Map
from shoal.report.figures._svg import DifferenceScale


@pytest.fixture(scope="module")
def page(summary):
    return render(summary)


@pytest.fixture(scope="module")
def tree(page, parse):
    return parse(page)


# ---- the same numbers everywhere -------------------------------------------------


def test_a_summary_from_json_gives_the_same_page(summary, page):
    assert render(json.loads(json.dumps(summary))) == page


def test_dots_table_and_data_agree_with_the_csv(summary, tree):
    records = prevalence_records(summary)
    estimate = np.array([record["estimate"] for record in records]).reshape(3, 3)
    panels = tree.one("div", class_="view-dots").all("svg", class_="picture")
    dots = [[float(dot["data-value"]) for dot in p.all("circle")] for p in panels]
    assert_allclose(np.transpose(dots), estimate, rtol=0)
    rows = tree.one("table", id="table-where").one("tbody").all("tr")
    cells = [[float(td["data-value"]) for td in row.all("td")[1:]] for row in rows]
    assert_allclose(cells, estimate, rtol=1e-5, atol=1e-9)
    inside = json.loads(tree.one("script", id="results").text)
    assert prevalence_records(inside) == records


def test_dots_lie_where_their_value_says(tree, summary):
    for panel in tree.one("div", class_="view-dots").all("svg", class_="picture"):
        grid = [
            float(re.match(r"M([\d.]+)", p["d"])[1]) for p in panel.all(class_="grid")
        ]
        zero, one = grid[0], grid[-1]
        for dot in panel.all("circle"):
            share = (float(dot["cx"]) - zero) / (one - zero)
            assert share == pytest.approx(float(dot["data-value"]), abs=1e-3)


def test_interval_lines_have_the_ends_of_the_table(tree, summary):
    table = summary["prevalence"]
    panels = tree.one("div", class_="view-dots").all("svg", class_="picture")
    for y, panel in enumerate(panels):
        grid = [
            float(re.match(r"M([\d.]+)", p["d"])[1]) for p in panel.all(class_="grid")
        ]
        for name, low, high in (("wide", "low", "high"), ("half", "low50", "high50")):
            for d, line in enumerate(panel.all("path", class_=name)):
                start, end = map(
                    float, re.match(r"M([\d.]+) [\d.]+H([\d.]+)", line["d"]).groups()
                )
                shares = [(x - grid[0]) / (grid[-1] - grid[0]) for x in (start, end)]
                expected = [table[low][d][y], table[high][d][y]]
                assert_allclose(shares, expected, atol=2e-3)


def test_stacked_bars_have_the_widths_of_the_shares(tree, summary):
    for d, bar in enumerate(tree.all("svg", class_="bar")):
        widths = [
            float(part["width"].rstrip("%")) for part in bar.all(class_="segment")
        ]
        assert_allclose(
            widths, 100 * np.array(summary["prevalence"]["estimate"][d]), atol=1e-3
        )


def test_intervals_are_written_beside_the_shares(tree, summary):
    rows = tree.one("table", id="table-where").one("tbody").all("tr")
    for d, row in enumerate(rows):
        for y, cell in enumerate(row.all("td")[1:]):
            share, low, high = re.match(r"(\d+)% (\d+)–(\d+)", cell.text).groups()
            table = summary["prevalence"]
            expected = [table[key][d][y] for key in ("estimate", "low", "high")]
            assert_allclose(
                [int(share), int(low), int(high)], 100 * np.array(expected), atol=0.5001
            )


def test_differences_score_and_choice_show_their_numbers(tree, summary):
    body = tree.one("table", id="table-differences").one("tbody")
    shown = [float(td["data-value"]) for td in body.all("td", class_="num")]
    assert_allclose(shown, [record["estimate"] for record in summary["differences"]])
    confusion = tree.one("table", id="table-confusion").one("tbody").all("tr")
    counts = [[int(td["data-value"]) for td in row.all("td")] for row in confusion]
    assert counts == summary["score"]["confusion"]
    curve = tree.one("table", id="table-choice").one("tbody").all("tr")
    values = [float(row.all("td")[0]["data-value"]) for row in curve]
    assert_allclose(values, summary["choice"]["held_out"])


def test_one_verdict_in_one_place(tree, summary):
    assert tree.one(class_="word").text == "Use with caution"
    box = tree.one("header", id="verdict")
    assert "Gentoo only in Biscoe, Chinstrap only in Dream" in box.text
    assert "342" in box.text
    assert "species (label: held aside)" in box.text


@pytest.mark.parametrize(
    ("word", "shown"),
    [("clear", "Clear"), ("do not use", "Do not use"), ("not checked", "Not checked")],
)
def test_other_verdicts(summary, word, shown, parse):
    changed = summary | {"verdict": summary["verdict"] | {"word": word}}
    assert parse(render(changed)).one(class_="word").text == shown


# ---- words ------------------------------------------------------------------------


def test_wording(tree):
    text = tree.text
    assert "no sign of a problem found" in text
    assert "assumption holds" not in text.lower()
    assert not re.search(r"p-values?|significan", text, re.IGNORECASE)
    assert "cannot prove that the classes are the ones you have in mind" in text
    assert "Neither covers a violated assumption" in text


def test_every_picture_has_words(tree):
    pictures = [svg for svg in tree.all("svg") if svg.attributes.get("role") == "img"]
    assert len(pictures) > 15
    for svg in pictures:
        title = svg.attributes.get("aria-label") or " ".join(
            node.text for node in svg.all("title")
        )
        assert title
    others = [svg for svg in tree.all("svg") if svg.attributes.get("role") != "img"]
    inside = {id(part) for svg in pictures for part in svg.all("svg")}
    assert all(
        svg.attributes.get("aria-hidden") == "true" or id(svg) in inside
        for svg in others
    )


def test_descriptions_are_made_of_the_numbers(tree, summary):
    described = tree.one("desc", id="where-c1-desc").text
    share, low, high = (
        f"{100 * summary['prevalence'][key][0][1]:.0f}%"
        for key in ("estimate", "low", "high")
    )
    expected = (
        f"Biscoe: about {share} Gentoo, very likely (90%) between {low} and {high}."
    )
    assert expected in described


def test_ids_are_unique_and_links_lead_somewhere(tree):
    ids = [node["id"] for node in tree.all() if "id" in node.attributes]
    assert len(ids) == len(set(ids))
    links = {a["href"] for a in [*tree.all("a"), *tree.all("use")]}
    assert all(link.startswith("#") and link[1:] in ids for link in links)


def test_headings_go_down_one_step_at_a_time(tree):
    levels = [int(n.tag[1]) for n in tree.all() if re.fullmatch("h[1-6]", n.tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(
        after - before <= 1 for before, after in zip(levels, levels[1:], strict=False)
    )


def test_new_names_are_everywhere(summary, parse):
    unlabeled = summary | {"score": None}  # labels keep their own names
    text = render(rename(unlabeled, {"c1": "Papua"}))
    assert "Gentoo" not in text
    text = parse(text).text
    assert "Papua only in Biscoe" in text


def test_names_cannot_inject_anything(penguins, parse):
    evil = "</script><script>alert(1)</script>{c1}"
    summary = penguins.summarize(title=evil, ids=[evil] * len(penguins.data.X))
    page = render(rename(summary, {"c0": evil}))
    assert "<script>alert" not in page
    tree = parse(page)
    assert tree.one("h1").text == evil
    assert json.loads(tree.one("script", id="results").text)["title"] == evil


def test_marked_words():
    marked = mark_words("The net <works>, networks; NET.", ["net", "a.b"])
    assert marked == ("The <mark>net</mark> &lt;works&gt;, networks; <mark>NET</mark>.")


# ---- nothing from outside ---------------------------------------------------------


def test_no_address_is_asked_for(tree):
    asked = ("src", "href", "srcset", "action", "poster", "data")
    for node in tree.all():
        for name in asked:
            value = node.attributes.get(name, "")
            assert not value or value.startswith(("#", "data:")), (node.tag, value)
    style = tree.one("style").text
    assert "url(" not in style
    assert "@import" not in style


def test_page_forbids_itself_the_network(tree):
    policy = next(m for m in tree.all("meta") if m.attributes.get("http-equiv"))
    assert policy["content"].startswith("default-src 'none'; img-src data:;")
    assert "unsafe" not in policy["content"]
    # every style and script that runs is allowed by what it is
    for node in [tree.one("style"), *tree.all("script")]:
        if node.attributes.get("type") != "application/json":
            digest = hashlib.sha256("".join(node.children).encode()).digest()
            assert base64.b64encode(digest).decode() in policy["content"]
    assert [n.tag for n in tree.all() if "style" in n.attributes] == []


# ---- axes, marks and words ---------------------------------------------------------


def test_differences_lie_on_the_axis_above_them(tree, summary):
    scale = DifferenceScale(summary["differences"])
    ends = [record["low"] for record in summary["differences"]]
    assert scale.low <= min(0, *ends)
    assert scale.high >= max(record["high"] for record in summary["differences"])
    table = tree.one("table", id="table-differences")
    ticks = {
        text.text: float(text["x"].rstrip("%"))
        for text in table.one("thead").all("text")
    }
    zero, top = ticks["0"], ticks[f"+{100 * scale.high:.0f}"]
    dots = table.one("tbody").all("circle")
    for dot, record in zip(dots, summary["differences"], strict=True):
        share = (float(dot["cx"].rstrip("%")) - zero) / (top - zero)
        assert share * scale.high == pytest.approx(record["estimate"], abs=1e-3)


def test_an_axis_shows_what_lies_below_zero():
    records = [{"estimate": 0.02, "low": -0.04, "high": 0.08}]
    assert_allclose(DifferenceScale(records).ticks, [-0.05, 0, 0.05, 0.1], atol=1e-12)
    bare = [{"estimate": 0.9, "low": None, "high": None}]
    assert_allclose(DifferenceScale(bare).ticks, [0, 0.25, 0.5, 0.75, 1])


def test_thick_and_thin_bars_agree(summary):
    table = {key: np.array(summary["prevalence"][key]) for key in LIMITS}
    for low, high in (("low", "low50"), ("low50", "estimate")):
        assert (table[low] <= table[high]).all()
    for low, high in (("estimate", "high50"), ("high50", "high")):
        assert (table[low] <= table[high]).all()
    # a share of 0 is known to within something, in both
    empty = table["estimate"] < 1e-3
    assert empty.any()
    assert (table["high50"][empty] > 0.5 * table["high"][empty] / 3).all()


LIMITS = ("low", "low50", "estimate", "high50", "high")


def test_codes_stand_beside_what_needs_a_look_only(tree):
    findings = tree.one(id="trust").all("li")
    marked = {bool(one.all("code")) for one in findings if "ok" in one["class"]}
    assert marked == {False}
    assert all(one.all("code") for one in findings if "ok" not in one["class"])


def test_labels_of_a_map_do_not_collide(summary):
    changed = copy.deepcopy(summary)
    for record in changed["maps"]:  # all classes in one heap
        record["x"] = [500] * len(record["x"])
        record["corners"] = []
    names = {"c0": "Adelie of the north", "c1": "Gentoo of the west", "c2": "Chinstrap"}
    view = View(rename(changed, names))
    placed = Map(view, changed["maps"][0]).labels()
    heights = sorted(float(re.search(r' y="([-\d.]+)"', one)[1]) for one in placed)
    assert len(heights) == 3
    assert min(np.diff(heights)) >= 19
    assert heights[0] > 0


def test_each_view_of_a_map_says_where_its_points_are_from(tree, summary):
    marks = tree.one(id="map").all("use", class_="row")
    told = {mark.one("title").text for mark in marks}
    (biscoe,) = [text for text in told if re.match(r"Biscoe: \d+ rows of Adelie", text)]
    rows = summary["cards"][0]["rows_by_domain"][0]
    assert biscoe == f"Biscoe: {rows} rows of Adelie"


def test_neighbours_share_out_all_rows(tree, summary):
    (other,) = summary["neighbours"]
    assert np.sum(other["shared"]) == len(summary["maps"][0]["x"])
    bands = tree.one("svg", class_="flows").all("path", class_="flow")
    said = [int(re.match(r"[\d,]+", b.one("title").text)[0]) for b in bands]
    assert sum(said) == summary["size"]["rows"]


def test_gaps_are_counted_by_column(penguins, parse):
    tree = parse(render(penguins.summarize(gaps={"sex": 2, "mass": 9, "year": 0})))
    (said,) = tree.all("p", class_="gaps")
    assert (
        "filled in before the fit: mass 9, sex 2 (11 cells in 2 columns)" in said.text
    )


# ---- sections ----------------------------------------------------------------------


def test_sections_can_be_chosen(summary, parse):
    tree = parse(render(summary, sections=["trust", "where"]))
    assert [s["id"] for s in tree.all("details", class_="section")] == [
        "where",
        "trust",
    ]
    with pytest.raises(ValueError, match="sections has 'who'; there are where, trend"):
        render(summary, sections=["who"])


def test_a_summary_of_another_kind_is_refused(summary):
    with pytest.raises(
        ValueError, match="summary has schema 'shoal-report/9'; this ver"
    ):
        render(summary | {"schema": "shoal-report/9"})


def test_sections_follow_the_reading_order(tree):
    shown = tuple(s["id"] for s in tree.all("details", class_="section"))
    assert shown == tuple(name for name in SECTIONS if name != "trend")  # no order


def test_a_bare_summary_has_a_page(penguins, parse):
    data = penguins.data
    summary = summarize(penguins.model, data.X, data.domains)
    tree = parse(render(summary))
    shown = [s["id"] for s in tree.all("details", class_="section")]
    assert shown == [
        "where", "differences", "classes", "features", "map", "reproduce",
    ]  # fmt: skip
    assert "nothing says how sure these shares are" in tree.text


# ---- size --------------------------------------------------------------------------


def test_a_thousand_domains_and_many_features(thousand, parse):
    text = render(thousand)
    assert len(text.encode()) < 3_000_000
    tree = parse(text)
    assert len(tree.one("table", id="table-where").one("tbody").all("tr")) == 1000
    panels = tree.one("div", class_="view-dots").all("svg", class_="picture")
    assert [len(panel.all("circle")) for panel in panels] == [50] * 8
    assert "Of 1,000 domains, the pictures show the 50 with most rows" in tree.text
    assert "The top 8 of 300 features" in tree.text
    assert "5,000 of 12,000 rows" in tree.text
    assert len(tree.one(class_="small-maps").all("svg")) == 12


@pytest.mark.parametrize("n_thin", [0, 900, 970, 1_000])
def test_shown_domains_are_the_most_different(thousand, n_thin):
    """Among those whose shares can be read; others differ by chance."""
    domains = [
        domain | {"thin": d < n_thin, "rows": 12 + d}
        for d, domain in enumerate(thousand["domains"])
    ]
    view = View(thousand | {"domains": domains})
    share = np.array(thousand["prevalence"]["estimate"])
    away = np.abs(share - share.mean(axis=0)).max(axis=1)
    if n_thin < 1_000:
        away[:n_thin] = -1
        n_shown = min(50, 1_000 - n_thin)
        expected = np.sort(np.argsort(-away, kind="stable")[:n_shown]).tolist()
    else:
        expected = list(range(950, 1_000))  # the largest
    assert view.shown == expected
    assert ("thin ones left out" in view.shown_which) == (n_thin in (900, 970))
    assert ("all of them thin" in view.shown_which) == (n_thin == 1_000)


def test_accidents_of_thin_domains_are_no_news(thousand):
    """Neither in the verdict nor in a list of differences."""
    assert all(domain["thin"] for domain in thousand["domains"])
    assert thousand["differences"] == []
    first = thousand["verdict"]["sentences"][0]
    assert first.endswith("None of these has rows enough to be read alone.")


def test_points_are_left_out_before_the_page_grows_too_large(thousand, parse):
    full = len(render(thousand).encode()) / 1e6
    made = _fit(thousand, full - 0.02, None)
    assert len(made[0].encode()) <= (full - 0.02) * 1e6
    assert made[1] == ["half of the surest rows (2 per class and domain are shown)"]
    note = parse(made[0]).one("aside", id="left-out").text
    assert "half of the surest rows" in note
    assert "shoal report MODEL --max-mb 15" in note
    assert thousand["cards"][0]["exemplars"][0]["rows"][3:]  # not changed itself


def test_domains_beyond_the_first_thousand_go_before_any_picture(thousand, parse):
    """A page of thousands stays below its size, and says where the rest is."""
    times = 2
    shares = {
        name: values * times if isinstance(values, list) else values
        for name, values in thousand["prevalence"].items()
    }
    domains = [
        domain | {"name": f"{domain['name']}-{part}", "rows": 20 - part}
        for part in range(times)
        for domain in thousand["domains"]
    ]
    size = thousand["size"] | {"domains": len(domains)}
    many = thousand | {"domains": domains, "prevalence": shares, "size": size}
    full = len(render(many, max_mb=15).encode()) / 1e6
    text, left_out = _fit(many, full - 0.1, None)
    assert len(text.encode()) <= (full - 0.1) * 1e6
    assert left_out == ["all but the 1,000 largest of 2,000 domains in the table"]
    tree = parse(text)
    table = tree.one(id="table-where").one("tbody")
    names = [row.one("th").text for row in table.all("tr")]
    assert len(names) == 1_000
    assert all(name.startswith(f"{domains[d]['name']}") for d, name in enumerate(names))
    assert "the table below has the 1,000 largest" in tree.text
    assert len(embedded(text)["domains"]) == 2_000
    # smaller still: nothing to download, and no button that would
    text, left_out = _fit(many, len(text.encode()) / 1e6 - 0.1, None)
    assert left_out[1:] == ["tables to download from this page"]
    assert set(embedded(text)) == {"schema", "classes"}
    assert 'data-download="prevalence.csv"' not in text
    assert 'data-download="names.json"' in text


def embedded(text):
    """The results that a page holds for programs."""
    found = re.search(r'id="results">(.*?)</script>', text, re.DOTALL)
    return json.loads(found[1])


def test_a_page_that_cannot_shrink_says_so(summary):
    text, left_out = _fit(summary, 0.05, None)
    size = len(text.encode()) / 1e6
    said = left_out[-1].removeprefix("nothing more: the page needs ")
    assert size <= float(said.removesuffix(" MB")) < size + 0.01
    # said in hundredths: with so much, a part that is smaller may come back
    enough = float(said.removesuffix(" MB"))
    again, _ = _fit(summary, enough, None)
    assert len(text) <= len(again)
    assert len(again.encode()) / 1e6 <= enough
    assert "the maps" in left_out
    with pytest.raises(ValueError, match="max_mb must lie between 0 and 15, got 16"):
        render(summary, max_mb=16)


def test_a_page_above_the_hard_stop_is_refused(summary):
    huge = summary | {"title": "x" * 16_000_000}
    with pytest.raises(ValueError, match="needs .* MB, more than 15; pass fewer sect"):
        render(huge)


def test_cost_does_not_grow_with_rows(penguins, summary):
    data = penguins.data
    many = summarize(
        penguins.model, np.repeat(data.X, 40, axis=0), np.repeat(data.domains, 40)
    )
    few = summarize(penguins.model, data.X, data.domains)
    assert len(many["maps"][0]["x"]) == 5000
    assert len(render(many)) < len(render(few)) + 150_000


# ---- files -------------------------------------------------------------------------


def test_write_says_what_it_wrote(summary, tmp_path):
    path = tmp_path / "report.html"
    path.write_text("older")
    made = write(summary, path)
    assert made == {"path": path, "bytes": path.stat().st_size, "left_out": []}
    assert path.read_text(encoding="utf-8") == render(summary)
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]


def test_a_failed_write_leaves_the_old_file(summary, tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("older")

    def no_space(*_):
        raise OSError("no space left")

    monkeypatch.setattr("os.replace", no_space)
    with pytest.raises(OSError, match="no space"):
        write(summary, path)
    assert path.read_text() == "older"
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]
