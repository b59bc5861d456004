"use strict";
/* What the page does beyond being read: the order of layers, the choice of a GPU, filters, and the roofline. */
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const all = (selector, within = document) => Array.from(within.querySelectorAll(selector));
  const one = (id) => document.getElementById(id);
  let target = 0;
  document.documentElement.classList.add("script"); // what only a script makes useful is shown

  // The order of the layers
  const body = document.querySelector("#layers tbody");
  const rows = body ? all("tr.layer", body) : [];
  const times = rows.map((row) => all("td.of-target", row).map((cell) => Number(cell.dataset.us)));
  let largest = false;

  function order() {
    if (!body) return;
    const numbers = rows.map((_, number) => number);
    if (largest) numbers.sort((a, b) => times[b][target] - times[a][target] || a - b);
    body.replaceChildren(...numbers.map((number) => rows[number]));
    one("sort-network").setAttribute("aria-pressed", String(!largest));
    one("sort-largest").setAttribute("aria-pressed", String(largest));
  }

  for (const [id, value] of [["sort-network", false], ["sort-largest", true]]) {
    const button = one(id);
    if (button) button.addEventListener("click", () => { largest = value; order(); });
  }

  // The GPU
  const choice = one("target");
  let waiting = 0;
  const ofTargets = all("#layers span[data-target]");

  function choose(number) {
    target = number;
    for (const each of ofTargets) each.hidden = Number(each.dataset.target) !== target;
    if (largest) order();
    filter();
    clearTimeout(waiting);
    waiting = setTimeout(draw); // a task of its own: a chart of thousands of points takes long
  }
  function current() { choose(choice ? Number(choice.value) : 0); }
  if (choice) choice.addEventListener("change", current);

  // The findings
  const form = one("filters");
  const articles = all("article.finding").map((article) => ({
    article, code: article.dataset.code, severity: article.dataset.severity, gpu: article.dataset.gpu,
    layers: article.dataset.layers.split(" ").filter(Boolean).map((number) => data.names[number].toLowerCase()),
    text: (article.querySelector(".message").textContent + " " + article.querySelector(".place").textContent).toLowerCase(),
  }));

  // Why a finding is not shown, the first reason alone; empty where it is.
  function why(each, wish) {
    if (wish.gpu && each.gpu && each.gpu !== wish.gpu) return "gpu";
    if (!wish.severities.has(each.severity)) return "severity";
    if (wish.code && each.code !== wish.code) return "rule";
    const named = each.layers.length ? each.layers.some((name) => name.includes(wish.layer)) : each.text.includes(wish.layer);
    return wish.layer && !named ? "layer" : "";
  }

  function filter() {
    if (!form) return;
    const wish = {
      severities: new Set(all("input[name=severity]:checked", form).map((box) => box.value)),
      code: form.elements.code.value,
      layer: form.elements.layer.value.trim().toLowerCase(),
      gpu: choice ? data.targets[target].label : "",
    };
    const left = {"": 0, gpu: 0, severity: 0, rule: 0, layer: 0};
    for (const each of articles) {
      const reason = why(each, wish);
      if (each.article.hidden !== (reason !== "")) each.article.hidden = reason !== "";
      left[reason] += 1;
    }
    one("count").textContent = counted(left, wish.gpu);
    one("none").hidden = left[""] > 0;
  }

  function counted(left, gpu) {
    const hidden = [[left.gpu, `of other GPUs than ${gpu}`], [left.severity, "by severity"], [left.rule, "by rule"], [left.layer, "by layer"]]
      .filter(([number]) => number).map(([number, reason]) => `${number} ${reason}`);
    return `${left[""]} of ${articles.length} findings` + (hidden.length ? `; hidden: ${hidden.join(", ")}` : "");
  }
  if (form) {
    form.addEventListener("input", filter);
    form.addEventListener("submit", (event) => event.preventDefault());
  }

  // A link leads to what it names, whatever filters and GPU are chosen, and takes the focus along.
  function follow() {
    const there = location.hash.length > 1 ? one(location.hash.slice(1)) : null; // ids are plain
    if (!there) return;
    if (there.hidden) {
      form.reset();
      const number = data.targets.findIndex((each) => each.label === there.dataset.gpu);
      if (choice && number >= 0) choice.value = String(number);
      current();
    }
    there.scrollIntoView({block: there.clientHeight > innerHeight / 2 ? "start" : "center"});
    if (there.tabIndex === -1) there.focus({preventScroll: true});
  }
  addEventListener("click", (event) => { // a second click on one link changes no address
    const link = event.target.closest?.("a[href^='#']");
    if (link && link.getAttribute("href") === location.hash) follow();
  });
  addEventListener("hashchange", follow);

  // The roofline
  const figure = one("roofline-chart");
  const bounds = ["compute", "memory", "launch"];
  const symbols = {fprop: "circle", dgrad: "square", wgrad: "triangle"};
  const short = (number) => (number >= 10000 ? d3.format(".3~s") : d3.format(".3~r"))(number);

  function time(us) {
    return us < 999.5 ? `${short(us)} us` : us < 999500 ? `${short(us / 1000)} ms` : `${short(us / 1e6)} s`;
  }

  function draw() {
    if (!figure || !data.targets.length) return;
    const {points, ceilings, bandwidth, name, left} = data.targets[target];
    const dots = points.map(([layer, pass, x, y, us, bound]) => ({layer, pass, x, y, us, bound}));
    if (!dots.length) {
      figure.replaceChildren();
      figure.hidden = true;
      one("roofline-note").textContent = "No pass of a known time.";
      return;
    }
    figure.hidden = false;
    const slope = (bandwidth ?? 0) / 1000; // TFLOPS for each FLOP per byte; 0 where the GPU is not known
    const top = d3.max(ceilings, (each) => each[1]) ?? d3.max(dots, (dot) => dot.y);
    const least = d3.min(ceilings, (each) => each[1]) ?? top;
    const low = Math.min(d3.min(dots, (dot) => dot.x) / 2, slope ? least / slope / 2 : Infinity), high = Math.max(d3.max(dots, (dot) => dot.x) * 2, slope ? 2 * top / slope : 0);
    const floor = Math.min(d3.min(dots, (dot) => dot.y) / 2, slope ? low * slope : Infinity);
    const roof = ceilings.flatMap(([text, peak]) => [
      {text, x: peak / slope, y: peak}, {text, x: high, y: peak}]);
    const narrow = figure.clientWidth < 520;
    const chart = Plot.plot({
      className: "plot", width: Math.max(figure.clientWidth, 300), height: narrow ? 320 : 420,
      marginLeft: 56, marginRight: 16, marginTop: 28, marginBottom: 44,
      x: {type: "log", domain: [low, high], label: "arithmetic intensity (FLOP per byte) →", tickFormat: short, ticks: narrow ? 4 : 8},
      y: {type: "log", domain: [floor, Math.max(top * 1.6, d3.max(dots, (dot) => dot.y) * 1.2)], label: "↑ TFLOPS", tickFormat: short, grid: true, ticks: 6},
      r: {range: [2, narrow ? 9 : 14]},
      symbol: {domain: Object.keys(symbols), range: Object.values(symbols)},
      marks: [
        ...(slope ? [Plot.line([{x: low, y: low * slope}, {x: top / slope, y: top}], {x: "x", y: "y", stroke: "var(--memory)", strokeWidth: 1.5})] : []),
        Plot.line(roof, {x: "x", y: "y", z: "text", stroke: "var(--compute)", strokeWidth: 1.5}),
        Plot.text(ceilings, {x: high, y: (each) => each[1], text: (each) => `${each[0]}, ${short(each[1])} TFLOPS`, textAnchor: "end", dy: -8, fill: "currentColor"}),
        ...(slope ? [Plot.text([`DRAM, ${bandwidth < 1000 ? `${short(bandwidth)} GB/s` : `${d3.format(".3")(bandwidth / 1000)} TB/s`}`], {x: low, y: low * slope, text: (each) => each, textAnchor: "start", dx: 14, dy: 14, fill: "currentColor"})] : []),
        ...bounds.map((bound) => Plot.dot(dots.filter((dot) => dot.bound === bound), {
          x: "x", y: "y", r: (dot) => dot.us, symbol: "pass", fill: `var(--${bound})`, fillOpacity: 0.55, stroke: `var(--${bound})`, strokeWidth: 0.7})),
        Plot.tip(dots, Plot.pointer({x: "x", y: "y", maxRadius: 30,
          title: (dot) => `${data.names[dot.layer]} ${dot.pass}\n${time(dot.us)}, bound by ${dot.bound}\n${short(dot.x)} FLOP/B, ${short(dot.y)} TFLOPS`})),
      ],
    });
    chart.setAttribute("aria-hidden", "true"); // the figure's label and the table say it
    chart.addEventListener("click", () => { if (chart.value) location.hash = `layer-${chart.value.layer}`; });
    figure.replaceChildren(chart);
    one("roofline-note").textContent = `${name}: circles are fprop, squares dgrad, triangles wgrad.`
      + (left ? ` ${left} shorter passes are not drawn.` : "");
    figure.dataset.drawn = "true";
  }

  let width = figure ? Math.round(figure.clientWidth) : 0;
  new ResizeObserver((entries) => {
    const now = Math.round(entries[0].contentRect.width);
    if (now && now !== width) { width = now; draw(); }
  }).observe(figure ?? document.body);
  addEventListener("pageshow", () => { // a browser may give controls their former values once all is loaded
    if (choice && Number(choice.value) !== target) current(); else filter();
  });
  current();
  if (location.hash) follow();
})();
