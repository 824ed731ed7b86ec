import sys

from shoal.vision._devices import Progress

RECORD = {"epoch": 2, "loss": 0.123456, "seconds": 3.0, "knn_accuracy": 0.5, "x": None}


def test_a_line_for_each_epoch_where_there_is_no_terminal(capsys):
    with Progress(5) as progress:
        progress.show(RECORD)
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == "epoch 2/5: loss 0.1235, knn_accuracy 0.5\n"


def test_silence(capsys):
    with Progress(5, shown=False) as progress:
        progress.show(RECORD)
    assert capsys.readouterr() == ("", "")


def test_a_bar_on_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with Progress(5) as progress:
        progress.show(RECORD)
        assert progress._bar.tasks[0].completed == 2
    assert "epoch 2/5" not in capsys.readouterr().err
