// Three charts of an experiment's past, drawn by uPlot; numbers are in tables for those who do not see them.
"use strict";
window.orthobanditCharts = (() => {
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const arm = (data, label) => colour(`--arm-${data.places[label] % 8}`);
  const faint = (text, share = "24") => text + share;  // share: opacity, as two hexadecimal digits
  const number = (value) => value == null ? "–" : `${Math.abs(value) < 1e-12 ? 0 : Number(value.toPrecision(3))}`.replace("-", "−");
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

  const readout = (name, words) => (plot) => {
    const { idx } = plot.cursor;
    document.getElementById(`readout-${name}`).textContent = idx == null ? "" : words(idx);
  };

  const draw = (name, table, series, more) => {
    const place = document.getElementById(`chart-${name}`);
    made[name]?.destroy();
    delete made[name];
    if (!table[0].length) return;
    const first = table[0][0], end = table[0][table[0].length - 1];
    const room = (_, low, high) => first === end ? [first - 30, first + 30] : [low, high];
    made[name] = new uPlot({
      width: place.parentElement.clientWidth, height: name === "intervals" ? 280 : 220, series: [{}, ...series],
      legend: { show: false }, cursor: { points: { size: 6 }, drag: { x: true, y: false } },
      axes: [axis({ values: times, space: 80, size: 32 }), axis({ size: 58, ...more.axis })], scales: { x: { range: room }, y: more.scale ?? {} },
      bands: more.bands ?? [], hooks: { setCursor: [readout(name, more.words)] },
    }, table, place);
  };

  // Early intervals are as wide as all rewards: the scale is that of later ones, and the early ones leave it.
  const range = (columns) => {
    const from = Math.floor(columns[0]?.length / 4) || 0;
    const ends = columns.flatMap((one) => one.slice(from)).filter((one) => one != null);
    const low = Math.min(0, ...ends), high = Math.max(0, ...ends), room = 0.06 * (high - low || 1);
    return [low - room, high + room];
  };

  const intervals = (data) => {
    const { at, gaps } = data.intervals, table = [at], series = [], bands = [], ends = [];
    for (const [label, rows] of Object.entries(gaps)) {
      const stroke = arm(data, label), first = series.length + 1;
      const [middle, low, high] = [0, 1, 2].map((part) => rows.map((row) => row[part]));
      table.push(high, low, middle);
      ends.push(low, high);
      const points = { show: at.length < 2, fill: stroke };
      const edge = { stroke: faint(stroke, "80"), width: 1, points };
      series.push({ ...edge }, { ...edge }, { stroke, width: 2, points: { ...points, size: 8 } });
      bands.push({ series: [first, first + 1], fill: faint(stroke) });
    }
    const [low, high] = range(ends);
    draw("intervals", table, series, {
      bands, scale: { range: () => [low, high] },
      axis: { values: (_, splits) => splits.map(number) },
      words: (i) => `${clock(at[i])} · ${data.intervals.settled[i].toLocaleString()} settled · ` +
        Object.entries(gaps).map(([label, rows]) =>
          `${label} ${number(rows[i][0])} (${number(rows[i][1])} to ${number(rows[i][2])})`).join(" · "),
    });
  };

  const allocation = (data) => {
    const at = [...data.allocation.at], shares = data.allocation.shares;
    if (!at.length) return;
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
    draw("allocation", table, series, {
      bands, scale: { range: () => [0, 1] }, axis: { values: (_, splits) => splits.map(percent) },
      words: (i) => `${clock(at[i])} · ` + entries.map(([label, row]) => `${label} ${percent(row[i])}`).join(" · "),
    });
  };

  const baseline = (data) => {
    const { at, level } = data.baseline;
    const series = [{ stroke: colour("--accent"), width: 2, points: { show: at.length < 2 } }];
    draw("baseline", [at, level], series, {
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
