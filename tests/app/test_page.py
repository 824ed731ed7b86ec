"""The page to drop a table on, as somebody without a terminal meets it."""

import json
import re
import signal
import zipfile
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import pandas as pd
import pytest

DESKTOP = {"width": 1280, "height": 900}
NARROW = {"width": 390, "height": 844}
MINUTE = 60_000
PATIENCE = 4 * MINUTE  # a machine may have much else to do
K = "3"  # given, so that no test waits for the choice


class Tab:
    """A tab, with what it asks of the network and what it complains about."""

    def __init__(self, browser, address, viewport=DESKTOP):
        self.context = browser.new_context(viewport=viewport, accept_downloads=True)
        self.page = self.context.new_page()
        self.asked, self.complaints = [], []
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", self.hear)
        self.address = address
        self.page.goto(address)

    def hear(self, message):
        # a refusal that the page tells in words is also in the browser's log
        if "status of 4" not in message.text:
            self.complaints.append(message.text)

    def close(self):
        loopback = (self.address.split("/", 3)[2], "data:")
        assert [url for url in self.asked if not any(h in url for h in loopback)] == []
        assert self.complaints == []
        self.context.close()

    def upload(self, path):
        self.page.set_input_files("#file", path)
        self.page.wait_for_selector("#ask:visible, #error:visible", timeout=PATIENCE)

    def fit(self, k=K):
        self.page.get_by_text("More choices").click()
        self.page.fill("#k", k)
        self.page.get_by_role("button", name="Find the classes").click()

    def wait_for(self, part):
        self.page.wait_for_selector(f"#{part}:visible", timeout=PATIENCE)


@pytest.fixture
def open_tab(browser):
    tabs = []

    def open_tab(address, **settings):
        tabs.append(Tab(browser, address, **settings))
        return tabs[-1]

    yield open_tab
    for tab in tabs:
        tab.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("app")


@pytest.fixture(scope="module")
def served(serve, folder):
    return serve(folder, "--max-mb=1")


@pytest.fixture(scope="module")
def done(served, browser, table):
    """The address of a table that was fitted in the page."""
    tab = Tab(browser, served.address)
    tab.upload(table)
    assert tab.page.locator("[name=candidate]:checked").input_value() == "island"
    assert tab.page.locator("#table-size").inner_text() == "342 rows, 5 columns"
    assert tab.page.locator("#preview tbody tr").count() == 6
    tab.fit()
    tab.wait_for("running")
    assert tab.page.locator("#stage").inner_text().startswith("Step ")
    tab.wait_for("result")
    address = tab.page.url
    tab.close()
    return address


# ---- the whole way -------------------------------------------------------------------


def test_upload_fit_name_and_download(done, open_tab):
    page = open_tab(done).page
    page.wait_for_selector("#result:visible", timeout=PATIENCE)
    assert page.locator("#verdict").inner_text() == "⚠ Use with caution"
    assert page.locator("#mix tbody th").all_inner_texts() == [
        "Biscoe", "Dream", "Torgersen",
    ]  # fmt: skip
    report = page.frame_locator("#report")
    assert report.locator("h1").inner_text() == "my penguins.csv"
    for place, name in enumerate(["Adelie", "Gentoo & co", "Chin<strap>"]):
        page.fill(f"#names [name=c{place}]", name)
    page.get_by_role("button", name="Save names").click()
    page.locator("#named", has_text="Saved").wait_for(timeout=PATIENCE)
    heads = page.locator("#mix thead th").all_inner_texts()
    assert heads == ["island", "rows", "Adelie", "Gentoo & co", "Chin<strap>"]
    report.locator("#c2 h3", has_text="Chin<strap>").wait_for()
    remarks = page.locator("#remarks").inner_text()
    assert "Gentoo & co only in Biscoe, Chin<strap> only in Dream" in remarks
    with page.expect_download() as download:
        page.get_by_role("link", name="prevalence.csv").click()
    text = download.value.path().read_text(encoding="utf-8")
    assert "Gentoo & co" in text
    with page.expect_download() as download:
        page.get_by_role("link", name="Class of every row").click()
    rows = pd.read_csv(download.value.path())
    assert len(rows) == 342
    assert set(rows["class"]) == {"Adelie", "Gentoo & co", "Chin<strap>"}
    with page.expect_download() as download:
        page.get_by_role("link", name="Everything").click()
    with zipfile.ZipFile(download.value.path()) as archive:
        kept = {"report.html", "prevalence.csv", "assignments.csv"}
        assert kept <= set(archive.namelist())


