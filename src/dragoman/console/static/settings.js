// The theme that a person chose for this browser; none means that of the system.

const root = document.documentElement;
const choices = () => document.querySelectorAll("[data-theme-choice]");

const show = () => {
  for (const one of choices()) one.checked = one.value === (localStorage.getItem("theme") ?? "");
};

document.addEventListener("change", (event) => {
  if (!event.target.matches("[data-theme-choice]")) return;
  const theme = event.target.value;
  if (theme) {
    localStorage.setItem("theme", theme);
    root.dataset.theme = theme;
  } else {
    localStorage.removeItem("theme");
    delete root.dataset.theme;
  }
});
document.addEventListener("htmx:after:swap", show);
document.addEventListener("click", (event) => event.target.closest("[data-theme-switch]") && setTimeout(show));
show();
