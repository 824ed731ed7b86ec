"""Networks need torch."""

import pytest

pytest.importorskip("torch")