def test_a_table_is_dropped(served, open_tab):
    tab = open_tab(served.address)
    tab.page.evaluate(
        """() => {
          const held = new DataTransfer();
          const rows = ["place;size", ...Array(9).fill(["moor;1,5", "wood;2"]).flat()];
          held.items.add(new File([rows.join("\\n")], "dropped.csv"));
          const told = { dataTransfer: held, bubbles: true, cancelable: true };
          for (const what of ["dragover", "drop"]) {
            document.getElementById("drop").dispatchEvent(new DragEvent(what, told));
          }
        }"""
    )
    tab.wait_for("ask")
    assert tab.page.locator("#table-name").inner_text() == "dropped.csv"
    assert tab.page.locator("[name=candidate]:checked").input_value() == "place"
    assert tab.page.locator("#preview tbody td").nth(1).inner_text() == "1.5"


def test_two_tabs_see_the_same_and_go_their_own_ways(done, served, open_tab, table):
    first, second = open_tab(done).page, open_tab(served.address)
    first.wait_for_selector("#result:visible", timeout=PATIENCE)
    assert "my penguins.csv (done)" in second.page.locator("#jobs").inner_text()
    second.upload(table)
    second.fit()
    second.wait_for("running")
    assert first.locator("#result").is_visible()
    # a third wish is told what is going on
    third = open_tab(served.address)
    third.upload(table)
    third.fit()
    third.wait_for("error")
    assert "is being fitted: wait or cancel" in third.page.inner_text("#error")
    second.page.get_by_role("button", name="Cancel").click()
    second.wait_for("stopped")
    assert second.page.inner_text("#stopped-title") == "Cancelled: my penguins.csv"
    second.page.get_by_role("button", name="Change the choices").click()
    second.wait_for("ask")
    assert second.page.input_value("#k") == K


def test_names_that_cannot_be_are_told(done, open_tab):
    page = open_tab(done).page
    page.wait_for_selector("#result:visible", timeout=PATIENCE)
    page.fill("#names [name=c0]", "same")
    page.fill("#names [name=c1]", "same")
    page.get_by_role("button", name="Save names").click()
    page.wait_for_selector("#error:visible", timeout=PATIENCE)
    assert "class names must differ" in page.inner_text("#error")


# ---- what goes wrong -----------------------------------------------------------------


def test_bad_files_are_refused_by_name_and_not_kept(served, folder, open_tab, tmp_path):
    before = len(list(folder.iterdir()))
    tab = open_tab(served.address)
    strange = tmp_path / "holiday.xyz"
    strange.write_bytes(b"\x00\x01\x02")
    tab.upload(strange)
    told = tab.page.inner_text("#error")
    assert re.search(r"format of .* \(give its name the usual ending\)$", told), told
    empty = tmp_path / "empty.csv"
    empty.write_text("a,b\n")
    tab.upload(empty)
    tab.page.locator("#error", has_text='"empty.csv"').wait_for(timeout=PATIENCE)
    large = tmp_path / "large.csv"
    large.write_text("a,b\n" + "1,2\n" * 300_000)
    tab.upload(large)
    tab.page.locator("#error", has_text="large.csv").wait_for(timeout=PATIENCE)
    assert '"large.csv" has 2 MB; this page takes up to 1 MB' in tab.page.inner_text(
        "#error"
    )
    assert len(list(folder.iterdir())) == before


def test_the_server_refuses_large_files_whatever_the_page_says(served):
    place = urlsplit(served.address)
    with closing(HTTPConnection(place.netloc, timeout=60)) as wire:
        wire.putrequest("PUT", f"{place.path}tables/x.csv")
        wire.putheader("Content-Length", "2000000")  # refused before the rest is sent
        wire.endheaders()
        with wire.getresponse() as answer:
            assert answer.status == 400
            told = json.loads(answer.read())["error"]["text"]
    assert told.startswith('"x.csv" has 2 MB or more; this page takes up to 1 MB')


def test_a_fit_that_stops_says_why(served, open_tab, tmp_path):
    path = tmp_path / "few.csv"
    lines = [f"{'ab'[n % 2]},{n % 7},{n % 5}" for n in range(60)]
    path.write_text("\n".join(["site,u,v", *lines]) + "\n")
    tab = open_tab(served.address)
    tab.upload(path)
    tab.fit(k="9")
    tab.wait_for("stopped")
    assert "E112: 9 classes cannot be separated with 2 domains" in tab.page.inner_text(
        "#stopped-text"
    )


