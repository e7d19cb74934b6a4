// The frame around every simulation: head, transport, caption, keyboard, theme. It draws a trace and knows no torch.
// A trace is a list of events; the picture at step k is the fold of what events 0..k set. See simulations/trace.py.

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "text") made.textContent = value;
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

function drawn(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "text") made.textContent = value;
    else if (value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

const TONES = ["registered", "orphan", "parameter", "buffer", "forward", "backward", "plain", "good"];
const tone = (name) => (TONES.includes(name) ? `--tone:var(--${name});--tone-fill:var(--${name}-fill)` : "");

// Shape as well as colour: each kind of thing has an outline of its own.
function mark(kind, orphan = false) {
  const paint = orphan ? "var(--orphan)" : `var(--${{ module: "registered", parameter: "parameter", buffer: "buffer" }[kind] || (TONES.includes(kind) ? kind : "plain")})`;
  const common = { fill: "none", stroke: paint, "stroke-width": 1.8, "stroke-dasharray": orphan ? "2.4 2" : null };
  const shapes = {
    module: () => drawn("rect", { x: 1, y: 1, width: 10, height: 10, rx: 3, ...common }),
    parameter: () => drawn("rect", { x: 1, y: 1, width: 10, height: 10, rx: 2, ...common, fill: orphan ? "none" : paint }),
    buffer: () => drawn("circle", { cx: 6, cy: 6, r: 5, ...common, fill: orphan ? "none" : paint }),
    enter: () => drawn("path", { d: "M2 1L11 6L2 11Z", ...common }),
    before: () => drawn("path", { d: "M6 1L11 11H1Z", ...common, fill: paint }),
    after: () => drawn("path", { d: "M6 11L11 1H1Z", ...common, fill: paint }),
    diamond: () => drawn("path", { d: "M6 0L12 6L6 12L0 6Z", ...common, fill: paint }),
    dot: () => drawn("circle", { cx: 6, cy: 6, r: 3.4, ...common, fill: paint }),
  };
  return drawn("svg", { class: "mark", viewBox: "0 0 12 12", "aria-hidden": "true" }, (shapes[kind] || (() => drawn("path", { d: "M6 1L11 6L6 11L1 6Z", ...common })))());
}

const ICONS = {
  first: "M1 1h2v12H1zM13 1v12L4 7z", back: "M11 1v12L2 7z", play: "M2 0v14l11-7z", pause: "M2 1h4v12H2zM8 1h4v12H8z",
  next: "M3 1v12l9-6z", last: "M11 1h2v12h-2zM1 1v12l9-6z",
};
const icon = (name) => drawn("svg", { viewBox: "0 0 14 14", "aria-hidden": "true" }, drawn("path", { d: ICONS[name] }));

// The picture at a step: for each node, the newest value of each key; for each fact, its newest value.
function fold(trace, step) {
  const state = { nodes: new Map(), facts: new Map(), ran: new Set() };
  for (const node of trace.nodes) state.nodes.set(node.id, { ...(node.state || {}) });
  for (const event of trace.events.slice(0, step + 1)) {
    for (const [id, values] of Object.entries(event.set || {})) state.nodes.set(id, { ...state.nodes.get(id), ...values });
    for (const [id, value] of Object.entries(event.facts || {})) state.facts.set(id, value);
    if (event.line) state.ran.add(event.line.join(":"));
  }
  return state;
}

function darkAround(host) {
  const light = document.body && document.body.dataset.jpThemeLight;
  if (light !== undefined) return light === "false";
  for (let at = host; at; at = at.parentElement || (at.getRootNode() || {}).host) {
    const found = getComputedStyle(at).backgroundColor.match(/[\d.]+/g);
    if (found && (found.length < 4 || Number(found[3]) > 0)) return 0.3 * found[0] + 0.59 * found[1] + 0.11 * found[2] < 128;
  }
  return false;
}

class Player {
  constructor(host, page, style) {
    this.page = page;
    this.host = host;
    const shadow = host.shadowRoot || host.attachShadow({ mode: "open" });
    this.root = element("div", { class: "player", tabindex: 0, role: "group", "aria-label": `Simulation: ${page.title}. Arrow keys step, space plays.` });
    shadow.replaceChildren(element("style", { text: style }), this.root);
    this.root.addEventListener("keydown", (event) => this.key(event));
    const follow = () => this.root.classList.toggle("dark", darkAround(host));
    follow();
    new MutationObserver(follow).observe(document.body, { attributes: true });
    this.variant = Math.min(page.selected || 0, page.variants.length - 1);
    this.detailed = false;
    this.selected = null;
    const before = (window.simulationPositions || {})[page.title];
    // Recorded again by a control, the figure stays at the step that was looked at.
    if (before && before.host !== host && !before.host.isConnected) { this.at = before.at; this.kept = true; }
    this.open();
  }

  open() {
    this.stop();
    this.trace = this.page.variants[this.variant].trace;
    this.steps = this.trace.events.map((_, index) => index).filter((index) => this.detailed || (this.trace.events[index].level || 1) < 2);
    if (!this.kept) this.at = Math.max(0, this.steps.findLastIndex((index) => index <= this.trace.opens));
    this.kept = true;
    this.at = Math.min(this.at, this.steps.length - 1);
    this.views = [];
    const restore = this.root.getRootNode().activeElement;
    const label = restore && restore.getAttribute("aria-label");
    this.root.replaceChildren(this.head(), element("p", { class: "point", text: this.trace.point || this.page.point || "" }), this.transport(), this.caption(), this.stage());
    this.show();
    // A rebuilt picture must not drop the keyboard out of the figure.
    if (label) (this.root.querySelector(`[aria-label="${CSS.escape(label)}"]`) || this.root).focus({ preventScroll: true });
  }

  switchTo(index) {
    // Recordings of the same length are compared step by step; others open where they have most to show.
    this.kept = this.page.variants[index].trace.events.length === this.trace.events.length;
    this.variant = index;
    this.selected = null;
    this.open();
  }

  head() {
    const choices = this.page.variants.length < 2 ? null : element("span", { class: "choices", role: "group", "aria-label": "Variant" },
      ...this.page.variants.map((variant, index) => element("button", {
        text: variant.label, "aria-label": variant.label, "aria-pressed": String(index === this.variant),
        onclick: () => { this.switchTo(index); },
      })));
    this.factBoxes = new Map((this.trace.facts || []).map((fact) => [fact.id, element("b", { text: "–" })]));
    const facts = element("div", { class: "facts" }, ...(this.trace.facts || []).map((fact) => element("div", { class: "fact" }, this.factBoxes.get(fact.id), element("span", { text: fact.label }))));
    return element("div", { class: "head" }, element("h2", { text: this.page.title }), choices, facts);
  }

  transport() {
    const button = (name, label, act, kind = "") => element("button", { class: kind, "aria-label": label, title: label, onclick: act }, icon(name));
    this.playButton = button("play", "Play", () => this.toggle(), "play");
    this.slider = element("input", { type: "range", min: 0, max: this.steps.length - 1, step: 1, "aria-label": "Step", oninput: () => { this.stop(); this.go(Number(this.slider.value)); } });
    this.count = element("span", { class: "count" });
    const finer = this.trace.events.some((event) => event.level > 1) ? element("button", {
      class: "wide", text: "every detail", "aria-label": "every detail", "aria-pressed": String(this.detailed),
      onclick: () => { const event = this.steps[this.at]; this.detailed = !this.detailed; this.open(); this.go(Math.max(0, this.steps.findLastIndex((index) => index <= event))); },
    }) : null;
    return element("div", { class: "transport" }, button("first", "First step", () => { this.stop(); this.go(0); }), button("back", "One step back", () => { this.stop(); this.go(this.at - 1); }),
      this.playButton, button("next", "One step on", () => { this.stop(); this.go(this.at + 1); }), button("last", "Last step", () => { this.stop(); this.go(this.steps.length - 1); }), this.slider, this.count, finer);
  }

  caption() {
    this.tag = element("span", { class: "tag" });
    this.said = element("span", { class: "said" });
    this.captionBox = element("div", { class: "caption", "aria-live": "polite" }, this.tag, this.said);
    return this.captionBox;
  }

  stage() {
    const made = { full: [], left: [], right: [] };
    for (const view of this.trace.views) {
      const built = VIEWS[view.kind](this, view);
      this.views.push(built);
      const legend = view.legend ? element("div", { class: "legend" }, ...view.legend.map(([shape, text]) => element("span", {}, mark(shape.replace("orphan-", ""), shape.startsWith("orphan-")), text))) : null;
      const box = element("section", { class: `view ${view.kind}-view` }, view.title ? element("h3", { text: view.title }) : null, built.node, legend);
      if (view.tallest) box.style.setProperty("--tallest", `${view.tallest}px`);
      made[view.place || "full"].push(box);
    }
    const stage = element("div", { class: `stage ${made.right.length ? "two" : ""} ${this.trace.even ? "even" : ""}` });
    for (const box of made.full.filter((_, index) => this.trace.views.filter((view) => (view.place || "full") === "full")[index].above)) stage.append(element("div", { class: "full" }, box));
    if (made.left.length) stage.append(element("div", { class: "column" }, ...made.left));
    if (made.right.length) stage.append(element("div", { class: "column" }, ...made.right));
    for (const box of made.full) if (!box.parentElement) stage.append(element("div", { class: "full" }, box));
    return stage;
  }

  go(step) {
    this.at = Math.max(0, Math.min(step, this.steps.length - 1));
    this.show();
  }

  show() {
    const index = this.steps[this.at];
    const event = this.trace.events[index];
    const state = fold(this.trace, index);
    this.slider.value = this.at;
    this.slider.setAttribute("aria-valuetext", `${event.tag || event.kind}: ${event.say}`);
    this.count.textContent = `${this.at + 1} / ${this.steps.length}`;
    this.tag.textContent = event.tag || event.kind;
    this.said.textContent = event.say;
    this.captionBox.style.cssText = tone(event.tone);
    for (const [id, box] of this.factBoxes) {
      const value = state.facts.has(id) ? String(state.facts.get(id)) : "–";
      box.classList.toggle("changed", Boolean(event.facts && id in event.facts));
      box.textContent = value;
    }
    for (const view of this.views) view.show(state, event, index);
    (window.simulationPositions ??= {})[this.page.title] = { host: this.host, at: this.at };
  }

  select(id) {
    this.selected = this.selected === id ? null : id;
    this.show();
  }

  toggle() {
    if (this.timer) return this.stop();
    if (this.at >= this.steps.length - 1) this.go(0);
    this.captionBox.setAttribute("aria-live", "off");
    this.playButton.replaceChildren(icon("pause"));
    this.playButton.setAttribute("aria-label", "Pause");
    this.timer = setInterval(() => {
      if (!this.host.isConnected || this.at >= this.steps.length - 1) return this.stop();
      this.go(this.at + 1);
    }, this.trace.pace || 900);
  }

  stop() {
    if (!this.timer) return;
    clearInterval(this.timer);
    this.timer = null;
    this.captionBox.setAttribute("aria-live", "polite");
    this.playButton.replaceChildren(icon("play"));
    this.playButton.setAttribute("aria-label", "Play");
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.key === "Tab" || event.key === "Escape") return;
    // JupyterLab would take the key as its own: arrows move cells, d d deletes one.
    event.stopPropagation();
    const target = event.composedPath()[0];
    const moves = { ArrowRight: () => this.go(this.at + 1), ArrowLeft: () => this.go(this.at - 1), Home: () => this.go(0), End: () => this.go(this.steps.length - 1) };
    if (target.tagName === "INPUT" && event.key in moves) { this.stop(); moves[event.key](); return event.preventDefault(); }
    if (event.key in moves) { this.stop(); moves[event.key](); event.preventDefault(); }
    else if (event.key === " " && target.tagName !== "BUTTON" && target.getAttribute("role") !== "button") { this.toggle(); event.preventDefault(); }
    else if (event.key === "Enter" && target.getAttribute("role") === "button") { target.click(); event.preventDefault(); }
  }
}
