// Charts of an experiment's past, drawn by uPlot; numbers are in tables for those who do not see them.
"use strict";
window.orthobanditCharts = (() => {
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const arm = (data, label) => colour(`--arm-${data.places[label] % 8}`);
  const faint = (text, share = "24") => text + share;  // share: opacity, as two hexadecimal digits
  const number = (value) => value == null ? "–" : `${Math.abs(value) < 1e-12 ? 0 : Number(value.toPrecision(3))}`.replace("-", "−");
  // A gap and its ends, with as many digits as the width of the interval justifies.
  const signed = (value, places) => {
    const text = Math.abs(value).toFixed(places);
    return Number(text) === 0 ? text : `${value < 0 ? "−" : "+"}${text}`;
  };
  const gapWords = ([gap, least, most]) => {
    if (least == null && most == null) return "not known yet";
    const wide = least == null || most == null ? Math.abs(least ?? most) : most - least;
    const places = wide > 0 ? Math.min(Math.max(1 - Math.floor(Math.log10(wide)), 0), 7) : 0;
    const ends = `${least == null ? "−∞" : signed(least, places)} to ${most == null ? "∞" : signed(most, places)}`;
    return gap == null ? ends : `${signed(gap, places)} (${ends})`;
  };
  const percent = (value) => value == null ? "–" : `${(100 * value).toFixed(0)} %`;
  const clock = (at) => new Date(1000 * at).toLocaleTimeString();
  const made = {};
  let last = null;

  // Seconds for minutes, days for weeks, and minutes in between, in the reader's own clock.
  const times = (plot, splits) => {
    const wide = plot.scales.x.max - plot.scales.x.min;
    const form = wide < 600 ? { hour: "2-digit", minute: "2-digit", second: "2-digit" }
      : wide < 2 * 86400 ? { hour: "2-digit", minute: "2-digit" } : { day: "numeric", month: "short" };
    const words = new Intl.DateTimeFormat("en-GB", form);
    const texts = splits.map((at) => words.format(1000 * at));
    return texts.map((text, i) => text === texts[i - 1] ? "" : text);  // of parts of a second
  };

  const axis = (more) => ({
    stroke: colour("--quiet"), grid: { stroke: colour("--line"), width: 1 },
    ticks: { stroke: colour("--line"), width: 1 }, font: "12px system-ui, sans-serif", ...more,
  });

  const clear = (name) => {
    for (const one of made[name] ?? []) one.destroy();
    made[name] = [];
  };

  // A chart in a place; `say` shows the words for the moment under the pointer.
  const draw = (name, place, table, series, more, say) => {
    if (!table[0].length) return;
    const first = table[0][0], end = table[0][table[0].length - 1];
    const room = (_, low, high) => first === end ? [first - 30, first + 30] : [low, high];
    const tell = (plot) => { const { idx } = plot.cursor; say(idx == null ? "" : more.words(idx)); };
    made[name].push(new uPlot({
      width: place.clientWidth || place.parentElement.clientWidth, height: more.height ?? 220, series: [{}, ...series], legend: { show: false },
      cursor: { points: { size: 6 }, drag: { x: true, y: false }, ...(more.sync ? { sync: { key: more.sync } } : {}) },
      axes: [axis({ values: times, space: 80, size: 32 }), axis({ size: 58, ...more.axis })], scales: { x: { range: room }, y: more.scale ?? {} },
      bands: more.bands ?? [], hooks: { setCursor: [tell] },
    }, table, place));
  };

  const single = (name, table, series, more) => {
    const place = document.getElementById(`chart-${name}`), readout = document.getElementById(`readout-${name}`);
    clear(name);
    draw(name, place, table, series, more, (words) => { readout.textContent = words; });
  };

  // Early intervals are as wide as all rewards: the scale is that of later ones, and the early ones leave it.
  const range = (columns) => {
    const from = Math.floor(columns[0]?.length / 4) || 0;
    const ends = columns.flatMap((one) => one.slice(from)).filter((one) => one != null);
    const low = Math.min(0, ...ends), high = Math.max(0, ...ends), room = 0.06 * (high - low || 1);
    return [low - room, high + room];
  };

  // One small chart an arm, side by side on one scale: bands of several arms in one chart hide each other.
  const intervals = (data) => {
    const { at, gaps, settled } = data.intervals, place = document.getElementById("chart-intervals");
    const columns = Object.values(gaps).flatMap((rows) => [1, 2].map((part) => rows.map((row) => row[part])));
    const [low, high] = range(columns);
    clear("intervals");
    place.replaceChildren();
    if (!at.length) return;
    for (const [label, rows] of Object.entries(gaps)) {
      const stroke = arm(data, label), points = { show: at.length < 2, fill: stroke };
      const panel = document.createElement("div"), head = document.createElement("p"), dot = document.createElement("span");
      const words = document.createElement("span"), chart = document.createElement("div");
      dot.className = `dot arm-${data.places[label] % 8}`;
      words.className = "quiet";
      head.append(dot, `${label} `, words);
      panel.append(head, chart);
      place.append(panel);
      const value = (i) => gapWords(rows[i]);
      const edge = { stroke: faint(stroke, "80"), width: 1, points };
      const table = [at, ...[2, 1, 0].map((part) => rows.map((row) => row[part]))];
      const now = value(at.length - 1);
      const say = (text) => { words.textContent = text || now; };
      say("");
      draw("intervals", chart, table, [{ ...edge }, { ...edge }, { stroke, width: 2, points: { ...points, size: 8 } }], {
        height: 170, sync: "gaps", bands: [{ series: [1, 2], fill: faint(stroke) }], scale: { range: () => [low, high] },
        axis: { values: (_, splits) => splits.map(number) },
        words: (i) => `${clock(at[i])}, ${settled[i].toLocaleString("en-GB")} settled: ${value(i)}`,
      }, say);
    }
  };

  const allocation = (data) => {
    if (!document.getElementById("chart-allocation")) return;  // visitors have plans of their own
    const at = [...data.allocation.at], shares = data.allocation.shares;
    if (!at.length) { clear("allocation"); return; }
    at.push(Math.max(data.now, at[at.length - 1] + 1));  // the plan in force holds until now
    const table = [at], series = [], bands = [], sums = at.map(() => 0);
    const entries = Object.entries(shares).map(([label, row]) => [label, [...row, row[row.length - 1]]]);
    const paths = uPlot.paths.stepped({ align: 1 });
    for (const [label, row] of entries) {
      row.forEach((share, i) => { sums[i] += share; });
      table.push([...sums]);
      series.push({ stroke: arm(data, label), width: 1.5, paths, points: { show: false } });
      const place = series.length;
      if (place > 1) bands.push({ series: [place, place - 1], fill: faint(arm(data, label), "55") });
      else series[0].fill = faint(arm(data, label), "55");
    }
    single("allocation", table, series, {
      bands, scale: { range: () => [0, 1] }, axis: { values: (_, splits) => splits.map(percent) },
      words: (i) => `${clock(at[i])} · ` + entries.map(([label, row]) => `${label} ${percent(row[i])}`).join(" · "),
    });
  };

  const baseline = (data) => {
    const { at, level } = data.baseline;
    const series = [{ stroke: colour("--accent"), width: 2, points: { show: at.length < 2 } }];
    const ends = level.filter((one) => one != null);
    const flat = ends.length > 0 && Math.min(...ends) === Math.max(...ends);
    single("baseline", [at, level], series, {
      ...(flat ? { scale: { range: () => [Math.min(0, ends[0]), Math.max(0, ends[0]) || 1] } } : {}),
      axis: { values: (_, splits) => splits.map(number) },
      words: (i) => `${clock(at[i])} · ${number(level[i])}`,
    });
  };

  const all = () => { if (last) for (const one of [intervals, allocation, baseline]) one(last); };

  for (const what of ["(prefers-color-scheme: dark)", "print"]) matchMedia(what).addEventListener("change", all);
  let width = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; all(); } });

  return {
    load: async (address) => {
      const answer = await fetch(`${address}/charts`);
      if (!answer.ok || answer.redirected) return;
      last = await answer.json();
      all();
    },
  };
})();
