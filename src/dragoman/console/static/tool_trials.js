// Trying a tool: asked before it changes something, cancelled, its JSON as a tree, what was tried before.
// All of it is text that strangers wrote: nodes are made, no HTML is read.

const MOST = 20; // calls that are remembered
const LARGEST = 200_000; // characters of a result that is
const session = document.body.dataset.csrf ?? "";
const form = document.getElementById("try");
const tried = document.getElementById("tried");
const place = `trials:${session}:${tried?.dataset.tool}`;

const made = (name, facts = {}, ...inside) => {
  const node = Object.assign(document.createElement(name), facts);
  node.append(...inside);
  return node;
};

// Before it changes something: the page's own dialog, for the keyboard too.
let isSure = false;
document.addEventListener(
  "submit",
  (event) => {
    if (event.target !== form || !form.dataset.sure || isSure) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    const dialog = document.getElementById("ask");
    dialog.querySelector("p").textContent = form.dataset.sure;
    dialog.querySelector("[value=yes]").textContent = "Call it";
    dialog.returnValue = "no";
    dialog.addEventListener(
      "close",
      () => {
        if (dialog.returnValue !== "yes") return;
        isSure = true;
        form.requestSubmit();
        isSure = false;
      },
      { once: true },
    );
    dialog.showModal();
  },
  true,
);

const cancel = () => {
  form.dispatchEvent(new CustomEvent("htmx:abort"));
  tried.replaceChildren(made("p", { className: "note warn" }, "Cancelled. The server was told; what it did until then stays."));
};

// The tree: branches are filled as they are opened, so a large result costs nothing until then.
const word = (value) =>
  typeof value === "string"
    ? made("span", { className: "text" }, JSON.stringify(value))
    : made("span", { className: "word" }, String(value));

const copier = (value) => {
  const button = made("button", { type: "button", className: "quiet small" }, "Copy");
  button.dataset.copy = typeof value === "string" ? value : JSON.stringify(value, null, 2);
  return button;
};

const branch = (key, value, isOpen) => {
  const label = key === null ? [] : [made("span", { className: "key" }, String(key)), ": "];
  if (value === null || typeof value !== "object") return made("div", { className: "leaf" }, ...label, word(value), copier(value));
  const entries = Object.entries(value);
  const size = Array.isArray(value) ? `[${entries.length}]` : `{${entries.length}}`;
  const inside = made("div");
  const node = made("details", {}, made("summary", {}, ...label, size, copier(value)), inside);
  node.fill = () => {
    if (inside.childElementCount || !entries.length) return;
    for (const [name, one] of entries) inside.append(branch(name, one, false));
  };
  node.addEventListener("toggle", () => node.open && node.fill());
  if (isOpen) {
    node.fill();
    node.open = true;
  }
  return node;
};

const search = (tree, value, words) => {
  for (const old of tree.querySelectorAll(".hit")) old.classList.remove("hit");
  if (!words) return 0;
  const wanted = words.toLowerCase();
  let hits = 0;
  const fits = (text) => String(text).toLowerCase().includes(wanted);
  const holds = (one) =>
    one !== null && typeof one === "object" ? Object.entries(one).some(([name, inner]) => fits(name) || holds(inner)) : fits(one);
  const walk = (node, one) => {
    if (one === null || typeof one !== "object") return;
    node.fill();
    [...node.querySelector(":scope > div").children].forEach((child, at) => {
      if (hits > 500) return;
      const [name, inner] = Object.entries(one)[at];
      const line = child.matches("details") ? child.querySelector("summary") : child;
      const isLeaf = inner === null || typeof inner !== "object";
      if (fits(name) || (isLeaf && fits(inner))) {
        hits += 1;
        line.classList.add("hit");
      }
      if (!isLeaf && holds(inner)) {
        child.open = true;
        walk(child, inner);
      }
    });
  };
  if (tree.firstElementChild?.matches("details")) walk(tree.firstElementChild, value);
  tree.querySelector(".hit")?.scrollIntoView({ block: "nearest" });
  return hits;
};

const grow = () => {
  for (const raw of document.querySelectorAll("pre[data-json]")) {
    raw.removeAttribute("data-json");
    let value;
    try {
      value = JSON.parse(raw.textContent);
    } catch {
      continue; // only its beginning is here
    }
    const tree = made("div", { className: "json-tree", tabIndex: 0 }, branch(null, value, true));
    tree.setAttribute("role", "region");
    tree.setAttribute("aria-label", "Result as a tree");
    const count = made("span", { className: "soft", role: "status" });
    const box = made("input", { type: "search", placeholder: "Search the result" });
    box.setAttribute("aria-label", "Search the result");
    box.addEventListener("input", () => {
      const hits = search(tree, value, box.value.trim());
      count.textContent = box.value.trim() ? `${hits > 500 ? "over 500" : hits} found` : "";
    });
    const swap = made("button", { type: "button", className: "quiet small" }, "Raw");
    swap.addEventListener("click", () => {
      raw.hidden = !raw.hidden;
      tree.hidden = !tree.hidden;
      swap.textContent = raw.hidden ? "Raw" : "Tree";
    });
    raw.hidden = true;
    raw.before(made("div", { className: "json-bar" }, box, count, swap), tree);
  }
};

