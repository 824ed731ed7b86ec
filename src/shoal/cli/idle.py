"""Options that would be overlooked in silence are refused instead."""

from collections.abc import Mapping
from typing import Any

from shoal.cli.messages import CommandError
from shoal.cli.output import COMMAND_LINE

__all__ = ["is_typed", "refuse_device", "refuse_idle", "refuse_no_encoder"]

# What is computed without a network is computed there anyway.
HONOURED = ("auto", "cpu")


def is_typed(option: str) -> bool:
    """Whether an option stands on the command line.

    One in a file of options (``--config``) may be meant for other commands.
    """
    words = COMMAND_LINE.get()
    return any(word == option or word.startswith(f"{option}=") for word in words)


def refuse_no_encoder(encoder: Any) -> None:
    """Raise E145 for options of a network where --encoder names none."""
    if encoder.given:
        return
    given = {
        "--fine-tune": getattr(encoder, "fine_tune", False),
        "--size": encoder.size is not None,
        "--device": encoder.device not in HONOURED,
    }
    hint = "leave it out, or name a network with --encoder"
    refuse_idle(given, "is for the network that --encoder names", hint)


def refuse_device(device: str) -> None:
    """Raise E145 for the device of a model that has no network."""
    given = {"--device": device not in HONOURED}
    refuse_idle(given, "is for images, and this model takes none")


def refuse_idle(
    given: Mapping[str, bool], why: str, hint: str = "leave it out"
) -> None:
    """Raise E145 for the first option that was typed."""
    for option, is_given in given.items():
        if is_given and is_typed(option):
            raise CommandError("E145", f"{option} {why}", hint)
