"""Every message the command line can end or warn with: its code, exit and long text.

A code never changes its meaning. ``E`` stops a command, ``W`` lets it go on; the short
text and its hint are written where the message arises, the long text stands here for
``shoal explain``.
"""

from dataclasses import dataclass

__all__ = ["CATALOGUE", "CommandError", "Explanation", "Message"]


@dataclass(frozen=True)
class Message:
    """One line for the reader, and the one thing to do about it."""

    code: str
    text: str
    hint: str

    @property
    def level(self) -> str:
        """``"error"`` or ``"warning"``."""
        return "error" if self.code.startswith("E") else "warning"


class CommandError(Exception):
    """Ends a command with a coded message and that code's exit status."""

    def __init__(self, code: str, text: str, hint: str) -> None:
        super().__init__(text)
        self.message = Message(code, text, hint)


@dataclass(frozen=True)
class Explanation:
    """What ``shoal explain`` says about a code."""

    title: str
    text: str
    exit_code: int = 0


CATALOGUE = {
    "E001": Explanation(
        "a bug in shoal",
        "Something happened that shoal did not foresee. Nothing was written. Run the "
        "command again with --debug to see where it happened, and report that together "
        "with the output of `shoal version`.",
        exit_code=1,
    ),
    "E002": Explanation(
        "wrong usage",
        "The command line has an option, a value or a command that shoal does not "
        "know. `shoal --help` lists the commands, `shoal COMMAND --help` its options.",
        exit_code=2,
    ),
    "E003": Explanation(
        "interrupted",
        "The command was stopped by Ctrl-C. Files are written under a temporary name "
        "and renamed when all of them are whole, so that every file is either whole "
        "or as it was before.",
        exit_code=130,
    ),
    "E112": Explanation(
        "more classes than domains",
        "Classes are told apart by how they shift between domains, and r domains can "
        "tell at most r classes apart. Ask for fewer classes, or use a finer column "
        "as the domain.",
        exit_code=4,
    ),
    "E136": Explanation(
        "the output exists",
        "The folder holds a file with the name of one that the command would write, "
        "and it was not written by this command or was changed since. Files of an "
        "earlier run that nobody touched are replaced without asking. Choose another "
        "folder with --out, or overwrite with --force; other files in the folder are "
        "never touched.",
        exit_code=2,
    ),
    "E138": Explanation(
        "nothing to find",
        "On held-out rows, the domain of a row cannot be guessed better than blindly. "
        "The mix of classes may be the same everywhere, the features may not carry "
        "the classes, or there may be too few rows. More of the same rows will not "
        "help if the mix is the same: look for domains that differ.",
        exit_code=4,
    ),
    "E140": Explanation(
        "cannot write",
        "The folder for the results cannot be made or written to: a file has its "
        "name, a permission is missing, or the disk is full. Choose another folder "
        "with --out.",
        exit_code=3,
    ),
    "W111": Explanation(
        "a thin domain",
        "A domain has so few rows that its mix of classes cannot be read with any "
        "precision, whatever the method. Merge it with a domain of the same kind, or "
        "read its interval rather than its estimate. Every domain counts alike in "
        "the fit, so a thin one also makes the others a little less sure.",
    ),
    "W121": Explanation(
        "a column names the domain",
        "One column alone tells where most rows come from: a site number, a date, a "
        "file format. Unless it is a property of the classes themselves, drop it: "
        "classes would be found that are domains under another name.",
    ),
    "W122": Explanation(
        "rows repeated across domains",
        "The same rows occur in more than one domain. Copies pull domains together "
        "and make the differences between their mixes look smaller than they are. "
        "Remove them.",
    ),
    "W139": Explanation(
        "a class that lives in one domain",
        "Nearly all of a class was found in one domain. It can be real (on the "
        "penguins' islands two species breed on one island each) or it can be that "
        "domain's instrument, protocol or season: then the class is the domain under "
        "another name, and its prevalence says nothing. Look at some of its rows and "
        "ask whether they could have been found elsewhere.",
    ),
}
