"""``python -m shoal``: the command line, also where its script is not on the path."""

from shoal.cli import main

main()
