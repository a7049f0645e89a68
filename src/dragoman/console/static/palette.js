// Ctrl-K: a search over everything, by keyboard. And shortcuts, with a page of help that lists them.

const palette = document.getElementById("palette");
const field = document.getElementById("palette-q");
const found = document.getElementById("palette-found");
const help = document.getElementById("shortcuts");

const items = () => [...found.querySelectorAll("[role=option]")];
const chosen = () => found.querySelector("[aria-selected=true]");

const choose = (item) => {
  chosen()?.setAttribute("aria-selected", "false");
  if (item) {
    item.setAttribute("aria-selected", "true");
    item.scrollIntoView({ block: "nearest" });
  }
  field.setAttribute("aria-activedescendant", item?.id ?? "");
};

const move = (by) => {
  const all = items();
  const place = all.indexOf(chosen()) + by;
  choose(all[(place + all.length) % all.length]);
};

const search = () => palette.dispatchEvent(new CustomEvent("palette:search"));

const open = () => {
  if (palette.open) return;
  document.body.classList.remove("menu-open");
  for (const dialog of document.querySelectorAll("dialog[open]")) dialog.close();
  field.value = "";
  const all = palette.querySelector("[name=kind]");
  if (all) all.checked = true;
  palette.showModal();
  field.focus();
  search();
};

// An action is sent as the page's own buttons send theirs; what came of it is told at the top of the page.
const send = (item) => {
  const values = JSON.parse(item.dataset.post);
  htmx.ajax("POST", item.getAttribute("href"), { source: document.body, swap: "none", values });
};

const go = (item, elsewhere) => {
  if (!item) return;
  if (item.dataset.post !== undefined) {
    palette.close();
    send(item);
  } else if (elsewhere) window.open(item.href, "_blank", "noopener");
  else location.assign(item.href);
};

palette.addEventListener("keydown", (event) => {
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    if (event.target.matches("[type=radio]")) return;
    event.preventDefault();
    move(event.key === "ArrowDown" ? 1 : -1);
  } else if (event.key === "Enter" && !event.isComposing) {
    event.preventDefault();
    go(chosen(), event.ctrlKey || event.metaKey);
  }
});

palette.addEventListener("click", (event) => {
  const item = event.target.closest("[data-post]");
  if (item) {
    event.preventDefault();
    go(item);
  } else if (event.target === palette || event.target.closest("[data-palette-close]")) palette.close();
});

palette.addEventListener("htmx:after:swap", () => choose(items()[0]));

// Shortcuts. Those of one key alone can be switched off: some people's voices and hands press keys.

const PLACES = {
  o: "/", c: "/chat", r: "/runs", a: "/approvals", n: "/connectors", t: "/tools", g: "/agents", m: "/charts",
  l: "/log", s: "/settings",
};
const areOn = () => localStorage.getItem("shortcuts") !== "off";
let isLeading = 0; // until when the key after G is awaited

const isTyping = (target) => target.closest?.("input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable=true]");

const focusSearch = () => {
  const search = document.querySelector("main input[type=search], main [role=search] input");
  search?.focus();
  search?.select?.();
  return Boolean(search);
};

const pressed = (event) => {
  if (isLeading > Date.now()) {
    isLeading = 0;
    const place = PLACES[event.key.toLowerCase()];
    if (place) location.assign(place);
    return Boolean(place);
  }
  switch (event.key) {
    case "?":
      help.showModal();
      return true;
    case "/":
      return focusSearch();
    case "g":
      isLeading = Date.now() + 1500;
      return true;
    case "c":
      location.assign("/chat");
      return true;
    default:
      return false;
  }
};

document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === "k") {
    event.preventDefault();
    if (palette.open) palette.close();
    else open();
    return;
  }
  const isBusy = event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]");
  if (isBusy || !areOn() || isTyping(event.target)) return;
  if (pressed(event)) event.preventDefault();
});

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-palette]")) open();
  else if (event.target.closest("[data-shortcuts]")) {
    palette.close();
    help.showModal();
  } else if (event.target === help) help.close();
});

const single = document.getElementById("single-keys");
single.checked = areOn();
single.addEventListener("change", () => localStorage.setItem("shortcuts", single.checked ? "on" : "off"));
