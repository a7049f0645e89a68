// Times that are left, counted down each second: <time data-until="2026-01-01T00:00:00+00:00">.

const shown = (until) => {
  const seconds = Math.max(0, Math.floor((Date.parse(until) - Date.now()) / 1000));
  if (seconds >= 86400) return `${Math.floor(seconds / 86400)} d ${Math.floor((seconds % 86400) / 3600)} h`;
  const hours = Math.floor(seconds / 3600);
  const minutes = Math.floor((seconds % 3600) / 60);
  return hours ? `${hours} h ${minutes} min` : `${minutes} min ${seconds % 60} s`;
};

setInterval(() => {
  for (const time of document.querySelectorAll("time[data-until]")) time.textContent = shown(time.dataset.until);
}, 1000);
