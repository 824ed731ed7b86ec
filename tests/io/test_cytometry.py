"""FCS files: the layout, amplifiers, spillover, and which channels are markers."""

from pathlib import Path

import numpy as np
import pytest

from shoal.exceptions import InputError
from shoal.io import read
from shoal.io.source._cytometry import markers, read_events

LETTERS = {"F": "f4", "D": "f8", "I": "u2"}


def write_fcs(
    path: Path,
    events: np.ndarray,
    channels: list[str],
    stains: tuple[str, ...] = (),
    *,
    kind: str = "F",
    order: str = "<",
    mark: str = "/",
    **more: str,
) -> Path:
    """A file as an instrument writes it, byte by byte."""
    block = np.asarray(events).astype(f"{order}{LETTERS[kind]}").tobytes()
    words = {
        "$PAR": len(channels), "$TOT": len(events), "$DATATYPE": kind, "$MODE": "L",
        "$BYTEORD": "1,2,3,4" if order == "<" else "4,3,2,1", "$NEXTDATA": 0,
    }  # fmt: skip
    for n, name in enumerate(channels, 1):
        n_bits = 8 * np.dtype(LETTERS[kind]).itemsize
        words |= {f"$P{n}N": name, f"$P{n}B": n_bits, f"$P{n}R": 1024}
    words |= {f"$P{n}S": stain for n, stain in enumerate(stains, 1) if stain}
    words |= {f"${name}": value for name, value in more.items()}
    parts = [str(part) for pair in words.items() for part in pair]
    escaped = [part.replace(mark, 2 * mark) for part in parts]
    text = (mark + mark.join(escaped) + mark).encode()
    start = 58 + len(text)
    places = (58, start - 1, start, start + len(block) - 1, 0, 0)
    header = b"FCS3.1    " + b"".join(b"%8d" % place for place in places)
    path.write_bytes(header + text + block)
    return path


@pytest.fixture
def events() -> np.ndarray:
    return np.random.default_rng(0).gamma(2, 200, size=(40, 4)).astype("f4")


CHANNELS = ["FSC-A", "FITC-A", "PE-A", "Time"]
STAINS = ("", "CD4", "CD8", "")


@pytest.mark.parametrize("kind", ["F", "D", "I"])
@pytest.mark.parametrize("order", ["<", ">"])
def test_events_are_those_that_were_written(tmp_path, events, kind, order):
    whole = np.floor(events) % 1024
    path = write_fcs(tmp_path / "a.fcs", whole, CHANNELS, kind=kind, order=order)
    keywords, found = read_events(path)
    np.testing.assert_array_equal(found, whole)
    assert keywords["P2N"] == "FITC-A"


def test_values_may_hold_the_delimiter(tmp_path, events):
    names = ["FSC-A", "CD4/CD8", "PE-A", "Time"]
    path = write_fcs(tmp_path / "a.fcs", events, names)
    assert read_events(path)[0]["P2N"] == "CD4/CD8"


def test_amplifiers_are_taken_out(tmp_path):
    raw = np.array([[0, 512], [1023, 100]])
    more = {"P1E": "4,1", "P2G": "2.5"}
    path = write_fcs(tmp_path / "a.fcs", raw, ["PE-A", "APC-A"], kind="I", **more)
    found = read_events(path)[1]
    np.testing.assert_allclose(found[:, 0], 10 ** (4 * raw[:, 0] / 1024))
    np.testing.assert_allclose(found[:, 1], raw[:, 1] / 2.5)


def test_bits_beyond_the_range_are_left_out(tmp_path):
    raw = np.array([[5 + 2048, 7]])
    path = write_fcs(tmp_path / "a.fcs", raw, ["PE-A", "APC-A"], kind="I")
    np.testing.assert_array_equal(read_events(path)[1], [[5, 7]])


def test_markers_are_stained_channels_without_spillover(tmp_path, events):
    spill = np.array([[1, 0.2], [0.1, 1]])
    shed = events.copy()
    shed[:, 1:3] = events[:, 1:3] @ spill
    told = "2,FITC-A,PE-A," + ",".join(map(str, spill.ravel()))
    path = write_fcs(tmp_path / "a.fcs", shed, CHANNELS, STAINS, SPILLOVER=told)
    frame = markers(*read_events(path))
    assert frame.columns.tolist() == ["CD4", "CD8"]
    np.testing.assert_allclose(frame, np.arcsinh(events[:, 1:3] / 150), atol=1e-5)


def test_without_stains_all_but_scatter_and_time_are_markers(tmp_path, events):
    path = write_fcs(tmp_path / "a.fcs", events, CHANNELS)
    assert markers(*read_events(path)).columns.tolist() == ["FITC-A", "PE-A"]


