"use strict";
(() => {
  const get = (id) => document.getElementById(id);
  const parts = ["choose", "ask", "running", "stopped", "result"];
  let job = null; // the id of the table at hand
  let timer = 0;
  let maxMb = 200;

  // ---- words of the commands, for those who have no terminal and no folders ---------
  const plain = (text) => text.replace(/"[^"]*[/\\]\d{8}-\d{6}-[0-9a-f]{6}[/\\]/g, '"');
  // a hint may name several ways; those that are options of a command are none here
  const advice = (hint) => (hint ?? "").replace(/ \([^()]*--[^()]*\)/g, "")
    .split(/, or |; /).filter((way) => !way.includes("--")).join("; ");

  // ---- speaking with the server ----------------------------------------------------
  async function ask(path, options = {}) {
    let response;
    try {
      response = await fetch(path, options);
    } catch {
      throw new Error("The page's server does not answer: was it stopped? Start it again with shoal app.");
    }
    const content = await response.json().catch(() => ({}));
    if (!response.ok) {
      const { code, text, hint } = content.error ?? { text: response.statusText };
      throw new Error([code && `${code}:`, plain(text), advice(hint) && `(${advice(hint)})`].filter(Boolean).join(" "));
    }
    return content;
  }
  const post = (path, content) => ask(path, { method: "POST", body: JSON.stringify(content ?? {}) });

  function complain(error) {
    get("error").textContent = error ? error.message ?? error : "";
    get("error").hidden = !error;
    if (error) get("error").scrollIntoView({ block: "nearest" });
  }
  const doing = (work) => async (event) => {
    event?.preventDefault?.();
    complain(null);
    try { await work(event); } catch (error) { complain(error); }
  };

  function show(...names) {
    for (const name of parts) get(name).hidden = !names.includes(name);
  }
  function make(tag, text, attributes = {}) {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    return made;
  }
  const row = (cells, tag = "td") => {
    const made = make("tr");
    made.append(...cells.map((cell) => make(tag, cell)));
    return made;
  };

  // ---- 1. a table -----------------------------------------------------------------
  async function upload(file) {
    if (file.size > maxMb * 1e6) {
      throw new Error(`"${file.name}" has ${Math.ceil(file.size / 1e6)} MB; this page takes up to ${maxMb} MB: use shoal fit in a terminal.`);
    }
    get("reading").textContent = `Reading ${file.name} …`;
    try {
      const made = await ask(`tables/${encodeURIComponent(file.name)}`, { method: "PUT", body: file });
      location.hash = made.id;
    } finally {
      get("reading").textContent = "";
      get("file").value = "";
    }
  }
  get("file").addEventListener("change", doing(() => get("file").files.length && upload(get("file").files[0])));
  const drop = get("drop");
  for (const name of ["dragenter", "dragover"]) {
    drop.addEventListener(name, (event) => { event.preventDefault(); drop.classList.add("over"); });
  }
  drop.addEventListener("dragleave", () => drop.classList.remove("over"));
  drop.addEventListener("drop", doing((event) => {
    drop.classList.remove("over");
    if (event.dataTransfer.files.length > 1) throw new Error("One table at a time, please.");
    if (event.dataTransfer.files.length) return upload(event.dataTransfer.files[0]);
  }));

  const WORDS = { new: "not fitted yet", running: "being fitted", done: "done", failed: "stopped by a problem", cancelled: "cancelled", interrupted: "interrupted" };
  async function listJobs() {
    const { jobs, max_mb } = await ask("jobs");
    maxMb = max_mb;
    get("max-mb").textContent = max_mb;
    get("earlier").hidden = !jobs.length;
    get("jobs").replaceChildren(...jobs.map((one) => {
      const item = make("li");
      item.append(make("a", one.name, { href: `#${one.id}` }), ` (${WORDS[one.status]})`);
      return item;
    }));
  }

  // ---- 2. where a row comes from -----------------------------------------------------
  function choose(name) {
    get("domain").value = name;
    for (const radio of document.querySelectorAll("[name=candidate]")) radio.checked = radio.value === name;
    const head = [...get("preview").querySelectorAll("thead th")].map((cell) => cell.textContent);
    for (const line of get("preview").rows) {
      [...line.cells].forEach((cell, place) => cell.classList.toggle("chosen", head[place] === name));
    }
  }
  async function showAsk(known) {
    const table = await ask(`jobs/${job}/preview`);
    get("table-name").textContent = known.name;
    get("table-size").textContent = `${table.n_rows.toLocaleString("en")} rows, ${table.columns.length} columns`;
    const byName = Object.fromEntries(table.columns.map((one) => [one.name, one]));
    get("candidates").replaceChildren(get("candidates").querySelector("legend"), ...table.candidates.slice(0, 9).map((name) => {
      const card = make("label", undefined, { class: "candidate" });
      const { n_values, values } = byName[name];
      card.append(make("input", undefined, { type: "radio", name: "candidate", value: name }), make("strong", name),
        make("small", `${n_values} values: ${values.join(", ")}${n_values > values.length ? ", …" : ""}`));
      card.firstChild.addEventListener("change", () => choose(name));
      return card;
    }));
    get("candidates").hidden = !table.candidates.length;
    const options = (first) => [make("option", first, { value: "" }), ...table.columns.map((one) => make("option", one.name, { value: one.name }))];
    get("domain").replaceChildren(...options("choose …"));
    get("label").replaceChildren(...options("none"));
    const head = make("thead"), body = make("tbody");
    head.append(row(table.head, "th"));
    for (const cell of head.querySelectorAll("th")) cell.scope = "col";
    body.append(...table.rows.map((cells) => row(cells)));
    get("preview").replaceChildren(head, body);
    const before = known.options ?? {};
    get("label").value = before.label ?? (table.columns.find((one) => one.label)?.name ?? "");
    get("impute").value = before.impute ?? "";
    get("k").value = before.k ?? "";
    choose(before.domain ?? table.candidates[0] ?? "");
    show("choose", "ask");
    get("ask-title").scrollIntoView({ block: "start" });
  }
  get("domain").addEventListener("change", () => choose(get("domain").value));
  get("ask").addEventListener("submit", doing(async () => {
    const wanted = { domain: get("domain").value, label: get("label").value, impute: get("impute").value, k: get("k").value.trim() };
    await post(`jobs/${job}/fit`, wanted);
    await follow();
  }));

  // ---- 3. running ------------------------------------------------------------------
  async function follow() {
    clearTimeout(timer);
    const at = job;
    const known = await ask(`jobs/${at}`);
    if (at !== job) return;
    if (known.status === "running") {
      const { stage, stages, text } = known.progress;
      get("running-title").textContent = `3. Finding the classes in ${known.name}`;
      get("bar").max = stages;
      get("bar").value = Math.max(stage - 0.5, 0.1);
      const said = `Step ${stage} of ${stages}: ${text}`;
      if (get("stage").textContent !== said) get("stage").textContent = said;
      get("cancel").disabled = false;
      show("running");
      timer = setTimeout(doing(follow), 700);
    } else if (known.status === "done") {
      showResult(known);
    } else if (known.status === "new") {
      await showAsk(known);
    } else {
      showStopped(known);
    }
  }
  get("cancel").addEventListener("click", doing(async () => {
    get("cancel").disabled = true;
    await post(`jobs/${job}/cancel`);
    await follow();
  }));

  function showStopped(known) {
    const message = known.messages.find((one) => one.level === "error");
    const heads = { failed: "It stopped", cancelled: "Cancelled", interrupted: "Interrupted" };
    get("stopped-title").textContent = `${heads[known.status]}: ${known.name}`;
    get("stopped-text").textContent = message ? `${message.code}: ${plain(message.text)}` : { cancelled: "Nothing was kept of this run.", interrupted: "The page was stopped while this table was being fitted." }[known.status] ?? "";
    get("stopped-hint").textContent = advice(message?.hint);
    show("choose", "stopped");
  }
  for (const id of ["again", "refit"]) {
    get(id).addEventListener("click", doing(async () => showAsk(await ask(`jobs/${job}`))));
  }

  // ---- 4. the result -----------------------------------------------------------------
  const VERDICTS = { clear: ["clear", "✓ Clear: no check found a sign of a problem"], caution: ["caution", "⚠ Use with caution"], "do not use": ["bad", "✕ Do not use"] };
  const FILES = { "report.html": "Report", "prevalence.csv": "Shares", "assignments.csv": "Class of every row", "results.zip": "Everything" };
  function showResult(known) {
    const [kind, words] = VERDICTS[known.verdict] ?? ["", known.verdict];
    get("result-title").textContent = `${known.classes.length} classes in ${known.name}`;
    get("verdict").textContent = words;
    get("verdict").className = `verdict ${kind}`;
    const ended = (text) => text && (/[.!?]$/.test(text) ? text : `${text}.`);
    const capital = (text) => text && text[0].toUpperCase() + text.slice(1);
    const remarks = [known.evidence, ...known.messages.map(({ text, hint }) => [plain(text), capital(advice(hint))].map(ended).join(" "))];
    get("remarks").replaceChildren(...remarks.map((text) => make("li", text)));
    const names = Object.fromEntries(known.classes.map((one) => [one.id, one.name]));
    const head = make("thead"), body = make("tbody");
    head.append(row([known.options.domain, "rows", ...known.classes.map((one) => names[one.id])], "th"));
    const domains = new Map();
    for (const one of known.prevalence) {
      if (!domains.has(one.domain)) domains.set(one.domain, [one.n_rows]);
      const between = one.lo === null ? "" : ` (${Math.round(100 * one.lo)}–${Math.round(100 * one.hi)})`;
      domains.get(one.domain).push(`${Math.round(100 * one.estimate)}%${between}`);
    }
    for (const [domain, cells] of domains) {
      const line = make("tr");
      line.append(make("th", domain, { scope: "row" }), ...cells.map((cell) => make("td", cell, { class: "num" })));
      body.append(line);
    }
    for (const cell of head.querySelectorAll("th")) cell.scope = "col";
    get("mix").replaceChildren(head, body);
    get("names").replaceChildren(...known.classes.map((one) => {
      const field = make("label", one.id);
      field.append(make("input", undefined, { name: one.id, value: one.name, autocomplete: "off", placeholder: one.suggestion ?? "" }));
      return field;
    }), make("button", "Save names", { class: "primary" }));
    get("named").textContent = "";
    const link = (name, text) => make("a", text, { href: `jobs/${job}/files/${encodeURIComponent(name)}`, download: name });
    const rest = known.files.filter((name) => name !== "run.json" && !(name in FILES));
    get("files").replaceChildren(...Object.entries(FILES)
      .filter(([name]) => name === "results.zip" || known.files.includes(name))
      .map(([name, text]) => link(name, `${text} (${name})`)));
    get("more-files").replaceChildren(...rest.map((name) => link(name, name)));
    const address = `jobs/${job}/report.html`;
    get("open-report").href = address;
    get("report").src = `${address}?${Date.now()}`; // names may have changed
    show("result");
    get("result-title").focus();
  }
  get("names").addEventListener("submit", doing(async () => {
    const given = Object.fromEntries(new FormData(get("names")));
    get("named").textContent = "Saving …";
    try {
      await post(`jobs/${job}/names`, given);
    } catch (error) {
      get("named").textContent = "";
      throw error;
    }
    showResult(await ask(`jobs/${job}`));
    get("named").textContent = "Saved in the model, the tables and the report.";
  }));
  get("forget").addEventListener("click", doing(async () => {
    await ask(`jobs/${job}`, { method: "DELETE" });
    location.hash = "";
  }));
  for (const button of document.querySelectorAll("[data-back]")) {
    button.addEventListener("click", () => { location.hash = ""; });
  }

  // ---- which table: each tab has its own, by the address ---------------------------------
  const route = doing(async () => {
    clearTimeout(timer);
    job = decodeURIComponent(location.hash.slice(1)) || null;
    await listJobs();
    if (job) await follow();
    else show("choose");
  });
  addEventListener("hashchange", route);
  route();
})();
