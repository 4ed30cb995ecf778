"use strict";
/* Draws the charts of #charts, in the order of the canvases. */
document.documentElement.classList.add("js");
const specifications = JSON.parse(document.getElementById("charts").textContent);

/* Told apart by eyes of all kinds (Okabe, Ito), and by their marks. */
const LIGHT = ["#0072b2", "#c04f00", "#00795a", "#a3468a", "#8a6d00", "#1c1e21", "#3f7fae",
  "#7a4a2b"];
const DARK = ["#5cb8f0", "#ff9a4d", "#3ecfa6", "#e79fd0", "#e8cf4a", "#e6e7e9", "#9cc7ea",
  "#d3a17c"];
const MARKS = ["circle", "rect", "triangle", "rectRot", "cross", "star", "crossRot", "dash"];
const dark = matchMedia("(prefers-color-scheme: dark)");
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

function bytes(value) {
  let unit = 0;
  for (; value >= 1024 && unit < UNITS.length - 1; unit++) value /= 1024;
  return `${Number(value.toPrecision(3))} ${UNITS[unit]}`;
}

function short(value) {
  const size = Math.abs(value);
  if (size >= 1e6) return `${Number((value / 1e6).toPrecision(3))}M`;
  if (size >= 1e3) return `${Number((value / 1e3).toPrecision(3))}k`;
  return `${Number(value.toPrecision(3))}`;
}

const xy = (points, at) => points.map(point => ({ x: point[0], y: point[at] }));

/* A band is two lines without a mark, of which the second fills down to the first. */
function lines(chart, colours) {
  const sets = [];
  chart.series.forEach((series, i) => {
    const colour = colours[i % colours.length];
    if (series.points.some(point => point.length > 2)) {
      const edge = { band: true, borderWidth: 0, pointRadius: 0, pointHitRadius: 0 };
      sets.push({ ...edge, label: `${series.name} p5`, data: xy(series.points, 2) });
      sets.push({ ...edge, label: `${series.name} p95`, data: xy(series.points, 3),
        fill: "-1", backgroundColor: `${colour}30` });
    }
    sets.push({ label: series.name, data: xy(series.points, 1), borderColor: colour,
      backgroundColor: colour, pointStyle: MARKS[i % MARKS.length], pointRadius: 4,
      borderWidth: 2 });
  });
  return sets;
}

function bars(chart, colours) {
  return chart.series.map((series, i) => {
    const data = chart.labels.map(() => null);
    for (const point of series.points) data[point[0]] = point[1];
    return { label: series.name, data, backgroundColor: colours[i % colours.length] };
  });
}

function points(chart, colours) {
  return chart.series.map((series, i) => ({ label: series.name, data: xy(series.points, 1),
    backgroundColor: `${colours[i]}90`, pointRadius: 3 }));
}

function axis(text, theme, more) {
  return { title: { display: true, text, color: theme.ink }, grid: { color: theme.line },
    ticks: { color: theme.ink, maxRotation: 60, autoSkip: true }, ...more };
}

/* Sizes are powers of two, and so are their ticks. */
function sizeTicks(scale) {
  const ticks = [], low = Math.ceil(Math.log2(scale.min)), high = Math.log2(scale.max);
  const step = Math.max(1, Math.ceil((high - low) / 9));
  for (let power = low; power <= high; power += step) ticks.push({ value: 2 ** power });
  scale.ticks = ticks;
}

function xAxis(chart, theme) {
  if (chart.kind === "lines") {
    const ticks = { color: theme.ink, callback: bytes, maxRotation: 60 };
    return axis(chart.x, theme, { type: "logarithmic", ticks, afterBuildTicks: sizeTicks });
  }
  if (chart.kind === "bars") return axis(chart.x, theme, { type: "category" });
  const cut = text => text.length > 22 ? `${text.slice(0, 21)}…` : text;
  return axis(chart.x, theme, { type: "linear", min: -0.5, max: chart.labels.length - 0.5,
    afterBuildTicks: scale => {
      const step = Math.ceil(chart.labels.length / 12);
      scale.ticks = chart.labels.map((_, i) => ({ value: i })).filter((_, i) => i % step === 0);
    },
    ticks: { color: theme.ink, maxRotation: 60, minRotation: 30, autoSkip: false,
      callback: value => cut(chart.labels[value] ?? "") } });
}

function yAxis(chart, theme) {
  const type = chart.log ? "logarithmic" : "linear";
  const callback = value => {
    const digit = Number(value.toExponential()[0]);
    return type === "linear" || [1, 2, 5].includes(digit) ? short(value) : "";
  };
  return axis(chart.y, theme, { type, beginAtZero: chart.kind === "bars", ticks: { color: theme.ink, callback } });
}

function said(chart, item) {
  const x = chart.labels ? chart.labels[item.parsed.x] : bytes(item.parsed.x);
  return `${item.dataset.label}: ${short(item.parsed.y)} (${x})`;
}

function configuration(chart) {
  const is_dark = dark.matches && !matchMedia("print").matches;
  const theme = is_dark ? { ink: "#c9ced6", line: "#363b42" } :
    { ink: "#3b4048", line: "#dfe2e6" };
  const make = { lines, bars, points }[chart.kind];
  return {
    type: { lines: "line", bars: "bar", points: "scatter" }[chart.kind],
    data: { labels: chart.kind === "bars" ? chart.labels : undefined,
      datasets: make(chart, is_dark ? DARK : LIGHT) },
    options: {
      animation: false, maintainAspectRatio: false, responsive: true,
      scales: { x: xAxis(chart, theme), y: yAxis(chart, theme) },
      plugins: {
        legend: { display: chart.series.length > 1, labels: { color: theme.ink,
          usePointStyle: true,
          filter: (item, data) => !data.datasets[item.datasetIndex].band } },
        tooltip: { callbacks: { title: () => "", label: item => said(chart, item) },
          filter: item => !item.dataset.band },
      },
    },
  };
}

const canvases = [...document.querySelectorAll("figure canvas")];
let drawn = [];

function draw() {
  for (const one of drawn) one.destroy();
  drawn = specifications.map((chart, i) => new Chart(canvases[i], configuration(chart)));
}

draw();
dark.addEventListener("change", draw);
addEventListener("beforeprint", draw);
addEventListener("afterprint", draw);
