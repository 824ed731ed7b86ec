"""``shoal sign``: a model that can be told from forged ones by who has the key."""

from dataclasses import dataclass
from pathlib import Path

from shoal.cli import _runs
from shoal.cli._messages import CommandError
from shoal.cli._models import Model
from shoal.cli._options import Speech, with_groups, working
from shoal.cli._output import running


@dataclass(frozen=True, kw_only=True)
class Signing:
    """With what, and whether to sign at all."""

    key: Path | None = working(
        None, "File with a secret of 16 bytes or more.", metavar="FILE"
    )
    check: bool = working(False, "Only see whether it was signed with that key.")


@with_groups
def sign(model: Model, how: Signing, speech: Speech) -> None:
    """Sign a model with a key, or see whether it was signed with it.

    Every file of a model is under a digest, which shows damage; whoever changes it on
    purpose writes new digests. A signature cannot be made anew without the key: with
    --check, or as shoal.load(MODEL, key=FILE), a model that was changed by somebody
    else is refused before it is read. Covers the model, not the other files of a run.
    What changes the model, such as `shoal name`, takes the signature away.
    """
    import shoal
    from shoal.io import sign as sign_model

    with running("sign", speech) as output:
        if how.key is None:
            text = "say which key to sign with: --key FILE"
            raise CommandError("E002", text, "`openssl rand -hex 32` makes one")
        _runs.settled(model)
        if how.check:
            shoal.load(model, key=how.key)
            output.data = {"signed": True}
            output.show(f'"{model}" was signed with this key, and is as it was then.')
            return
        output.files = [sign_model(model, how.key)]
        output.data = {"signed": True}
        output.show_files()
