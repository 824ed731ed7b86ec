"""``shoal version``: what to paste into a bug report."""

from shoal.cli._options import Speech, with_groups
from shoal.cli._output import running
from shoal.cli._runs import collect_versions


@with_groups
def version(speech: Speech) -> None:
    """Versions of shoal and of what it stands on, for bug reports."""
    with running("version", speech) as output:
        output.data = collect_versions()
        width = max(map(len, output.data))
        for name, value in output.data.items():
            output.show(f"{name:{width}}  {value or 'not installed'}")
