// Reads out a chart: the pointer or the arrow keys choose a time, and the table behind it says what was then.

const rowsOf = (chart) => [...chart.querySelectorAll(".chart-rows tbody tr")];

const show = (chart, place) => {
  const rows = rowsOf(chart);
  if (!rows.length) return;
  const at = Math.max(0, Math.min(rows.length - 1, place));
  const names = [...chart.querySelectorAll(".chart-rows th")].map((one) => one.textContent);
  const middle = ((at + 0.5) * 100) / rows.length;
  const tip = chart.querySelector(".tip");
  tip.replaceChildren(
    ...[...rows[at].cells].map((cell, index) => {
      const line = document.createElement("span");
      if (index) {
        const value = document.createElement("b");
        value.textContent = cell.textContent;
        line.append(names[index], value);
      } else line.textContent = cell.textContent;
      return line;
    }),
  );
  tip.hidden = false;
  tip.dataset.at = String(Math.floor(middle / 12.5)); // an eighth of the width: style.css has a place for each
  chart.querySelector(".cursor").setAttribute("d", `M${middle} 0V100`);
  chart.dataset.at = String(at);
};

const hide = (chart) => {
  chart.querySelector(".tip").hidden = true;
  chart.querySelector(".cursor").setAttribute("d", "");
  delete chart.dataset.at;
};

document.addEventListener("pointermove", (event) => {
  const marks = event.target.closest?.(".marks");
  for (const open of document.querySelectorAll("[data-chart][data-at]")) {
    if (!open.contains(marks) && !open.contains(document.activeElement)) hide(open);
  }
  if (!marks) return;
  const chart = marks.closest("[data-chart]");
  const box = marks.getBoundingClientRect();
  show(chart, Math.floor(((event.clientX - box.left) / box.width) * rowsOf(chart).length));
});

document.addEventListener("keydown", (event) => {
  const chart = event.target.matches?.(".marks") && event.target.closest("[data-chart]");
  const steps = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };
  if (!chart || !(event.key in steps)) return;
  event.preventDefault();
  const last = rowsOf(chart).length;
  const from = "at" in chart.dataset ? Number(chart.dataset.at) : event.key === "ArrowLeft" ? last : -1;
  show(chart, from + steps[event.key]);
});

document.addEventListener("focusout", (event) => {
  if (event.target.matches?.(".marks")) hide(event.target.closest("[data-chart]"));
});
