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
  const target = event.target.closest("[data-theme-switch], [data-menu], [data-close], [data-copy]");
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
});

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") document.body.classList.remove("menu-open");
});

// On a phone each row is a card, whose cells say what they are: see `.table` in style.css.
const nameCells = () => {
  for (const table of document.querySelectorAll(".table > table")) {
    const names = [...(table.tHead?.rows[0]?.cells ?? [])].map((cell) => cell.textContent.trim());
    for (const row of table.tBodies[0]?.rows ?? []) {
      for (const cell of row.cells) if (names[cell.cellIndex]) cell.dataset.label = names[cell.cellIndex];
    }
  }
};
document.addEventListener("htmx:after:swap", nameCells);
nameCells();

// What waits for this person stands in the title too, where another tab shows it.
const countWaiting = () => {
  const waiting = document.querySelector("[data-waiting] .badge");
  const title = document.title.replace(/^\(\d+\+?\) /, "");
  document.title = waiting ? `(${waiting.firstChild.textContent}) ${title}` : title;
};
document.addEventListener("htmx:after:swap", countWaiting);

// hx-confirm="Remove github?" is asked in the page's own dialog, also for the keyboard.
document.addEventListener("htmx:confirm", async (event) => {
  event.preventDefault();
  const { ctx, issueRequest, dropRequest } = event.detail;
  if (await sure(ctx.confirm)) issueRequest();
  else dropRequest();
});
