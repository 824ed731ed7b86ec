"""What the checks of a run said, for the classes as they are called now."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

CLASS = re.compile(r"\{(c\d+)\}")


def with_names(
    messages: Sequence[Mapping[str, Any]], summary: Path, names: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Messages of a fit, class ids of findings replaced by names.

    The summary of a run knows where in a finding a class stands; in the printed line a
    ``c1`` could also be a domain. Messages that are no findings stay as they are.
    """
    if not names or not summary.is_file():
        return [dict(one) for one in messages]
    checks = json.loads(summary.read_text(encoding="utf-8")).get("checks") or {}
    reasons = [one["reason"] for one in checks.get("findings", ())]
    now = {
        CLASS.sub(r"\1", reason): CLASS.sub(
            lambda found: names.get(found[1], found[1]), reason
        )
        for reason in reasons
    }
    return [{**one, "text": now.get(one["text"], one["text"])} for one in messages]
