"use strict";
/* The roofline of one target: what its unit can do at most, on paper and in the model, and a point for each pass. */
const roofline = (() => {
  const bounds = {compute: "circle", memory: "diamond", launch: "triangle"};
  const lettered = 7; // px: points that have room for a letter
  // A sentence in the language of the page: `data` holds what it is called there.
  const said = (data, english, values = {}) => (data.say?.[english] ?? english).replace(/\{(\w+)\}/g, (_, name) => values[name]);
  const short = (number) => (number >= 10000 ? d3.format(".3~s") : d3.format(".3~r"))(number);
  const rate = (bandwidth) => bandwidth < 1000 ? `${short(bandwidth)} GB/s` : `${d3.format(".3")(bandwidth / 1000)} TB/s`;

  function time(us) {
    return us < 999.5 ? `${short(us)} us` : us < 999500 ? `${short(us / 1000)} ms` : `${short(us / 1e6)} s`;
  }

  // How many findings the row of each layer leads to on one target.
  function findings(number) {
    const cells = document.querySelectorAll(`#layers td.links span[data-target="${number}"]`);
    return new Map(Array.from(cells, (cell) => [Number(cell.closest("tr").dataset.layer), cell.childElementCount]));
  }

  function says(dot, data, found) {
    const say = (english, values) => said(data, english, values);
    return `${data.names[dot.layer]}\n${say("{pass} {time}, bound by {bound}", {pass: dot.pass, time: time(dot.us), bound: say(dot.bound)})}\n`
      + `${dot.algorithm}, ${short(dot.x)} FLOP/B, ${short(dot.y)} TFLOPS\n`
      + (found ? say("click: its row, with its findings ({count})", {count: found}) : say("click: its row"));
  }

  // Slope and flat line of each ceiling, as one line; without a bandwidth the flat line alone.
  function roof(ceilings, slope, value, low, high) {
    return ceilings.flatMap((each) => [
      ...(slope ? [{text: each.text, x: low, y: low * slope}, {text: each.text, x: each[value] / slope, y: each[value]}] : [{text: each.text, x: low, y: each[value]}]),
      {text: each.text, x: high, y: each[value]}]);
  }

  // Of large points that lie on one another, the letter of the largest.
  function apart(dots, place) {
    const kept = [];
    for (const dot of d3.sort(dots, (dot) => -dot.us)) {
      const [x, y] = place(dot);
      if (kept.every((other) => Math.hypot(other.x - x, other.y - y) > 12)) kept.push({dot, x, y});
    }
    return kept.map((each) => each.dot);
  }

  // Why points lie above a line, where some do.
  function above(data, number) {
    const say = (english, values) => said(data, english, values), {points, ceilings, reached} = data.targets[number];
    const most = d3.max(ceilings, (each) => each[2]) ?? Infinity, slope = reached ? reached / 1000 : Infinity;
    const steep = points.filter(([, , x, y]) => y > x * slope * 1.01).length;
    const high = points.filter(([, , , y]) => y > most * 1.01).length;
    const some = (count) => count === 1 ? say("1 point lies") : say("{count} points lie", {count});
    return (steep ? say("; {points} above the slope: the stride skips input that is counted", {points: some(steep)}) : "")
      + (high ? say("; {points} above all lines: Winograd and FFT multiply less than is counted", {points: some(high)}) : "");
  }

  function draw(data, number, width, lead) {
    const say = (english, values) => said(data, english, values);
    const {points, ceilings: rows, bandwidth, reached} = data.targets[number];
    const dots = points.map(([layer, pass, x, y, us, bound, algorithm]) => ({layer, pass, x, y, us, bound, algorithm}));
    if (!dots.length) return null;
    const found = findings(number);
    const ceilings = rows.map(([text, peak, most]) => ({text, peak, most}));
    const slope = (bandwidth ?? 0) / 1000, most = (reached ?? 0) / 1000; // TFLOPS for each FLOP per byte; 0 where the GPU is not known
    const top = d3.max(ceilings, (each) => each.peak) ?? d3.max(dots, (dot) => dot.y);
    const least = d3.min(ceilings, (each) => each.most) ?? top;
    const low = Math.min(d3.min(dots, (dot) => dot.x) / 2, slope ? least / slope / 2 : Infinity);
    const high = Math.max(d3.max(dots, (dot) => dot.x) * 2, most ? 2 * top / most : 0);
    const floor = Math.min(d3.min(dots, (dot) => dot.y) / 2, most ? low * most : Infinity);
    const narrow = width < 520, largest = narrow ? 10 : 14, longest = d3.max(dots, (dot) => dot.us);
    const radius = (dot) => 2 + (largest - 2) * Math.sqrt(dot.us / longest);
    const text = {fill: "currentColor", stroke: "var(--paper)", strokeWidth: 4, fontSize: 12};
    const along = slope ? low * (high / low) ** 0.03 : low;
    const height = narrow ? 360 : 440, ceiling = Math.max(top * 1.6, d3.max(dots, (dot) => dot.y) * 1.2);
    const place = (dot) => [(width - 74) * Math.log(dot.x / low) / Math.log(high / low), (height - 76) * Math.log(dot.y / floor) / Math.log(ceiling / floor)];
    const chart = Plot.plot({
      className: "plot", width: Math.max(width, 280), height,
      marginLeft: 58, marginRight: 16, marginTop: 30, marginBottom: 46,
      x: {type: "log", domain: [low, high], label: say("useful FLOP per byte →"), tickFormat: (x) => narrow && high / low > 50 && !/^1/.test(short(x)) ? "" : short(x), ticks: narrow ? 4 : 8},
      y: {type: "log", domain: [floor, ceiling], label: say("↑ predicted, useful FLOP/s (TFLOPS)"), tickFormat: short, grid: true, ticks: 6},
      r: {type: "identity"},
      marks: [
        Plot.line(roof(ceilings, slope, "peak", low, high), {x: "x", y: "y", z: "text", stroke: "var(--line)", strokeWidth: 1.5}),
        Plot.line(roof(ceilings, most, "most", low, high), {x: "x", y: "y", z: "text", stroke: "var(--ink)", strokeWidth: 1.5, strokeDasharray: "5 3"}),
        ...Object.keys(bounds).map((bound) => Plot.dot(dots.filter((dot) => dot.bound === bound), {
          x: "x", y: "y", r: radius, symbol: bounds[bound], fill: `var(--${bound})`, fillOpacity: 0.55, stroke: `var(--${bound})`, strokeWidth: 0.8})),
        Plot.text(apart(dots.filter((dot) => radius(dot) >= lettered), place), {x: "x", y: "y", text: (dot) => dot.pass[0], fill: "var(--ink)", stroke: "var(--paper)", strokeWidth: 2.5, fontSize: 12, fontWeight: 600}),
        Plot.text(ceilings, {x: high, y: "peak", text: (each) => say("{unit}: {peak}, reached: {most}", {unit: each.text, peak: short(each.peak), most: short(each.most)}), textAnchor: "end", dy: -9, ...text}),
        ...(slope ? [Plot.text([say("DRAM: {peak}, reached: {most}", {peak: rate(bandwidth), most: rate(reached)})], {x: along, y: along * most, text: (each) => each, textAnchor: "start", dx: 14, dy: 16, ...text})] : []),
        Plot.tip(dots, Plot.pointer({x: "x", y: "y", maxRadius: 30, fontSize: 12, lineHeight: 1.3, lineWidth: narrow ? 13 : 26, title: (dot) => says(dot, data, found.get(dot.layer))})),
      ],
    });
    chart.setAttribute("aria-hidden", "true"); // the figure's label and the table say it
    chart.addEventListener("click", () => { if (chart.value) lead(chart.value.layer); });
    return chart;
  }
  return {draw, above, say: said};
})();
