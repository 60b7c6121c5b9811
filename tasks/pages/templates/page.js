"use strict";
// Tables that sort, filter and export, and values of marks on hover. Without it all content is there. Texts that come
// from the page are only ever set as text, and nothing is fetched.
const made = (tag, text, properties = {}) => Object.assign(document.createElement(tag), {textContent: text}, properties);
const folded = node => node.nodeName === "DETAILS";
const lines = cell => [...cell.childNodes].filter(node => !folded(node)).map(node => node.textContent.trim()).filter(Boolean);
// What a cell is sorted by: what Python wrote there, or its text where that is a number.
const plain = text => /^[+−-]?\d+(\.\d+)?$/.test(text) ? text.replace("−", "-") : "";
const number = cell => parseFloat(cell.dataset.sort ?? plain(lines(cell)[0] ?? ""));
const fixed = row => row.classList.contains("reference");

function grid(table) {
  const rows = [...table.tBodies[0].rows].filter(row => !row.hidden);
  const head = [...table.tHead.rows[table.tHead.rows.length - 1].cells].map(cell => cell.dataset.name);
  return [head, ...rows.map(row => [...row.cells].map(cell => lines(cell.querySelector(".name") ?? cell).join("; ").replaceAll("; ±", " ±")))];
}

const ascii = table => grid(table).map(row => row.map(text => text.replaceAll("−", "-")));
const quoted = text => /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
const SPECIAL = {"\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}", "ε": "$\\varepsilon$",
  "δ": "$\\delta$", "β": "$\\beta$", "∞": "$\\infty$", "±": "$\\pm$", "−": "$-$", "≥": "$\\geq$", "≤": "$\\leq$", "–": "--",
  "↑": "$\\uparrow$", "↓": "$\\downarrow$", "✓": "$\\checkmark$", "✗": "$\\times$", "σ": "$\\sigma$", "×": "$\\times$", "<": "$<$", ">": "$>$"};
