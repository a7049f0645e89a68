// Lists of which several can be chosen: the bar with what to do with them. What is chosen outlives a refresh.

const bar = document.getElementById("bulk");
const chosen = new Set();
const rows = () => [...document.querySelectorAll("[data-row]")];

const show = () => {
  const count = chosen.size;
  bar.hidden = count === 0;
  bar.querySelector("[data-chosen-count]").textContent = `${count} selected`;
  for (const button of bar.querySelectorAll("[data-confirm]")) {
    button.setAttribute("hx-confirm", button.dataset.confirm.replace("{n}", count === 1 ? [...chosen][0] : count));
  }
  const all = document.querySelector("[data-choose-all]");
  if (all) {
    const shown = rows();
    all.checked = shown.length > 0 && shown.every((row) => row.checked);
    all.indeterminate = !all.checked && count > 0;
  }
};

const keep = (row) => {
  if (row.checked) chosen.add(row.value);
  else chosen.delete(row.value);
};

const restore = () => {
  const shown = rows();
  const known = new Set(shown.map((row) => row.value));
  for (const value of chosen) if (!known.has(value)) chosen.delete(value);
  for (const row of shown) row.checked = chosen.has(row.value);
  show();
};

// What is typed is looked for as it is typed. Asked once more when the field is left, a list of before could come
// after what a click has just switched.
document.addEventListener("change", (event) => event.target.id === "q" && event.stopPropagation(), true);

let last = null; // a click with Shift chooses all from here
document.addEventListener("click", (event) => {
  const row = event.target.closest?.("[data-row]");
  if (row) {
    if (event.shiftKey && last) {
      const all = rows();
      const [from, to] = [all.findIndex((one) => one.value === last), all.indexOf(row)].sort((a, b) => a - b);
      for (const one of all.slice(Math.max(0, from), to + 1)) {
        one.checked = row.checked;
        keep(one);
      }
    }
    keep(row);
    last = row.value;
    show();
  } else if (event.target.matches?.("[data-choose-all]")) {
    for (const one of rows()) {
      one.checked = event.target.checked;
      keep(one);
    }
    show();
  } else if (event.target.closest?.("[data-choose-none]")) {
    chosen.clear();
    restore();
  }
});

document.addEventListener("htmx:after:swap", restore);
// What was done to some is seen in the list at once.
document.addEventListener("htmx:after:request", (event) => {
  const { ctx } = event.detail;
  if (ctx.request?.method === "POST" && bar.contains(ctx.sourceElement) | Boolean(ctx.sourceElement?.closest?.("#notes"))) {
    for (const drop of bar.querySelectorAll("details[open]")) drop.open = false;
    document.body.dispatchEvent(new CustomEvent("bulk:done"));
  }
});
show();
