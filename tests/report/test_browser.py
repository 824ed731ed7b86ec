"""The page in a real browser: no network, no errors, and everything it promises."""

import copy
import csv
import io
import json
import re

import pytest

from shoal.report import render, write
from shoal.report._view import View, prevalence_records

DESKTOP = {"width": 1280, "height": 900}
PHONE = {"width": 360, "height": 740}
NARROW = {"width": 390, "height": 844}
A4 = 688  # pixels between the margins
# WCAG 2.1, AA: text of normal size.
CONTRAST = 4.5


@pytest.fixture(scope="module")
def address(summary, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    write(summary, path)
    return path.as_uri()


class Watched:
    """A page, with everything that it asks of the network or complains about."""

    def __init__(self, browser, address, **settings):
        self.context = browser.new_context(**({"viewport": DESKTOP} | settings))
        self.page = self.context.new_page()
        self.requests, self.complaints = [], []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.goto(address)
        self.address = address

    def check(self):
        outside = [url for url in self.requests if not url.startswith("data:")]
        assert outside == [self.address]
        assert self.complaints == []


@pytest.fixture
def open_page(browser):
    opened = []

    def open_page(address, **settings):
        watched = Watched(browser, address, **settings)
        opened.append(watched)
        return watched

    yield open_page
    for watched in opened:
        watched.check()
        watched.context.close()


@pytest.fixture
def page(open_page, address):
    return open_page(address).page


def column(page, place):
    rows = page.locator("#table-where tbody tr")
    return [
        rows.nth(i).locator("th, td").nth(place).inner_text()
        for i in range(rows.count())
    ]


# ---- loading ------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["thousand", "fourteen"])
def test_large_pages_open_quietly(open_page, request, tmp_path, name):
    path = tmp_path / "report.html"
    write(request.getfixturevalue(name), path)
    page = open_page(path.as_uri()).page
    assert page.locator("h1").is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_nothing_sticks_out(open_page, address, viewport, scheme):
    page = open_page(address, viewport=viewport, color_scheme=scheme).page
    wide, inner = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert wide <= inner


def test_wide_tables_scroll_in_their_own_box(open_page, request, tmp_path):
    path = tmp_path / "report.html"
    write(request.getfixturevalue("fourteen"), path)
    page = open_page(path.as_uri(), viewport=PHONE).page
    wide, inner = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert wide <= inner


def test_long_names_neither_stick_out_nor_break_short_ones(
    open_page, summary, tmp_path
):
    long = "a_measurement_that_somebody_gave_a_very_long_name"
    changed = copy.deepcopy(summary)
    for domain in changed["domains"]:
        domain["name"] = f"{domain['name']} at the far end of the northern river"
    for card in changed["cards"]:
        card["features"][0]["feature"] = long
    changed["shown_columns"][0] = long
    for group in changed["classes"]:
        group["suggestion"] = f"high {long}"
    path = tmp_path / "report.html"
    write(changed, path)
    for viewport in (DESKTOP, PHONE):
        page = open_page(path.as_uri(), viewport=viewport).page
        wide, inner = page.evaluate(
            "[document.documentElement.scrollWidth, innerWidth]"
        )
        assert wide <= inner
        heights = page.evaluate(
            "[...document.querySelectorAll('.features tbody th')]"
            ".map(cell => cell.getBoundingClientRect().height)"
        )
        assert max(heights) > 1.5 * min(heights)  # the long one has several lines
        assert heights.count(min(heights)) == len(heights) - len(changed["cards"])
    # what tells domains apart stays in their labels
    labels = page.locator("#where svg text.domain").all_text_contents()
    assert set(labels) == {"Biscoe…", "Dream…", "Torgersen…"}


def test_text_of_pictures_does_not_overlap(page):
    """Names of domains end before the dots begin, numbers begin after them."""
    boxes = page.evaluate(
        """() => [...document.querySelectorAll('.view-dots .row')].map((row) => {
          const box = (name) => row.querySelector(name).getBoundingClientRect();
          const dot = box('.dot');
          return [box('.domain').right, dot.left, dot.right, box('.value').left];
        })"""
    )
    assert boxes
    for name_end, dot_start, dot_end, value_start in boxes:
        assert name_end <= dot_start
        assert dot_end <= value_start


LUMINANCE = """
(selector) => {
  const canvas = document.createElement("canvas");
  const paint = canvas.getContext("2d", { willReadFrequently: true });
  const read = (color) => {
    paint.clearRect(0, 0, 1, 1);
    paint.fillStyle = color;
    paint.fillRect(0, 0, 1, 1);
    return [...paint.getImageData(0, 0, 1, 1).data];
  };
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((v) => {
      const s = v / 255;
      return s <= 0.03928 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const behind = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const color = read(getComputedStyle(e).backgroundColor);
      if (color[3] === 255) return color;
    }
    return [255, 255, 255];
  };
  const found = [];
  for (const e of document.querySelectorAll(selector)) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || !e.checkVisibility()) continue;
    const style = getComputedStyle(e);
    const svg = e instanceof SVGElement;
    const pair = [light(read(svg ? style.fill : style.color)), light(behind(e))];
    const ratio = (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
    if (ratio < LIMIT) found.push([e.tagName, e.className.baseVal ?? e.className,
                                   e.textContent.trim().slice(0, 30), ratio]);
  }
  return found;
}
""".replace("LIMIT", str(CONTRAST))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out(open_page, address, scheme):
    page = open_page(address, color_scheme=scheme).page
    # labels inside coloured segments have an outline of their own
    assert page.evaluate(LUMINANCE, "body :not(.segment *)") == []


def test_dark_and_light_differ(open_page, address):
    found = []
    for scheme in ("light", "dark"):
        page = open_page(address, color_scheme=scheme).page
        found.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert found[0] != found[1]


# ---- interaction -----------------------------------------------------------------


def test_table_sorts_by_any_column(page, summary):
    share = [row[1] for row in summary["prevalence"]["estimate"]]
    names = [domain["name"] for domain in summary["domains"]]
    head = page.locator("#table-where thead th").nth(3)
    head.locator("button").click()
    falling = [name for _, name in sorted(zip(share, names, strict=True), reverse=True)]
    assert column(page, 0) == falling
    assert head.get_attribute("aria-sort") == "descending"
    head.locator("button").click()
    assert column(page, 0) == falling[::-1]
    page.locator("#table-where thead th").nth(0).locator("button").click()
    assert column(page, 0) == names
    assert head.get_attribute("aria-sort") is None


def test_domains_can_be_searched(open_page, thousand, tmp_path):
    path = tmp_path / "report.html"
    write(thousand, path)
    page = open_page(path.as_uri()).page
    page.get_by_label("Find a domain").fill("SITE 099")
    visible = page.locator("#table-where tbody tr:visible")
    assert visible.count() == 10
    assert visible.first.locator("th").inner_text().startswith("site 0990")


def test_toggle_shows_stacked_bars(page):
    dots, bars = page.locator(".panels.view-dots"), page.locator(".view-bars .bars")
    assert dots.is_visible()
    assert not bars.is_visible()
    page.get_by_text("Stacked bars", exact=True).click()
    assert bars.is_visible()
    assert not dots.is_visible()
    assert page.locator(".bar").first.bounding_box()["width"] > 400


def test_sections_fold(page):
    body = page.locator("#trust > .body")
    assert body.is_visible()
    page.locator("#trust > summary").click()
    assert not body.is_visible()


def test_names_are_typed_shown_and_saved(page, tmp_path):
    page.locator("[data-class-name=c0]").fill("Pygoscelis & co")
    assert page.locator("#c0 h3 [data-name]").inner_text() == "Pygoscelis & co"
    assert "Pygoscelis & co" in page.locator("#table-where thead").inner_text()
    spoken = page.locator("#where-c0-desc").text_content()
    assert "about 26% Pygoscelis & co" in spoken or "Pygoscelis & co" in spoken
    with page.expect_download() as download:
        page.get_by_role("button", name="Save names").click()
    assert download.value.suggested_filename == "names.json"
    saved = json.loads(download.value.path().read_text(encoding="utf-8"))
    assert saved == {"c0": "Pygoscelis & co", "c1": "Gentoo", "c2": "Chinstrap"}
    command = page.locator("#name-command").inner_text()
    assert command == "shoal name 'my run' --from names.json"
    assert (
        "names.json is in your downloads" in page.locator("#naming-status").inner_text()
    )


def test_saved_names_fit_the_model(page, penguins):
    page.locator("[data-class-name=c2]").fill("Third")
    with page.expect_download() as download:
        page.get_by_role("button", name="Save names").click()
    names = json.loads(download.value.path().read_text(encoding="utf-8"))
    assert penguins.model.set_names(names).class_names_ == ["Adelie", "Gentoo", "Third"]


@pytest.mark.parametrize(
    ("name", "message"),
    [("", "Every class needs a name."), ("Gentoo", "Two classes have the same name.")],
)
def test_bad_names_are_not_saved(page, name, message):
    page.locator("[data-class-name=c0]").fill(name)
    status = page.locator("#naming-status")
    assert status.inner_text() == message
    page.get_by_role("button", name="Save names").click()
    page.wait_for_timeout(200)
    assert status.inner_text() == message


def test_suggestions_are_offered_as_such(page):
    button = page.locator("[data-suggest=c1]")
    assert button.inner_text().startswith("Suggestion: ")
    button.click()
    suggested = button.get_attribute("data-name-suggested")
    assert page.locator("[data-class-name=c1]").input_value() == suggested
    assert page.locator("#c1 h3 [data-name]").inner_text() == suggested


def test_csv_download_is_the_table(page, summary):
    page.locator("[data-class-name=c0]").fill('a "comma", here')
    with page.expect_download() as download:
        page.get_by_role("button", name="Download as CSV").click()
    text = download.value.path().read_text(encoding="utf-8")
    rows = list(csv.DictReader(io.StringIO(text)))
    expected = prevalence_records(summary)
    assert len(rows) == len(expected)
    for row, record in zip(rows, expected, strict=True):
        assert row["domain"] == record["domain"]
        for key in ("estimate", "lo", "hi", "level", "n_rows"):
            assert float(row[key]) == record[key]
    assert rows[0]["class_name"] == 'a "comma", here'


def test_json_download_is_the_results(page, summary):
    with page.expect_download() as download:
        page.get_by_role("button", name="results.json").click()
    saved = json.loads(download.value.path().read_text(encoding="utf-8"))
    assert saved["prevalence"] == summary["prevalence"]
    assert saved["schema"] == "shoal-report/1"


def test_a_class_can_be_highlighted(open_page, fourteen, tmp_path):
    path = tmp_path / "report.html"
    write(fourteen, path)
    page = open_page(path.as_uri()).page
    key = page.locator("#map .key").nth(3)
    key.focus()
    assert page.locator("body.dimmed").count() == 1
    lit = page.locator("#map .lit")
    assert {lit.nth(i).get_attribute("data-class") for i in range(lit.count())} == {
        "c3"
    }
    page.locator("h1").click()
    page.get_by_label("Find a domain").focus()
    assert page.locator("body.dimmed").count() == 0


def test_pictures_can_be_enlarged(open_page, penguins, tmp_path):
    import numpy as np

    shade = [np.full((32, 32, 3), row % 256, dtype=np.uint8) for row in range(342)]
    path = tmp_path / "report.html"
    write(penguins.summarize(images=shade.__getitem__), path)
    page = open_page(path.as_uri()).page
    page.locator("#c0 .thumb").first.click()
    box = page.locator("dialog#lightbox")
    assert box.is_visible()
    assert "row" in box.locator("p").inner_text()
    assert box.locator("img").bounding_box()["width"] > 200
    page.keyboard.press("Escape")
    assert not box.is_visible()


# ---- keyboard, print, no scripts ---------------------------------------------------


def test_everything_is_reached_by_keyboard(page):
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the results"
    assert page.locator(".skip").bounding_box()["x"] >= 0
    seen = set()
    for _ in range(80):
        page.keyboard.press("Tab")
        seen.add(page.evaluate(
            """() => { const e = document.activeElement;
              return e.id || e.dataset.download || e.dataset.className
                || e.getAttribute('class') || e.tagName }"""
        ))  # fmt: skip
    expected = {"view-dots", "sort", "prevalence.csv", "c0", "c1", "c2", "names.json"}
    assert expected <= seen


def test_keyboard_sorts_toggles_and_names(page):
    page.locator("#view-dots").focus()
    page.keyboard.press("ArrowRight")
    assert page.locator(".view-bars .bars").is_visible()
    page.locator("#table-where thead button").nth(1).focus()
    page.keyboard.press("Enter")
    assert column(page, 0) == ["Biscoe", "Dream", "Torgersen"]
    page.keyboard.press("Enter")
    assert column(page, 0) == ["Torgersen", "Dream", "Biscoe"]
    page.locator("#trust > summary").focus()
    page.keyboard.press("Enter")
    assert not page.locator("#trust > .body").is_visible()


def test_focus_can_be_seen(page):
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    style = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert style == "solid"


def test_everything_can_be_read_without_scripts(open_page, address, page):
    plain = open_page(address, java_script_enabled=False).page
    for name in ("where", "differences", "classes", "map", "trust", "uncertainty"):
        assert plain.locator(f"#{name} > .body").is_visible()
    assert not plain.locator(".js-only:visible").count()
    assert plain.locator("#name-command").is_visible()
    assert plain.locator(".view-dots circle").count() == 9
    plain.locator("label[for=view-bars]").click()  # the toggle is plain CSS
    assert plain.locator(".view-bars .bars").is_visible()
    with_scripts = re.sub(r"\s+", " ", page.locator("#trust").inner_text())
    assert re.sub(r"\s+", " ", plain.locator("#trust").inner_text()) == with_scripts


def test_print_leaves_out_what_paper_cannot_do(page):
    page.emulate_media(media="print")
    assert not page.locator("nav").is_visible()
    assert not page.get_by_role("button", name="Save names").is_visible()
    assert page.locator("#table-where").is_visible()
    assert page.get_by_text("Dots with intervals", exact=True).is_visible()
    assert not page.get_by_text("Stacked bars", exact=True).is_visible()
    wide = "e => e.some(one => one.scrollWidth > one.clientWidth)"
    assert not page.locator(".spread span").evaluate_all(wide)  # under no bar
    page.set_viewport_size({"width": A4, "height": 900})
    lines = """all => all.filter((one) => /^\\S+$/.test(one.textContent)).map((one) => {
      const range = document.createRange();
      range.selectNodeContents(one);
      return range.getClientRects().length;
    })"""
    for cells in ("thead th:nth-child(-n + 3)", "tbody th"):
        assert set(page.locator(f"#c0 .rows {cells}").evaluate_all(lines)) == {1}
    page.locator("#trust > summary").evaluate("e => e.parentElement.open = false")
    assert not page.locator("#trust > .body").is_visible()  # what is folded stays so
    assert len(page.pdf()) > 10_000


def test_paper_has_neither_blank_nor_clipped_pages(
    open_page, request, address, tmp_path
):
    pypdf = pytest.importorskip("pypdf")
    path = tmp_path / "report.html"
    write(request.getfixturevalue("fourteen"), path)
    for one in (address, path.as_uri()):
        page = open_page(one, viewport={"width": A4, "height": 900}).page
        page.emulate_media(media="print")
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= A4
        pages = pypdf.PdfReader(io.BytesIO(page.pdf(format="A4"))).pages
        # words, and what is drawn: a sheet may be all map
        assert min(len(sheet.extract_text()) for sheet in pages) > 50
        drawn = [len(sheet.get_contents().get_data()) for sheet in pages]
        assert min(drawn) > 5_000, drawn


def test_paper_shows_the_first_of_many_domains(open_page, request, tmp_path):
    """Under a head on every sheet; the note that says so is for paper alone."""
    pypdf = pytest.importorskip("pypdf")
    path = tmp_path / "report.html"
    thousand = request.getfixturevalue("thousand")
    write(thousand, path)
    page = open_page(path.as_uri(), viewport={"width": A4, "height": 900}).page
    rows, note = (
        page.locator("#table-where tbody tr"),
        page.locator("#where .paper-only"),
    )
    assert not note.is_visible()
    assert rows.count() == 1_000
    page.emulate_media(media="print")
    assert note.inner_text().startswith("On paper, the first 60 of 1,000 domains")
    assert page.locator("#table-where tbody tr:visible").count() == 60
    sheets = pypdf.PdfReader(io.BytesIO(page.pdf(format="A4"))).pages
    texts = [re.sub(r"\s+", " ", sheet.extract_text()) for sheet in sheets]
    first = str(thousand["domains"][59]["name"])
    with_rows = [text for text in texts if re.search(r"thin \d+ ", text)]
    assert len(with_rows) > 1
    assert any(first in text for text in with_rows)
    assert all("Domain" in text for text in with_rows)


# ---- what everybody can use ----------------------------------------------------------


@pytest.mark.parametrize("viewport", [DESKTOP, NARROW], ids=["desktop", "narrow"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_violation(
    browser, serious_violations, address, viewport, scheme
):
    # the policy of the page lets no script in that it does not know, not even axe
    context = browser.new_context(
        viewport=viewport, color_scheme=scheme, bypass_csp=True
    )
    page = context.new_page()
    page.goto(address)
    assert serious_violations(page) == []
    context.close()


def test_values_are_told_under_the_pointer_and_by_arrows(page, summary):
    tip = page.locator("#tip")
    assert not tip.is_visible()
    page.locator(".view-dots .row").nth(0).hover()
    assert tip.inner_text() == View(summary).named(View(summary).reading(0, 0))
    page.mouse.move(2, 2)
    assert not tip.is_visible()
    page.locator("#view-dots").focus()
    page.keyboard.press("Tab")
    assert tip.inner_text().startswith("Biscoe: about")
    page.keyboard.press("ArrowDown")
    assert tip.inner_text().startswith("Dream: about")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    assert tip.inner_text().startswith("Torgersen: about")
    page.keyboard.press("Escape")
    assert not tip.is_visible()


def test_features_can_be_looked_at_in_one_domain(open_page, address):
    page = open_page(address, java_script_enabled=False).page
    everywhere, dream = (page.locator(f"#features .s{n}").first for n in (0, 2))
    assert everywhere.is_visible()
    assert not dream.is_visible()
    page.locator("label[for=at-2]").click()
    assert dream.is_visible()
    assert not everywhere.is_visible()


def test_what_scrolls_sideways_has_a_shadow(open_page, address):
    page = open_page(address, viewport=NARROW).page
    shades = page.evaluate(
        """() => [...document.querySelectorAll('.scroll')]
          .filter((box) => box.scrollWidth > box.clientWidth)
          .map((box) => getComputedStyle(box).backgroundAttachment)"""
    )
    assert shades
    assert set(shades) == {"local, local, scroll, scroll"}


def test_redacted_pages_work_too(open_page, penguins, tmp_path):
    path = tmp_path / "report.html"
    write(penguins.summarize(redact=True), path)
    page = open_page(path.as_uri()).page
    assert page.get_by_text("Redacted:").is_visible()
    assert page.locator("#map").count() == 0


def test_odd_names_do_no_harm(open_page, penguins, tmp_path):
    evil = "</script><img src=x onerror=alert(1)>'\"&"
    path = tmp_path / "report.html"
    path.write_text(render(penguins.summarize(title=evil)), encoding="utf-8")
    page = open_page(path.as_uri()).page
    assert page.locator("h1").inner_text() == evil
    page.locator("[data-class-name=c0]").fill(evil)
    assert page.locator("#c0 h3 [data-name]").inner_text() == evil
