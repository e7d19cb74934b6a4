// Views that are drawn: source lines, calls over time, curves over steps, the flow of data between modules.

function codeView(player, view) {
  const source = player.trace.sources[view.source];
  const missed = new Set(player.trace.events.flatMap((event) => event.missed || []).map((line) => line.join(":")));
  const lines = source.lines.map((text, index) => element("div", { class: "statement" }, element("i", { text: "" }), element("u", { text: source.numbered === false ? "" : String((source.first || 1) + index) }), text));
  const box = element("div", { class: "code scroll", tabindex: 0, role: "region", "aria-label": source.title }, ...lines);
  return {
    node: box,
    show(state, event) {
      const gone = new Set((event.missed || []).map((line) => line.join(":")));
      const run = new Set((event.run || []).map((line) => line.join(":")));
      const whole = Boolean(event.run);
      lines.forEach((line, index) => {
        const key = `${view.source}:${index}`;
        const ran = whole ? run.has(key) : state.ran.has(key) && !view.onlyRun;
        const now = event.line && event.line.join(":") === key;
        // A summary shows what ran (and what did not) without the lines between.
        const kept = !view.condense || !whole || ran || gone.has(key) || index === 0;
        const cut = !kept && index > 0 && !lines[index - 1].classList.contains("gone");
        line.className = ["statement", ran ? "ran" : "", gone.has(key) ? "missed" : "", now ? "now" : "", kept ? "" : "gone", cut ? "cut" : ""].join(" ");
        line.firstChild.textContent = now ? "▶" : gone.has(key) ? "✗" : ran ? "✓" : "";
      });
      const first = event.line && event.line[0] === view.source ? event.line[1] : lines.findIndex((line) => line.classList.contains("ran") || line.classList.contains("missed"));
      if (first >= 0) {
        const line = lines[first];
        const top = line.offsetTop - box.offsetTop;
        if (top < box.scrollTop || top + line.offsetHeight > box.scrollTop + box.clientHeight) box.scrollTop = Math.max(0, top - 60);
      }
    },
  };
}

