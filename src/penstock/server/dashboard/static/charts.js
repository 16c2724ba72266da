// Charts of what the page has in data-chart, drawn in the colours of the theme.
"use strict";

(() => {
  const drawn = new Map();
  const short = (value) => value === null ? "" : Number(value.toPrecision(3)).toLocaleString("en");

  function clock(plot, splits) {
    const seconds = plot.scales.x.max - plot.scales.x.min < 300 ? "2-digit" : undefined;
    const format = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: seconds });
    return splits.map((at) => format.format(new Date(at * 1000)));
  }

  function draw(element) {
    const { at, series } = JSON.parse(element.dataset.chart);
    const data = [at, ...series.map(([, figures]) => figures)];
    const known = drawn.get(element);
    const look = document.documentElement.dataset.theme + matchMedia("(prefers-color-scheme: dark)").matches;
    if (known && known.look === look) {
      known.plot.setData(data);
      return;
    }
    known?.plot.destroy();
    known?.observer.disconnect();
    // The legend has the colours of the lines, and the frame those of the axes.
    const lines = [...element.parentElement.querySelectorAll(".legend li")].map((one) => getComputedStyle(one, "::before").color);
    const frame = getComputedStyle(element);
    const axis = { stroke: frame.color, grid: { stroke: frame.borderTopColor, width: 1 }, ticks: { show: false }, font: "12px system-ui" };
    const plot = new uPlot({
      width: element.clientWidth,
      height: element.clientHeight,
      legend: { show: false },
      cursor: { show: false },
      scales: { y: { range: (_, low, high) => [0, high > 0 ? high * 1.15 : 1] } },
      axes: [{ ...axis, values: clock, space: 90, size: 32 }, { ...axis, size: 56, values: (_, splits) => splits.map(short) }],
      series: [{}, ...series.map(([label], index) => ({
        label, stroke: lines[index], fill: lines[index].replace("rgb(", "rgba(").replace(")", ", .1)"), width: 2, points: { show: false }, spanGaps: false,
      }))],
    }, data, element);
    const observer = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height: element.clientHeight }));
    observer.observe(element);
    drawn.set(element, { plot, observer, look });
  }

  function drawAll() {
    for (const [element, { plot, observer }] of drawn) {
      if (element.isConnected) continue;
      observer.disconnect();
      plot.destroy();
      drawn.delete(element);
    }
    document.querySelectorAll("[data-chart]").forEach(draw);
  }
  document.addEventListener("penstock:shown", drawAll);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  drawAll();
})();