def test_hints_are_for_those_without_a_terminal(served, open_tab, tmp_path):
    path = tmp_path / "two.csv"
    path.write_text("a;b\n1;2\n3;4\n")
    tab = open_tab(served.address)
    tab.upload(path)
    tab.page.select_option("#domain", "a")
    tab.fit()
    tab.wait_for("stopped")
    assert tab.page.inner_text("#stopped-text").startswith('E109: "a" has 2 values')
    assert tab.page.inner_text("#stopped-hint") == "group it or choose another column"


@pytest.mark.parametrize("path", ["", "wrong/", "../", "x/jobs"])
def test_without_the_token_there_is_nothing(served, path):
    root = served.address.rsplit("/", 2)[0]
    with pytest.raises(Exception, match="404"):
        urlopen(f"{root}/{path}")


def test_other_names_of_this_machine_are_not_answered(served):
    request = Request(served.address, headers={"Host": "evil.example"})
    with pytest.raises(Exception, match="400"):
        urlopen(request)


@pytest.mark.parametrize(
    "path", ["page/..%2F_jobs.py", "page/nothing.js", "jobs/no", "jobs/../x"]
)
def test_only_what_is_meant_is_served(served, path):
    with pytest.raises(Exception, match="404"):
        urlopen(served.address + path)


def test_answers_forbid_what_the_page_does_not_need(served):
    headers = urlopen(served.address).headers
    assert headers["Content-Security-Policy"].startswith("default-src 'none'; script")
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert headers["Cache-Control"] == "no-store"
    assert headers["Referrer-Policy"] == "no-referrer"


# ---- kill and restart ----------------------------------------------------------------


def test_kill_and_restart(serve, open_tab, table, tmp_path):
    first = serve(tmp_path, "--seconds=600")
    tab = open_tab(first.address)
    tab.upload(table)
    tab.fit()
    tab.wait_for("running")
    job = tab.page.url.partition("#")[2]
    first.end(signal.SIGKILL)
    tab.complaints = [c for c in tab.complaints if "ERR_CONNECTION_REFUSED" not in c]
    tab.context.close()
    second = serve(tmp_path)
    assert second.address != first.address
    again = open_tab(f"{second.address}#{job}")
    again.page.wait_for_selector("#stopped:visible, #result:visible", timeout=PATIENCE)
    # the fit may have come to its end without the page
    assert "my penguins.csv" in again.page.inner_text("main h2:visible >> nth=-1")
    tab.close = lambda: None


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_as_it_was_told_to(serve, tmp_path, how):
    page = serve(tmp_path / "kept", "--seconds=600")
    page.process.send_signal(how)
    said, complained = page.process.communicate(timeout=30)
    assert page.process.returncode == 0
    assert complained == ""
    assert said.split() == f"Tables and results stay in {tmp_path / 'kept'}".split()


# ---- what everybody can use ----------------------------------------------------------


@pytest.mark.parametrize("viewport", [DESKTOP, NARROW], ids=["desktop", "narrow"])
def test_axe_finds_no_serious_violation(
    browser, serious_violations, done, table, served, viewport
):
    context = browser.new_context(viewport=viewport, bypass_csp=True)
    page = context.new_page()
    for address, part in ((served.address, "choose"), (done, "result")):
        page.goto("about:blank")
        page.goto(address)
        page.wait_for_selector(f"#{part}:visible", timeout=PATIENCE)
        assert serious_violations(page) == []
        wide, inner = page.evaluate(
            "[document.documentElement.scrollWidth, innerWidth]"
        )
        assert wide <= inner
    page.goto(served.address)
    page.set_input_files("#file", table)
    page.wait_for_selector("#ask:visible", timeout=PATIENCE)
    assert serious_violations(page) == []
    context.close()


def test_everything_is_reached_by_keyboard(served, open_tab, table):
    tab = open_tab(served.address)
    tab.page.keyboard.press("Tab")
    assert tab.page.evaluate("document.activeElement.id") == "file"
    tab.upload(table)
    seen = set()
    for _ in range(30):
        tab.page.keyboard.press("Tab")
        seen.add(
            tab.page.evaluate(
                """() => { const e = document.activeElement;
                  return e.id || e.name || e.textContent }"""
            )
        )
    assert {"candidate", "domain", "Find the classes"} <= seen


def test_results_lie_in_the_folder(done, folder: Path):
    job = done.partition("#")[2]
    assert (folder / job / "run" / "report.html").exists()
    kept = json.loads((folder / job / "job.json").read_text())
    assert kept["status"] == "done"
    assert kept["options"]["domain"] == "island"
