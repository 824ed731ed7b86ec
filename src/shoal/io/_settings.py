"""Numbers that decide how data are read, each with its reason."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ReadingSettings:
    """What reading decides by; see the comments for why."""

    # ---- what a column is
    # Text with at most so many distinct values is one column per value; with more it
    # is so only if the column is asked for by name.
    max_levels: int = 50
    max_levels_asked: int = 1_000
    # Values that are partly numbers, partly text, are categories if there are so few.
    most_grades: int = 20
    # A word that most rows of a column have stands for a gap if the numbers beside it
    # are so many more: words of them at most in this share of the different numbers.
    words_among_numbers: float = 0.1
    # Running text has this many words a cell.
    words_of_text: float = 3.0
    # Numbers of rows of which some were left out are so far apart, on average.
    max_gap: int = 3
    # An answer has at most so many values.
    max_labels: int = 100
    # A number such as -999 is spoken of as "no value" if it lies so many ranges of all
    # other values away from them.
    stand_in_away: float = 2.0
    # So many cells are looked at to recognise dates and decimal commas.
    look_rows: int = 200
    # Larger numbers cannot be squared.
    largest: float = 1e150

    # ---- what becomes of gaps when nobody has said it
    # A column that lacks more of its cells says too little to be guessed at. One that a
    # domain of so many rows lacks altogether would tell that domain by its guess.
    most_filled: float = 0.2
    rows_without_any: int = 5

    # ---- what a word is worth
    # Others occur in one row, say nothing, or are shared by most rows.
    min_rows_of_word: int = 2
    max_share_of_word: float = 0.5
    max_words: int = 20_000
    # What a sentence encoder sees of a text: some 500 words, which take it .02 seconds.
    letters_encoded: int = 3_000
    # Fewer words tell no language.
    words_of_language: int = 500
    # Function words ("the", "and") are at least this share of all words of a text in
    # their language, and so many times the share of any other language's.
    function_words: float = 0.15
    clearly_more: float = 1.5

    # ---- where rows come from
    # A domain with fewer rows is thin; the second number gives about ±5 points at 90 %.
    thin: int = 30
    rows_for_five_points: int = 270
    # Fractions name something, such as a dose or a depth, if they are so few and each
    # is that of so many rows on average; others measure something.
    most_fractions: int = 20
    rows_of_a_fraction: int = 10
    # What could be meant as the domain has at most so many values.
    most_candidates: int = 200
    most_candidate_numbers: int = 20

    # ---- matrices and images
    # More columns than this are first made into components.
    wide: int = 50
    # An embedding with more identical rows than this share says nothing.
    identical: float = 0.5
    # More unreadable files than this share stop the reading.
    bad_share: float = 0.01
    # Format and size alone name the domain of this share of images: they leak it.
    leak: float = 0.95

    # ---- cytometry
    # Arcsinh is linear below so many units of light, or of counted ions (usual values).
    cofactor_light: float = 150.0
    cofactor_mass: float = 5.0

    # ---- classes of new rows
    # Rows whose best class has less than this probability are marked as unsure.
    unsure: float = 0.8
    # Rows stranger than all but this share of the training rows count as unlike them.
    unlike: float = 0.01

    # ---- memory
    # Rows of a batch, and bytes of pixels that a batch of images may take.
    batch_rows: int = 65_536
    pixel_bytes: int = 64 * 2**20
    # Reading keeps the columns, their encoding and the copies of a fit at once.
    copies: int = 4
    # The share of free memory that reading may count on.
    room: float = 0.8
    # Bytes of text that one number of a table takes, seen often.
    bytes_per_cell: float = 6.0
    # Of a workbook; a cell is an object of 200 bytes there, six numbers of ours.
    bytes_per_sheet_cell: float = 5.0
    # A packed file may become so many times its size (text is packed to a tenth, zeros
    # of a matrix to a hundredth; a thousandth says nothing), and a small one so much.
    most_unpacked: int = 100
    always_unpacked: int = 2**28
    # The first line of a text, 200,000 long names at most.
    longest_line: int = 2**25
    # Columns of a matrix: hashed words have 2^20. Of rows, so many for each number that
    # a sparse matrix holds, and so many more.
    most_columns: int = 2**22
    rows_per_entry: int = 100
    spare_rows: int = 100_000


READING = ReadingSettings()


@dataclass(frozen=True)
class LoadingSettings:
    """What one load of a model may take, whatever its folder asks for."""

    # Memory of what is decoded: so many bytes for each byte of the folder (class ids of
    # rows take one byte in a file and eight in memory, beside the file itself), and so
    # many more. Never more than the share `room` of the free memory.
    bytes_per_byte: int = 12
    more_bytes: int = 512 * 2**20
    # Values in all JSON trees together. A vocabulary of 100,000 rows of ten columns has
    # a million; each takes microseconds, and all of them stay below a minute.
    nodes: int = 4_000_000
    # An object costs as many as this: when it is asked for probabilities, it takes a
    # hundred times longer than a value takes to be read.
    nodes_per_object: int = 40
    # Trees of JSON go this deep: a fitted pipeline in a calibration has some sixty
    # levels, and Python itself ends at some three hundred.
    nesting: int = 150
    # Files of a folder: a model has one for each object of scikit-learn, a dozen.
    files: int = 1_000
    # The widest that anything may say it is (columns, classes, outputs): a few made-up
    # rows of this width are computed on loading.
    widest: int = 1_000_000
    # Classes: a matrix of classes by classes is decomposed for every answer, and twice
    # as many classes take eight times as long. Nobody looks at a thousand classes.
    classes: int = 1_000
    # Bytes of memory that a piece of JSON becomes at most, by its punctuation.
    json_bytes: tuple[tuple[bytes, int], ...] = (
        (b"{", 250),
        (b"[", 90),
        (b":", 200),
        (b",", 64),
    )


LOADING = LoadingSettings()
