"""Pictures for the report: files below a folder that the ids of rows name."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from shoal.cli.messages import CommandError
from shoal.cli.options import working

__all__ = ["ImagesFolder", "add_pictures", "pictures_of"]

ImagesFolder = Annotated[
    Path | None,
    working(
        "--images",
        metavar="DIR",
        help="Show the pictures below DIR that the ids of the rows name.",
    ),
]


def pictures_of(folder: Path | None, table: Any) -> Callable[[int], bytes] | None:
    """A function from the number of a row to the file that its id names."""
    if folder is None:
        return None
    if table.ids is None:
        raise CommandError(
            "E145",
            "--images needs to know which picture a row is",
            "name the column of file names with --id",
        )
    return lambda row: read_picture(folder, str(table.ids[row]))


def add_pictures(summary: Mapping[str, Any], folder: Path) -> None:
    """Put the pictures of the rows that a summary shows into it."""
    from shoal.report.thumbnails import thumbnail

    shown = list(_shown_rows(summary))
    if not shown:
        raise CommandError(
            "E162", "the summary of the run shows no rows", "fit without --redact"
        )
    for row in shown:
        row["image"] = thumbnail(read_picture(folder, row["id"]))


def _shown_rows(summary: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for card in summary.get("cards", []):
        for home in card["exemplars"]:
            yield from home["rows"]
        yield from card["borderline"]


def read_picture(folder: Path, name: str) -> bytes:
    """The content of an image below a folder; E127 where there is none."""
    from shoal.io.images import check_image

    if not folder.is_dir():
        hint = "give the folder that the ids of the rows begin in"
        raise CommandError("E101", f'no folder "{folder}"', hint)
    path = (folder / name).resolve()
    if not (path.is_relative_to(folder.resolve()) and path.is_file()):
        raise CommandError(
            "E127",
            f'no image "{name}" below "{folder}"',
            "the id of a row must be the path of its picture below that folder",
        )
    check_image(path)
    return path.read_bytes()
