"""An ecologist: which birds live on which island, from a file as Excel saves it.

Semicolons, decimal commas, "-" and "n/a" where a value is missing: the file is read as
it is, and what was filled in is counted. The species were never written down; the
islands are enough.

    python 01_ecologist.py
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib

matplotlib.use("agg")

import shoal
from shoal.datasets import load_penguins
from shoal.io import read

birds = load_penguins(as_frame=True)
table = birds.X.assign(island=birds.domains)

with TemporaryDirectory() as folder:
    path = Path(folder) / "birds.csv"
    text = table.to_csv(sep=";", decimal=",", index=False).splitlines()
    text[3], text[7] = "-;18,0;n/a;3250;Torgersen", "39,2;19,6;-;n/a;Torgersen"
    path.write_text("\n".join(text) + "\n", encoding="utf-8")
    rows = read(path, domain="island")
for message in rows.messages:
    print(f"{message.code}: {message.text}")

model = shoal.DomainMixture(random_state=0).fit(rows.X, rows.domains)
print(model.n_classes_, "classes; share of each on every island:")
for island, mix in zip(model.domains_, model.prevalence_, strict=True):
    print(f"  {island:10}", " ".join(f"{share:4.0%}" for share in mix))

intervals = model.bootstrap(rows.X, rows.domains, n_resamples=100, random_state=0)
model.plot_prevalence(intervals).figure.savefig("01_ecologist.png", dpi=110)
