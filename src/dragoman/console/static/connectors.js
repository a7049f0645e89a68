// Counts down to the next attempt between two looks at the server, and keeps stderr at its end.

const tick = () => {
  for (const time of document.querySelectorAll("[data-until]")) {
    const left = Math.round((Date.parse(time.dataset.until) - Date.now()) / 1000);
    const text = left > 0 ? `in ${left} s` : "is due";
    if (time.textContent !== text) time.textContent = text;
  }
};

const toEnd = () => {
  for (const box of document.querySelectorAll("[data-at-end]")) {
    if (!box.matches(":hover, :focus")) box.scrollTop = box.scrollHeight;
  }
};

setInterval(tick, 500);
document.addEventListener("htmx:after:swap", () => {
  tick();
  toEnd();
});
tick();
toEnd();
