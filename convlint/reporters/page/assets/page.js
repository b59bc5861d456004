"use strict";
/* What the page does beyond being read: the order of layers, the choice of a GPU, filters, and the roofline. */
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const say = (english, values = {}) => roofline.say(data, english, values);
  const all = (selector, within = document) => Array.from(within.querySelectorAll(selector));
  const one = (id) => document.getElementById(id);
  let target = 0;
  document.documentElement.classList.add("script"); // what only a script makes useful is shown

  // What is folded: all of it where there is little room, nothing on paper
  const folds = all("details.fold");
  const narrow = matchMedia(data.narrow || "not all");
  function fold(open) { for (const each of folds) each.open = open; }
  if (narrow.matches) fold(false);
  function unfold(there) {
    for (let each = there.closest("details"); each; each = each.parentElement.closest("details")) each.open = true;
    for (const each of all("section > details.fold", there.parentElement)) if (each.parentElement === there) each.open = true;
  }

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
    const hidden = [
      left.gpu && say("{count} of other GPUs than {gpu}", {count: left.gpu, gpu}), left.severity && say("{count} by severity", {count: left.severity}),
      left.rule && say("{count} by rule", {count: left.rule}), left.layer && say("{count} by layer", {count: left.layer})].filter(Boolean);
    return say("{count} of {all} findings", {count: left[""], all: articles.length})
      + (hidden.length ? say("; hidden: {reasons}", {reasons: hidden.join(say(", "))}) : "");
  }
  if (form) {
    form.addEventListener("input", () => { // what is looked for may be folded
      for (const each of all("#findings > details.fold")) each.open = true;
      filter();
    });
    form.addEventListener("submit", (event) => event.preventDefault());
  }

  function show(gpu) {
    const number = data.targets.findIndex((each) => each.label === gpu);
    if (!choice || number < 0 || number === target) return;
    choice.value = String(number);
    current();
  }

  // A link leads to what it names, whatever filters and GPU are chosen, and takes the focus along.
  function follow() {
    const there = location.hash.length > 1 ? one(location.hash.slice(1)) : null; // ids are plain
    if (!there) return;
    if (there.hidden) {
      form.reset();
      current();
      show(there.dataset.gpu);
    }
    unfold(there);
    there.scrollIntoView({block: there.clientHeight > innerHeight / 2 ? "start" : "center"});
    if (there.tabIndex === -1) there.focus({preventScroll: true});
  }
  addEventListener("click", (event) => { // a second click on one link changes no address
    const link = event.target.closest?.("a[href^='#']");
    if (link) show(link.closest("article.target")?.dataset.gpu); // a card's links lead to the numbers of its GPU
    if (link && link.getAttribute("href") === location.hash) follow();
  });
  addEventListener("hashchange", follow);

  // The roofline
  const figure = one("roofline-chart");

  function lead(layer) { // a click on the same point again changes no address
    const there = `#layer-${layer}`;
    if (location.hash === there) follow(); else location.hash = there;
  }

  function draw() {
    if (!figure || !data.targets.length) return;
    const chart = roofline.draw(data, target, figure.clientWidth, lead);
    figure.replaceChildren(...(chart ? [chart] : []));
    figure.hidden = !chart;
    const {name, left} = data.targets[target];
    one("roofline-note").textContent = chart
      ? name + roofline.above(data, target) + (left ? say("; not drawn {count} shorter passes", {count: left}) : "") : say("No pass of a known time.");
    figure.dataset.drawn = "true";
  }

  function drawAll() { // on paper, where nobody can choose
    if (!figure || data.targets.length < 2) return;
    figure.hidden = false;
    figure.replaceChildren(...data.targets.flatMap((each, number) => {
      const title = document.createElement("p");
      title.className = "gpu";
      title.textContent = each.name;
      const chart = roofline.draw(data, number, 680, lead);
      return chart ? [title, chart] : [];
    }));
    one("roofline-note").textContent = "";
  }
  let folded = [];
  addEventListener("beforeprint", () => { folded = folds.filter((each) => !each.open); fold(true); drawAll(); });
  addEventListener("afterprint", () => { for (const each of folded) each.open = false; });
  addEventListener("afterprint", draw);

  let later = 0;
  let width = figure ? Math.round(figure.clientWidth) : 0;
  new ResizeObserver((entries) => {
    const now = Math.round(entries[0].contentRect.width);
    if (now && now !== width) { width = now; clearTimeout(later); later = setTimeout(draw, 120); }
  }).observe(figure ?? document.body);
  addEventListener("pageshow", () => { // a browser may give controls their former values once all is loaded
    if (choice && Number(choice.value) !== target) current(); else filter();
  });
  current();
  if (location.hash) follow();
})();
