"use strict";
(() => {
  const results = JSON.parse(document.getElementById("results").textContent);
  const names = Object.fromEntries(results.classes.map((c) => [c.id, c.name]));
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  // ---- names: typed once, shown everywhere ------------------------------------
  const withNames = (text) =>
    text.replace(/\{(c\d+)\}/g, (found, id) => names[id] ?? found);

  function showNames() {
    for (const place of all("[data-name]")) place.textContent = names[place.dataset.name];
    for (const place of all("[data-text]")) place.textContent = withNames(place.dataset.text);
  }

  function complaint() {
    const given = Object.values(names).map((name) => name.trim());
    if (given.some((name) => !name)) return "Every class needs a name.";
    if (new Set(given).size < given.length) return "Two classes have the same name.";
    return "";
  }

  for (const field of all("[data-class-name]")) {
    field.addEventListener("input", () => {
      names[field.dataset.className] = field.value.trim();
      showNames();
      document.getElementById("naming-status").textContent = complaint();
    });
  }
  for (const button of all("[data-suggest]")) {
    button.addEventListener("click", () => {
      const field = document.querySelector(`[data-class-name="${button.dataset.suggest}"]`);
      field.value = button.dataset.nameSuggested;
      field.dispatchEvent(new Event("input"));
      field.focus();
    });
  }

  // ---- files ------------------------------------------------------------------
  const cell = (value) => {
    const text = value === null || value === undefined ? "" : String(value);
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };

  function prevalenceTable() {
    const { estimate, low, high, level } = results.prevalence;
    const lines = [["domain", "class_id", "class_name", "estimate", "lo", "hi", "level", "n_rows", "flag"]];
    results.domains.forEach((domain, d) =>
      results.classes.forEach((group, y) =>
        lines.push([domain.name, group.id, names[group.id], estimate[d][y],
          low && low[d][y], high && high[d][y], level, domain.rows, domain.thin ? "thin" : ""])));
    return lines.map((line) => line.map(cell).join(",")).join("\n") + "\n";
  }

  function renamedResults() {
    const classes = results.classes.map((c) => ({ ...c, name: names[c.id] }));
    return JSON.stringify({ ...results, classes }, null, 1);
  }

  const files = {
    "names.json": () => JSON.stringify(names, null, 2) + "\n",
    "prevalence.csv": prevalenceTable,
    "results.json": renamedResults,
  };

  function download(name) {
    const kind = name.endsWith(".csv") ? "text/csv" : "application/json";
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([files[name]()], { type: kind }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  for (const button of all("[data-download]")) {
    button.addEventListener("click", () => {
      const naming = button.dataset.download === "names.json";
      const status = document.getElementById("naming-status");
      if (naming && complaint()) {
        status.textContent = complaint();
        return;
      }
      download(button.dataset.download);
      if (naming) {
        status.textContent = "names.json is in your downloads: move it to where you run the line above, or give its path there.";
      }
    });
  }

  for (const button of all("[data-copy]")) {
    button.addEventListener("click", async () => {
      const source = document.getElementById(button.dataset.copy);
      try {
        await navigator.clipboard.writeText(source.textContent);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(source); // the reader presses Ctrl-C
      }
    });
  }

  // ---- tables: sort by any column, find a domain ---------------------------------
  const valueOf = (row, column) => {
    const value = row.cells[column].dataset.value ?? row.cells[column].textContent;
    const number = Number(value);
    return value !== "" && !Number.isNaN(number) ? number : value;
  };

  function compare(a, b) {
    if (typeof a === "number" && typeof b === "number") return a - b;
    return String(a).localeCompare(String(b), undefined, { numeric: true });
  }

  for (const table of all("table.sortable")) {
    const heads = all("thead th", table);
    heads.forEach((head, column) =>
      head.querySelector("button").addEventListener("click", () => {
        // Numbers are wanted from the top first, names from A.
        const first = head.classList.contains("num") ? "descending" : "ascending";
        const other = first === "ascending" ? "descending" : "ascending";
        const order = head.getAttribute("aria-sort") === first ? other : first;
        heads.forEach((h) => h.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", order);
        const sign = order === "ascending" ? 1 : -1;
        const body = table.tBodies[0];
        const rows = [...body.rows];
        rows.sort((a, b) => sign * compare(valueOf(a, column), valueOf(b, column)));
        body.append(...rows);
      }));
  }

  for (const field of all("[data-filter]")) {
    field.addEventListener("input", () => {
      const wanted = field.value.trim().toLowerCase();
      for (const row of document.getElementById(field.dataset.filter).tBodies[0].rows) {
        row.hidden = !row.cells[0].dataset.value.toLowerCase().includes(wanted);
      }
    });
  }

  // ---- one class at a time --------------------------------------------------------
  function highlight(id) {
    document.body.classList.toggle("dimmed", id !== null);
    for (const mark of all("[data-class]")) mark.classList.toggle("lit", mark.dataset.class === id);
  }

  for (const key of all(".key[data-class]")) {
    key.addEventListener("mouseenter", () => highlight(key.dataset.class));
    key.addEventListener("focus", () => highlight(key.dataset.class));
    key.addEventListener("mouseleave", () => highlight(null));
    key.addEventListener("blur", () => highlight(null));
  }

  // ---- values of pictures: under the pointer, and by arrow keys ---------------------
  const tip = document.getElementById("tip");
  const spoken = (mark) => mark.querySelector("title")?.textContent;

  function showTip(mark, x, y) {
    tip.textContent = spoken(mark);
    tip.hidden = false;
    const { width, height } = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(x + 12, innerWidth - width - 4))}px`;
    tip.style.top = `${y + 18 + height > innerHeight ? y - height - 10 : y + 18}px`;
  }

  for (const picture of all("svg.picture")) {
    const marks = () => all(".row", picture).filter((m) => spoken(m) && m.checkVisibility());
    if (!all(".row", picture).length) continue;
    picture.setAttribute("tabindex", "0");
    let at = -1;
    const choose = (place) => {
      const seen = marks();
      for (const mark of all(".now", picture)) mark.classList.remove("now");
      at = seen.length ? (place + seen.length) % seen.length : -1;
      if (at < 0) return;
      seen[at].classList.add("now");
      const box = seen[at].getBoundingClientRect();
      showTip(seen[at], box.left + box.width / 2, box.top + box.height / 2);
    };
    const leave = () => {
      for (const mark of all(".now", picture)) mark.classList.remove("now");
      tip.hidden = true;
    };
    picture.addEventListener("focus", () => picture.matches(":focus-visible") && choose(Math.max(at, 0)));
    picture.addEventListener("blur", leave);
    picture.addEventListener("keydown", (event) => {
      const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
      if (event.key === "Escape") leave();
      if (!step) return;
      event.preventDefault();
      choose(at + step);
    });
    picture.addEventListener("pointermove", (event) => {
      const mark = event.target.closest(".row");
      if (mark && spoken(mark)) showTip(mark, event.clientX, event.clientY);
      else tip.hidden = true;
    });
    picture.addEventListener("pointerleave", () => { tip.hidden = true; });
  }

  // ---- pictures ---------------------------------------------------------------
  const box = document.getElementById("lightbox");
  for (const button of all(".thumb")) {
    button.addEventListener("click", () => {
      box.querySelector("img").src = button.querySelector("img").src;
      box.querySelector("img").alt = button.title;
      box.querySelector("p").textContent = button.title;
      box.showModal();
    });
  }
})();