def test_mass_cytometry_has_no_scatter_and_small_numbers(tmp_path, events):
    names = ["Time", "Event_length", "Nd142Di", "Sm147Di"]
    stains = ("", "", "CD19", "CD20")
    frame = markers(*read_events(write_fcs(tmp_path / "a.fcs", events, names, stains)))
    assert frame.columns.tolist() == ["CD19", "CD20"]
    np.testing.assert_allclose(frame, np.arcsinh(events[:, 2:] / 5), atol=1e-5)


def test_two_channels_of_one_stain_keep_their_names(tmp_path, events):
    names, stains = ["A-A", "B-A", "C-A", "FSC-A"], ("CD3", "CD3", "CD4", "")
    frame = markers(*read_events(write_fcs(tmp_path / "a.fcs", events, names, stains)))
    assert frame.columns.tolist() == ["CD3 (A-A)", "CD3 (B-A)", "CD4"]


def test_each_file_of_a_folder_is_a_domain(tmp_path, events):
    for name in ("ill", "well"):
        write_fcs(tmp_path / f"{name}.fcs", events, CHANNELS, STAINS)
    table = read(tmp_path)
    assert table.X.shape == (80, 2)
    assert np.unique(table.domains).tolist() == ["ill", "well"]
    assert table.feature_names == ["CD4", "CD8"]
    files = [tmp_path / "ill.fcs", tmp_path / "well.fcs"]
    np.testing.assert_array_equal(read(files).X, table.X)


def test_places_beyond_eight_digits_are_in_the_text(tmp_path, events):
    stand_ins = {"BEGINDATA": "b" * 8, "ENDDATA": "e" * 8}
    path = write_fcs(tmp_path / "a.fcs", events, CHANNELS, **stand_ins)
    content = path.read_bytes()
    for stand_in, at in ((b"b" * 8, 26), (b"e" * 8, 34)):
        content = content.replace(stand_in, content[at : at + 8].replace(b" ", b"0"))
    path.write_bytes(content[:26] + b"%8d%8d" % (0, 0) + content[42:])
    np.testing.assert_array_equal(read_events(path)[1], events)


def spoiled(path: Path, at: int, what: bytes) -> Path:
    content = path.read_bytes()
    path.write_bytes(content[:at] + what + content[at + len(what) :])
    return path


@pytest.mark.parametrize(
    ("at", "what", "reason"),
    [
        (0, b"XYZ", "does not begin with FCS"),
        (34, b"99999999", "bytes .* to 99999999 of"),
        (10, b"     abc", "invalid literal"),
        (26, b"      -9", "bytes -9 to"),
    ],
)
def test_what_is_no_fcs_file_is_said(tmp_path, events, at, what, reason):
    path = spoiled(write_fcs(tmp_path / "a.fcs", events, CHANNELS), at, what)
    with pytest.raises(InputError, match=f"cannot be read as fcs: .*{reason}") as told:
        read([path, path])
    assert told.value.code == "E143"


@pytest.mark.parametrize(
    "more",
    [
        {"MODE": "C"},
        {"PAR": "0"},
        {"PAR": "9999999"},
        {"DATATYPE": "A"},
        {"TOT": "many"},
        {"P1E": "four"},
        {"SPILLOVER": "3,FITC-A,PE-A,1,0,0,1"},
        {"SPILLOVER": "2,FITC-A,PE-A,1,1,1,1"},
    ],
)
def test_keywords_that_cannot_be_are_said(tmp_path, events, more):
    path = write_fcs(tmp_path / "a.fcs", events, CHANNELS, **more)
    with pytest.raises(InputError) as told:
        read([path, path])
    assert told.value.code == "E143"


def test_a_file_without_events_is_said(tmp_path, events):
    path = write_fcs(tmp_path / "a.fcs", events, CHANNELS, TOT="0")
    with pytest.raises(InputError, match="has no events") as told:
        read([path, path])
    assert told.value.code == "E114"


def test_a_file_that_was_cut_gives_the_events_that_are_there(tmp_path, events):
    path = write_fcs(tmp_path / "a.fcs", events, CHANNELS, TOT="1000000000")
    assert len(read_events(path)[1]) == 40


@pytest.mark.parametrize(
    "more",
    [{"P2E": "1e6,1"}, {"P2G": "1e-320"}, {"P2G": "nan"}],
)
def test_numbers_too_large_are_refused(tmp_path, events, more):
    good = write_fcs(tmp_path / "good.fcs", events, CHANNELS, STAINS)
    bad = write_fcs(tmp_path / "bad.fcs", events, CHANNELS, STAINS, **more)
    with pytest.raises(InputError) as told:
        read([good, bad])
    assert told.value.code in ("E115", "E143")
