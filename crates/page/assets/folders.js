// The active run. When it has ended, the page is reloaded to show the new counts.

const run = document.getElementById("run");
const stop = document.getElementById("stop-run");
const isRunning = () => Boolean(run.querySelector("[data-running]"));
// The first event may contain an earlier state than the page.
let seen = run && isRunning() ? 2 : 0;
let isLeaving = false;

document.addEventListener("submit", () => (isLeaving = true));

run?.addEventListener("run", (event) => {
  run.innerHTML = event.detail;
  if (stop) stop.hidden = !run.querySelector("[data-can-stop]");
  for (const start of document.querySelectorAll(".start-run")) start.hidden = stop && !stop.hidden;
  if (!isRunning() && seen > 1 && !isLeaving) location.assign(location.pathname);
  seen = isRunning() ? seen + 1 : 0;
});