// What was tried in this tab, until it is closed; another session's is gone.
const remembered = () => {
  try {
    return JSON.parse(sessionStorage.getItem(place) ?? "[]");
  } catch {
    return [];
  }
};

const note = () => {
  const trial = tried?.querySelector("[data-trial]:not([data-noted])");
  if (!trial) return;
  trial.dataset.noted = "";
  const shown = tried.querySelector(".json-view pre") ?? tried.querySelector("pre, .note");
  const result = (shown?.textContent ?? "").slice(0, LARGEST);
  const { ok, took, arguments: given } = trial.dataset;
  const all = [{ at: Date.now(), ok: ok === "yes", took, given, result }, ...remembered()].slice(0, MOST);
  try {
    sessionStorage.setItem(place, JSON.stringify(all));
  } catch {
    sessionStorage.setItem(place, JSON.stringify(all.slice(0, 1).map((one) => ({ ...one, result: "" }))));
  }
  show();
};

const show = () => {
  const card = document.getElementById("history");
  if (!card) return;
  const all = remembered();
  card.hidden = !all.length;
  card.querySelector("ol").replaceChildren(
    ...all.map((one, at) => {
      const when = new Date(one.at);
      const time = made("time", { dateTime: when.toISOString(), title: when.toLocaleString() }, when.toLocaleTimeString());
      const state = made("span", { className: `state ${one.ok ? "good" : "bad"}` }, made("i"), one.ok ? "ok" : "failed");
      const fill = made("button", { type: "button", className: "small" }, "Replay");
      fill.addEventListener("click", () => replay(one));
      const buttons = made("span", { className: "row" }, fill);
      if (at) {
        const compare = made("button", { type: "button", className: "quiet small" }, "Compare with latest");
        compare.addEventListener("click", () => differ(one, all[0]));
        buttons.append(compare);
      }
      const line = made("span", { className: "row" }, time, state, made("span", { className: "soft" }, one.took));
      const given = made("code", { title: one.given }, one.given.replace(/\s+/g, " "));
      return made("li", {}, made("div", {}, line, given), buttons);
    }),
  );
};

// The form as it was then; the person calls it, and is asked as always.
const replay = async (one) => {
  const values = { as: "json", json: one.given };
  const address = `/tools/${encodeURIComponent(tried.dataset.tool)}/form?do=form`;
  await window.htmx.ajax("POST", address, { target: "#try", swap: "innerMorph", values });
  form.scrollIntoView({ block: "start" });
  form.querySelector("button.primary")?.focus();
};

// Lines that went and came, by the longest common sequence; too many are not compared.
const differ = (before, after) => {
  const [old, now] = [before.result.split("\n"), after.result.split("\n")];
  const box = made("pre", { className: "diff", tabIndex: 0 });
  box.setAttribute("role", "region");
  box.setAttribute("aria-label", "What differs");
  document.getElementById("compared").replaceChildren(box);
  if (before.result === after.result) return box.append("Both results are the same.");
  if (old.length * now.length > 4_000_000) return box.append("These results are too large to compare here.");
  const longest = Array.from({ length: old.length + 1 }, () => new Uint32Array(now.length + 1));
  for (let i = old.length - 1; i >= 0; i -= 1)
    for (let j = now.length - 1; j >= 0; j -= 1)
      longest[i][j] = old[i] === now[j] ? longest[i + 1][j + 1] + 1 : Math.max(longest[i + 1][j], longest[i][j + 1]);
  const tell = (sign, line, kind) => box.append(made("span", { className: kind }, `${sign} ${line}\n`));
  let [i, j] = [0, 0];
  while (i < old.length || j < now.length) {
    if (i < old.length && j < now.length && old[i] === now[j]) [tell(" ", old[i], ""), (i += 1), (j += 1)];
    else if (j < now.length && (i === old.length || longest[i][j + 1] > longest[i + 1][j])) [tell("+", now[j], "plus"), (j += 1)];
    else [tell("-", old[i], "minus"), (i += 1)];
  }
};

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-cancel]")) cancel();
  else if (event.target.closest("[data-forget]")) {
    sessionStorage.removeItem(place);
    document.getElementById("compared").replaceChildren();
    show();
  }
});
for (const key of Object.keys(sessionStorage))
  if (key.startsWith("trials:") && !key.startsWith(`trials:${session}:`)) sessionStorage.removeItem(key);
document.addEventListener("htmx:after:swap", () => {
  grow();
  note();
});
show();