const tex = text => text.replace(/[\\~^εδβ∞±−≥≤–↑↓✓✗σ×<>]|[&%$#_{}]/g, sign => SPECIAL[sign] ?? `\\${sign}`);

const FORMATS = {
  CSV: table => ascii(table).map(row => row.map(quoted).join(",")).join("\n") + "\n",
  JSON: table => {
    const [head, ...rows] = ascii(table);
    const record = row => Object.fromEntries(row.map((text, place) => [head[place] || "name", text]));
    return JSON.stringify({caption: table.dataset.caption, revision: document.body.dataset.revision, rows: rows.map(record)}, null, 1);
  },
  LaTeX: table => {
    const [head, ...rows] = grid(table);
    const line = row => row.map(tex).join(" & ") + " \\\\";
    const caption = `${table.dataset.caption}. ${document.title}, revision ${document.body.dataset.revision}.`;
    return ["% needs \\usepackage{booktabs,amssymb}", "\\begin{table}", `\\caption{${tex(caption)}}`,
      `\\begin{tabular}{l${"r".repeat(head.length - 1)}}`, "\\toprule", line(head), "\\midrule", ...rows.map(line),
      "\\bottomrule", "\\end{tabular}", "\\end{table}", ""].join("\n");
  },
};
const ENDS = {CSV: "csv", JSON: "json", LaTeX: "tex"};

function save(name, text) {
  const link = made("a", "", {download: name, href: URL.createObjectURL(new Blob([text], {type: "text/plain"}))});
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function copy(text, button) {
  const area = made("textarea", text);
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  button.textContent = done ? "copied" : "not copied";
  setTimeout(() => { button.textContent = "Copy"; }, 1500);
}

function sort(table, place, heading) {
  const down = heading.ariaSort === "ascending";
  for (const other of heading.parentElement.cells) other.removeAttribute("aria-sort");
  heading.ariaSort = down ? "descending" : "ascending";
  const body = table.tBodies[0], rows = [...body.rows];
  const key = new Map(rows.map(row => [row, "numeric" in heading.dataset ? number(row.cells[place]) : NaN]));
  const text = row => lines(row.cells[place]).join(" ");
  const by = (a, b) => {
    const [x, y] = [key.get(a), key.get(b)];
    if (Number.isNaN(x) && Number.isNaN(y)) return (down ? -1 : 1) * text(a).localeCompare(text(b), undefined, {numeric: true});
    if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) ? 1 : -1; // what has no value stands last
    return (down ? -1 : 1) * (x === y ? 0 : x - y);
  };
  body.append(...rows.filter(fixed), ...rows.filter(row => !fixed(row)).sort(by));
}

// Filters of rows that say their ε, whether they are better than noisy popularity, and of which data they are.
const BANDS = {"any ε": () => true, "ε ≤ 1": at => at <= 1, "1 < ε ≤ 10": at => at > 1 && at <= 10, "ε > 10": at => at > 10 && at < Infinity};
const CHECKS = {"finite ε": row => Number(row.dataset.epsilon) < Infinity, "higher mean than noisy popularity": row => row.dataset.above === "1",
  "real data": row => row.dataset.real === "1"};

function filters(rows, apply) {
  if (!rows.some(row => row.dataset.epsilon)) return {elements: [], shows: () => true};
  const band = made("select", "", {ariaLabel: "Band of ε"});
  band.append(...Object.keys(BANDS).map(name => made("option", name)));
  band.addEventListener("change", apply);
  const checks = Object.entries(CHECKS).filter(([, holds]) => rows.some(holds) && !rows.every(holds)).map(([name, holds]) => {
    const box = made("input", "", {type: "checkbox"}), label = made("label", ` ${name}`);
    label.prepend(box);
    box.addEventListener("change", apply);
    return {box, label, holds};
  });
  const shows = row => BANDS[band.value](Number(row.dataset.epsilon)) && checks.every(({box, holds}) => !box.checked || holds(row));
  return {elements: [band, ...checks.map(({label}) => label)], shows};
}

function tools(table) {
  const bar = made("div", "", {className: "tools"});
  const search = made("input", "", {type: "search", placeholder: "filter rows", ariaLabel: `Filter rows of: ${table.dataset.caption}`});
  const label = made("label", " only complete rows"), complete = made("input", "", {type: "checkbox"});
  label.prepend(complete);
  const apply = () => {
    const wanted = search.value.toLowerCase();
    for (const row of table.tBodies[0].rows) {
      const lacking = complete.checked && !fixed(row) && row.querySelector("td.missing");
      const long = row.querySelector(".clipped");
      if (long) long.textContent = long.title ||= long.textContent;
      const text = [...row.cells].flatMap(lines).join(" ").toLowerCase();
      row.hidden = Boolean(lacking) || !text.includes(wanted) || !more.shows(row) || ("found" in table.dataset && !wanted);
      // Of a long text what is looked for is seen.
      if (long && !row.hidden) long.textContent = long.title.slice(Math.max(long.title.toLowerCase().indexOf(wanted) - 30, 0));
    }
  };
  const more = filters([...table.tBodies[0].rows], apply);
  apply();
  search.addEventListener("input", apply);
  complete.addEventListener("change", apply);
  if (table.tBodies[0].rows.length > 2) bar.append(search, label, ...more.elements); // fewer are seen at a glance
  for (const [format, write] of Object.entries(FORMATS)) {
    const button = made("button", format, {type: "button", title: `Download these rows as ${format}`});
    button.addEventListener("click", () => save(`${table.id}.${ENDS[format]}`, write(table)));
    bar.append(button);
  }
  const button = made("button", "Copy", {type: "button", title: "Copy these rows, to be pasted into a spreadsheet"});
  button.addEventListener("click", () => copy(ascii(table).map(row => row.join("\t")).join("\n"), button));
  bar.append(button, made("a", "#", {href: `#${table.id}`, title: "Link to this table", ariaLabel: "Link to this table"}));
  table.parentElement.before(bar);
  const head = table.tHead.rows[table.tHead.rows.length - 1];
  [...head.cells].forEach((heading, place) => {
    const order = made("button", "", {type: "button", className: "sort"});
    heading.dataset.name = [heading.dataset.group, heading.textContent].filter(Boolean).join(": ");
    if (!heading.textContent) return; // a button without a name says nothing
    order.append(...heading.childNodes);
    heading.replaceChildren(order);
    order.addEventListener("click", () => sort(table, place, heading));
  });
  for (const row of table.tBodies[0].rows) {
    const heading = row.cells[0], name = made("span", "", {className: "name"});
    name.append(...[...heading.childNodes].filter(node => !folded(node)));
    heading.prepend(name, made("a", "#", {href: `#${row.id}`, className: "row-link", title: "Link to this row", ariaLabel: "Link to this row"}));
  }
}

document.querySelectorAll("table:not(.plain)").forEach(tools);

// A link to something that is folded or filtered out shows it.
function linked() {
  try {
    return document.getElementById(decodeURIComponent(location.hash.slice(1)));
  } catch { // no text is encoded so
    return null;
  }
}
function reveal() {
  const target = linked();
  if (target === null) return;
  if (target.nodeName === "TR") target.hidden = false;
  for (let fold = target.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  target.scrollIntoView();
}
addEventListener("hashchange", reveal);
reveal();

const tip = made("div", "", {className: "tip", hidden: true});
document.body.append(tip);
document.addEventListener("pointerover", event => {
  const text = event.target.closest?.("svg [data-text]")?.dataset.text ?? "";
  tip.hidden = !text;
  tip.textContent = text;
  tip.style.left = `${Math.min(event.clientX + 12, innerWidth - tip.offsetWidth - 8)}px`;
  tip.style.top = `${event.clientY + 14}px`;
});
