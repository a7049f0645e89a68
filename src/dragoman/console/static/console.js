// What every page does: theme, menu, notes that close, questions before what cannot be undone.

const root = document.documentElement;

const isDark = () =>
  root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;

const switchTheme = () => {
  root.dataset.theme = isDark() ? "light" : "dark";
  localStorage.setItem("theme", root.dataset.theme);
};

const toggleMenu = (button) => {
  const open = document.body.classList.toggle("menu-open");
  button.setAttribute("aria-expanded", String(open));
};

const sure = (question) =>
  new Promise((resolve) => {
    const dialog = document.getElementById("ask");
    dialog.querySelector("p").textContent = question;
    dialog.querySelector("[value=yes]").textContent = question.split(/\s/)[0]; // the verb: "Remove github?"
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
    dialog.returnValue = "no";
    dialog.showModal();
  });

document.addEventListener("click", (event) => {
  const target = event.target.closest("[data-theme-switch], [data-menu], [data-close], [data-copy], [data-notify]");
  if (!target) {
    if (document.body.classList.contains("menu-open") && !event.target.closest("#side")) {
      document.body.classList.remove("menu-open");
    }
    return;
  }
  if (target.matches("[data-theme-switch]")) switchTheme();
  else if (target.matches("[data-menu]")) toggleMenu(target);
  else if (target.matches("[data-close]")) target.closest(".note").remove();
  else if (target.matches("[data-copy]")) navigator.clipboard.writeText(target.dataset.copy);
  else if (target.matches("[data-notify]")) switchNotifying();
});

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") document.body.classList.remove("menu-open");
});

// On a phone each row is a card, whose cells say what they are: see `.table` in style.css.
const nameCells = () => {
  for (const table of document.querySelectorAll(".table > table")) {
    // What only a screen reader is told needs no name on a card either.
    const names = [...(table.tHead?.rows[0]?.cells ?? [])].map((cell) => (cell.querySelector(".sr") ? "" : cell.textContent.trim()));
    for (const row of table.tBodies[0]?.rows ?? []) {
      for (const cell of row.cells) if (names[cell.cellIndex]) cell.dataset.label = names[cell.cellIndex];
    }
  }
};
document.addEventListener("htmx:after:swap", nameCells);
nameCells();

// Good news goes by itself, unless somebody points at it or is in it; what went wrong stays.
const GOES_AFTER = 10000;
const notes = document.getElementById("notes");
new MutationObserver((changes) => {
  for (const note of changes.flatMap((change) => [...change.addedNodes])) {
    if (!note.matches?.(".note.good")) continue;
    const leave = () => (note.matches(":hover, :focus-within") ? setTimeout(leave, 2000) : note.remove());
    setTimeout(leave, GOES_AFTER);
  }
}).observe(notes, { childList: true });

// What waits for this person stands in the title too, where another tab shows it, and is told if they want.
const notifyButton = document.querySelector("[data-notify]");
const wantsToKnow = () =>
  "Notification" in window && Notification.permission === "granted" && localStorage.getItem("notify") === "on";

const showNotifying = () => {
  notifyButton.hidden = !("Notification" in window);
  notifyButton.setAttribute("aria-pressed", String(wantsToKnow()));
  notifyButton.querySelector("span").textContent = wantsToKnow() ? "Notifications on" : "Notify me";
};

const switchNotifying = async () => {
  const wanted = !wantsToKnow();
  if (wanted) await Notification.requestPermission();
  localStorage.setItem("notify", wanted ? "on" : "off");
  showNotifying();
};

const waitingNow = () => document.querySelector("[data-waiting] .badge")?.firstChild.textContent ?? "";
let waitedFor = parseInt(waitingNow() || "0", 10);

const countWaiting = () => {
  const waiting = waitingNow();
  const title = document.title.replace(/^\(\d+\+?\) /, "");
  document.title = waiting ? `(${waiting}) ${title}` : title;
  const number = parseInt(waiting || "0", 10);
  if (number > waitedFor && document.hidden && wantsToKnow()) {
    const told = new Notification("Dragoman", { body: `${waiting} waiting for you`, tag: "dragoman-waiting" });
    told.onclick = () => {
      window.focus();
      location.assign("/approvals");
    };
  }
  waitedFor = number;
};
document.addEventListener("htmx:after:swap", countWaiting);
showNotifying();

// hx-confirm="Remove github?" is asked in the page's own dialog, also for the keyboard.
document.addEventListener("htmx:confirm", async (event) => {
  event.preventDefault();
  const { ctx, issueRequest, dropRequest } = event.detail;
  if (await sure(ctx.confirm)) issueRequest();
  else dropRequest();
});
