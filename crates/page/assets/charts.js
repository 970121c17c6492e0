// Graphs of the state, drawn by uPlot. New rows arrive as events.

import { fetchPart } from "./common.js";
import uPlot from "./uplot.js";

const charts = document.getElementById("charts");
const minutes = Number(charts.dataset.minutes);
const GAP_SECONDS = 60;

function grouped(value) {
  return Math.round(value).toLocaleString("en-US");
}

function bytes(value) {
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let at = 0;
  while (value >= 999.5 && at < units.length - 1) {
    value /= 1000;
    at += 1;
  }
  return value.toFixed(at === 0 || value >= 99.95 ? 0 : 1) + " " + units[at];
}

// Formats a value as the table of the server does.
const FORMATS = {
  "bytes": bytes,
  "bytes-per-second": (value) => bytes(value) + "/s",
  "milliseconds": (value) => value.toFixed(2) + " ms",
  "count": (value) => (value < 10 && value % 1 ? value.toFixed(2) : grouped(value)),
  "per-second": (value) => (value < 10 && value % 1 ? value.toFixed(2) : grouped(value)),
};
// A shorter format for an axis.
const AXES = {
  ...FORMATS,
  "milliseconds": (value) => (value < 10 ? String(Number(value.toFixed(2))) : grouped(value)) + " ms",
  "count": (value) => (value % 1 ? String(Number(value.toFixed(2))) : grouped(value)),
  "per-second": (value) => (value % 1 ? String(Number(value.toFixed(2))) : grouped(value)),
};

// Converts rows to columns. The first column is the time in seconds.
let columns = [];
const plots = [];

function toColumns(rows, width) {
  const made = Array.from({ length: width }, () => []);
  for (const row of rows) row.forEach((value, at) => made[at].push(at === 0 ? value / 1000 : value));
  return made;
}

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function options(element) {
  const names = element.dataset.names.split("|");
  const format = AXES[element.dataset.unit];
  const axis = { stroke: colour("--muted"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: "12px system-ui, sans-serif" };
  return {
    width: element.clientWidth,
    height: element.clientHeight,
    legend: { show: false },
    cursor: { sync: { key: "state" }, y: false, points: { size: 6 } },
    scales: { y: { range: (plot, low, high) => [0, high > 0 ? high * 1.1 : 1] } },
    axes: [
      { ...axis, space: 70, size: 30, values: [[3600, "{HH}:{mm}", null, null, null, null, null, null, 1], [60, "{HH}:{mm}", null, null, null, null, null, null, 1], [1, "{HH}:{mm}:{ss}", null, null, null, null, null, null, 1]] },
      { ...axis, size: 64, values: (plot, ticks) => ticks.map(format) },
    ],
    series: [
      {},
      ...names.map((name, at) => ({ label: name, stroke: colour("--line-" + at), width: 1.6, spanGaps: false, points: { show: false } })),
    ],
    hooks: { setCursor: [showAtCursor] },
  };
}

function dataOf(element) {
  const first = Number(element.dataset.first) + 1;
  const count = element.dataset.names.split("|").length;
  return [columns[0], ...columns.slice(first, first + count)];
}

// The column "Now" of the tables shows the values under the pointer, or else the newest ones.
function showNumbers(index) {
  for (const cell of document.querySelectorAll("[data-now]")) {
    const unit = cell.closest(".chart").querySelector(".plot").dataset.unit;
    const value = columns[Number(cell.dataset.now) + 1]?.[index];
    const text = value === null || value === undefined ? "–" : FORMATS[unit](value);
    if (cell.textContent !== text) cell.textContent = text;
  }
}

let pointed = null;
function showAtCursor(plot) {
  const index = plot.cursor.idx;
  if (index === pointed) return;
  pointed = index ?? null;
  showNumbers(pointed ?? columns[0].length - 1);
}

function draw() {
  for (const plot of plots.splice(0)) plot.destroy();
  for (const element of charts.querySelectorAll(".plot")) {
    plots.push(new uPlot(options(element), dataOf(element), element));
  }
}

function update() {
  const elements = charts.querySelectorAll(".plot");
  plots.forEach((plot, at) => {
    const zoomed = plot.scales.x.min > columns[0][0] + 1;
    plot.setData(dataOf(elements[at]), !zoomed);
  });
  if (pointed === null) showNumbers(columns[0].length - 1);
}

async function load() {
  const rows = JSON.parse(await fetchPart(charts.dataset.series));
  const width = [...charts.querySelectorAll(".plot")].reduce((sum, it) => sum + it.dataset.names.split("|").length, 1);
  columns = toColumns(rows, width);
  draw();
}

charts.addEventListener("sample", (event) => {
  const row = JSON.parse(event.detail);
  const seconds = row[0] / 1000;
  const times = columns[0];
  if (!times || !seconds || seconds <= times[times.length - 1]) return;
  // Loads the rows that were missed while the page was hidden.
  if (times.length && seconds - times[times.length - 1] > GAP_SECONDS) {
    load();
    return;
  }
  row.forEach((value, at) => columns[at].push(at === 0 ? seconds : value));
  while (times[0] < seconds - minutes * 60) columns.forEach((column) => column.shift());
  update();
});

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
let resized = 0;
window.addEventListener("resize", () => {
  clearTimeout(resized);
  resized = setTimeout(draw, 150);
});

await load();