function timelineView(player, view) {
  const { events, nodes } = player.trace;
  const names = new Map(nodes.map((node) => [node.id, node.label]));
  const lanes = view.lanes; // {kind: {shape, paint, label}}
  const marked = events.map((event, index) => [event, index]).filter(([event]) => ["enter", "exit"].includes(event.kind) || event.kind in lanes);
  const order = new Map(marked.map(([, index], place) => [index, place]));
  const width = 900, left = 8, unit = (width - 2 * left) / Math.max(marked.length, 1);
  const x = (index) => left + (order.get(index) + 0.5) * unit;
  const bars = [], open = [];
  for (const [event, index] of marked) {
    if (event.kind === "enter") open.push({ node: event.node, tone: event.tone, from: index, depth: open.length });
    else if (event.kind === "exit") {
      const at = open.findLastIndex((bar) => bar.node === event.node && bar.tone === event.tone);
      if (at >= 0) { const [bar] = open.splice(at, 1); bars.push({ ...bar, to: index }); }
    }
  }
  for (const bar of open) bars.push({ ...bar, to: marked.at(-1)[1], cut: true });
  const depth = Math.max(0, ...bars.map((bar) => bar.depth)) + 1;
  const height = depth * 21 + 32;
  const svg = drawn("svg", { class: "picture", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": view.title || "Calls over time" });
  const drawnBars = bars.map((bar) => {
    const from = x(bar.from) - unit * 0.3, wide = Math.max(x(bar.to) + unit * 0.3 - from, 6);
    const rect = drawn("rect", { x: from, y: bar.depth * 21 + 2, width: wide, height: 18, rx: 4, fill: `var(--${bar.tone}-fill)`, stroke: `var(--${bar.tone})`, "stroke-dasharray": bar.cut ? "4 3" : null });
    const room = Math.floor((wide - 8) / 6.4), label = names.get(bar.node) || bar.node;
    const text = drawn("text", { x: from + 5, y: bar.depth * 21 + 15, text: room < 2 ? "" : label.length > room ? `${label.slice(0, Math.max(1, room - 1))}…` : label });
    const group = drawn("g", { class: "jump" }, drawn("title", { text: label }), rect, text);
    group.addEventListener("click", () => jump(bar.from));
    svg.append(group);
    return { ...bar, group, rect };
  });
  const jump = (index) => { player.stop(); player.go(Math.max(0, player.steps.findLastIndex((one) => one <= index))); };
  const lane = depth * 21 + 13;
  const marks = marked.filter(([event]) => event.kind in lanes).map(([event, index]) => {
    const { shape, paint } = lanes[event.kind];
    const size = Math.min(13, Math.max(7, unit * 0.8));
    const holder = drawn("svg", { x: x(index) - size / 2, y: lane - size / 2, width: size, height: size, viewBox: "0 0 12 12", class: "jump" });
    const inner = mark(shape).firstChild;
    for (const name of ["fill", "stroke"]) inner.setAttribute(name, `var(--${paint})`);
    holder.append(drawn("title", { text: event.say }), inner);
    holder.addEventListener("click", () => jump(index));
    svg.append(holder);
    return { index, holder };
  });
  const cursor = drawn("line", { y1: 0, y2: height - 6, stroke: "var(--ink)", "stroke-width": 1.6 });
  const knob = drawn("circle", { r: 4.5, cy: height - 5, fill: "var(--ink)" });
  svg.append(cursor, knob);
  const used = Object.entries(lanes).filter(([kind]) => marked.some(([event]) => event.kind === kind));
  const legend = element("div", { class: "legend" }, ...used.map(([, { shape, paint, label }]) => {
    const sign = mark(shape);
    for (const name of ["fill", "stroke"]) sign.firstChild.setAttribute(name, `var(--${paint})`);
    return element("span", {}, sign, label);
  }));
  return {
    node: element("div", { class: "drawing" }, svg, legend),
    show(state, event, index) {
      const place = marked.filter(([, one]) => one <= index).at(-1);
      const at = place ? x(place[1]) : left;
      for (const name of ["x1", "x2"]) cursor.setAttribute(name, at);
      knob.setAttribute("cx", at);
      for (const bar of drawnBars) {
        const now = bar.from <= index && index <= bar.to;
        bar.group.style.opacity = bar.from > index ? 0.35 : 1;
        bar.rect.setAttribute("stroke-width", now ? 2.4 : 1);
      }
      for (const { index: one, holder } of marks) holder.style.opacity = one <= index ? 1 : 0.25;
    },
  };
}

function seriesView(player, view) {
  const count = player.trace.events.length;
  const charts = view.charts.map((chart) => {
    const width = 430, height = 150, left = 46, bottom = 22, top = 10;
    const values = chart.series.flatMap((one) => one.points.map((point) => point[1])).filter((value) => value !== null);
    let low = Math.min(...values, ...(chart.include || [])), high = Math.max(...values, ...(chart.include || []));
    if (low === high) { low -= 1; high += 1; }
    const xs = chart.series.flatMap((one) => one.points.map((point) => point[0]));
    const first = Math.min(...xs), last = Math.max(...xs, first + 1);
    const x = (index) => left + ((index - first) / (last - first)) * (width - left - 12);
    const y = (value) => top + (1 - (value - low) / (high - low)) * (height - top - bottom);
    const svg = drawn("svg", { class: "picture", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${chart.title}: ${chart.series.map((one) => one.label).join(", ")}` });
    for (const value of [low, (low + high) / 2, high]) {
      svg.append(drawn("line", { x1: left, x2: width - 8, y1: y(value), y2: y(value), stroke: "var(--line)" }),
        drawn("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end", text: Number(value.toPrecision(3)).toString(), style: "fill:var(--soft)" }));
    }
    svg.append(drawn("text", { x: width - 8, y: height - 4, "text-anchor": "end", text: chart.axis || "training step →", style: "fill:var(--soft)" }));
    const cursor = drawn("line", { y1: top, y2: height - bottom, stroke: "var(--soft)", "stroke-dasharray": "3 3" });
    svg.append(cursor);
    const curves = chart.series.map((one) => {
      const points = one.points.filter((point) => point[1] !== null);
      const line = one.dots ? null : drawn("polyline", { fill: "none", stroke: `var(--${one.paint})`, "stroke-width": 2, "stroke-dasharray": one.dashed ? "5 4" : null });
      const spots = points.map(([index, value]) => {
        const spot = one.dots ? drawn("path", { d: `M${x(index)} ${y(value) - 4.5}l4.5 4.5l-4.5 4.5l-4.5 -4.5z`, fill: `var(--${one.paint})` }) : drawn("circle", { cx: x(index), cy: y(value), r: 2.8, fill: `var(--${one.paint})` });
        return [index, spot];
      });
      if (line) svg.append(line);
      spots.forEach(([, spot]) => svg.append(spot));
      return { points, line, spots };
    });
    const legend = element("div", { class: "legend" }, ...chart.series.map((one) => {
      const sign = mark(one.dots ? "diamond" : "dot");
      for (const name of ["fill", "stroke"]) sign.firstChild.setAttribute(name, `var(--${one.paint})`);
      return element("span", {}, sign, one.label);
    }));
    return {
      box: element("div", {}, element("h3", { text: chart.title }), svg, legend),
      show(index) {
        const at = Math.min(Math.max(index, first), last);
        for (const name of ["x1", "x2"]) cursor.setAttribute(name, x(at));
        for (const { points, line, spots } of curves) {
          if (line) line.setAttribute("points", points.filter(([one]) => one <= index).map(([one, value]) => `${x(one)},${y(value)}`).join(" "));
          spots.forEach(([one, spot]) => { spot.style.opacity = one <= index ? 1 : 0.16; });
        }
      },
    };
  });
  return {
    node: element("div", { class: "drawing", style: "display:grid;gap:12px 18px;grid-template-columns:repeat(auto-fit,minmax(240px,1fr))" }, ...charts.map((chart) => chart.box)),
    show: (state, event, index) => charts.forEach((chart) => chart.show(Math.min(index, count))),
  };
}

function flowView(player, view) {
  const { boxes, edges } = view;
  const gap = 26, wide = boxes.map((box) => (box.kind === "module" ? Math.max(70, 14 + 7 * Math.max(box.label.length, (box.type || "").length)) : box.kind === "value" ? 12 : 30));
  const starts = [];
  wide.reduce((at, width, index) => { starts[index] = at; return at + width + gap; }, 26);
  const total = starts.at(-1) + wide.at(-1) + 12;
  const arcs = edges.some((edge) => edge.to > edge.from + 1);
  const height = arcs ? 122 : 66, middle = arcs ? 80 : 24;
  const svg = drawn("svg", { class: "picture", viewBox: `0 0 ${total} ${height}`, role: "img", "aria-label": view.title || "Flow of data", style: `min-width:${Math.min(total, 1500)}px;max-width:${total * 1.25}px` });
  const made = new Map();
  const lines = edges.map((edge) => {
    const [from, to] = [edge.from, edge.to];
    const x1 = starts[from] + wide[from], x2 = starts[to], near = to === from + 1;
    const lift = Math.min(62, 26 + 7 * (to - from));
    const path = drawn("path", { d: near ? `M${x1} ${middle}H${x2}` : `M${x1} ${middle - 6}C${x1 + 14} ${middle - lift - 16},${x2 - 14} ${middle - lift - 16},${x2 + 3} ${middle - 8}`, fill: "none", stroke: near ? "var(--soft)" : "var(--registered)", "stroke-width": near ? 1.5 : 2.2 });
    const text = drawn("text", { x: (x1 + x2) / 2, y: near ? middle + 34 : middle - lift * 0.75 - 17, "text-anchor": "middle", text: near ? "" : edge.shape || "", style: "fill:var(--soft)" });
    svg.append(path, text);
    return { edge, path, text };
  });
  boxes.forEach((box, index) => {
    const group = drawn("g", { class: "jump" });
    if (box.kind === "module") {
      group.append(drawn("rect", { x: starts[index], y: middle - 20, width: wide[index], height: 40, rx: 6 }),
        drawn("text", { x: starts[index] + wide[index] / 2, y: middle - 3, "text-anchor": "middle", text: box.label, style: "font-weight:600" }),
        drawn("text", { x: starts[index] + wide[index] / 2, y: middle + 12, "text-anchor": "middle", text: box.type || "", style: "fill:var(--soft)" }));
      group.addEventListener("click", () => player.select(box.node));
    } else if (box.kind === "value") group.append(drawn("circle", { cx: starts[index] + 6, cy: middle, r: 6 }));
    else group.append(drawn("circle", { cx: starts[index] + 15, cy: middle, r: 14 }), drawn("text", { x: starts[index] + 15, y: middle + 4, "text-anchor": "middle", text: box.label, style: "font-weight:600" }));
    group.append(drawn("title", { text: `${box.label} ${box.type || ""} → ${box.shape || ""}` }),
      drawn("text", { x: starts[index] + wide[index] / 2, y: middle + 36, "text-anchor": "middle", text: box.shape || "", style: "fill:var(--soft)" }));
    svg.append(group);
    made.set(index, group);
  });
  return {
    node: element("div", { class: "drawing scroll", tabindex: 0, role: "region", "aria-label": view.title || "Flow of data" }, svg),
    show(state, event, index) {
      boxes.forEach((box, place) => {
        const reached = box.at <= index, now = box.at <= index && index <= (box.until ?? box.at);
        const group = made.get(place), shape = group.firstChild;
        group.style.opacity = reached ? 1 : 0.35;
        shape.setAttribute("fill", now ? "var(--forward-fill)" : box.kind === "value" ? "var(--registered)" : "var(--panel)");
        shape.setAttribute("stroke", now ? "var(--forward)" : player.selected === box.node && box.node ? "var(--ink)" : "var(--registered)");
        shape.setAttribute("stroke-width", now ? 2.6 : 1.4);
      });
      for (const { edge, path, text } of lines) for (const one of [path, text]) one.style.opacity = boxes[edge.to].at <= index ? 1 : 0.25;
    },
  };
}

const VIEWS = { tree: treeView, detail: detailView, cards: cardsView, grid: gridView, bins: binsView, code: codeView, timeline: timelineView, series: seriesView, flow: flowView };
