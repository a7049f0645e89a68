// Before the first paint: the theme that this person chose, else what the system prefers.
(() => {
  const chosen = localStorage.getItem("theme");
  if (chosen) document.documentElement.dataset.theme = chosen;
})();
