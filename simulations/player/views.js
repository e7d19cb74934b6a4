// Views made of boxes: a tree of nodes, their details, cards, a grid, bins. Each returns {node, show(state, event)}.

const pressable = (player, id, label) => ({ tabindex: 0, role: "button", "aria-label": label, onclick: () => player.select(id) });

function badges(state) {
  return Object.entries(state).filter(([, value]) => Array.isArray(value) && value.length === 2 && typeof value[1] === "string")
    .map(([, [name, text]]) => element("span", { class: `badge ${name}`, style: tone(name), text }));
}

function treeView(player, view) {
  const trace = player.trace;
  const shown = trace.nodes.filter((node) => !view.kinds || view.kinds.includes(node.kind));
  const byId = new Map(shown.map((node) => [node.id, node]));
  const depth = (node) => (node.parent && byId.has(node.parent) ? 1 + depth(byId.get(node.parent)) : 0);
  const parents = new Set(shown.map((node) => node.parent));
  const folded = new Set(shown.filter((node) => node.folded).map((node) => node.id));
  const hiddenBy = (node) => { for (let at = byId.get(node.parent); at; at = byId.get(at.parent)) if (folded.has(at.id)) return true; return false; };
  const rows = new Map();
  const refold = () => shown.forEach((node) => rows.get(node.id).row.classList.toggle("hidden", hiddenBy(node)));
  for (const node of shown) {
    const holder = element("span", { class: "badges" });
    const shape = element("span", { class: "shape", text: node.shape || "" });
    const fold = parents.has(node.id) && (depth(node) > 0 || view.foldRoot) ? element("button", {
      class: "fold", text: folded.has(node.id) ? "▸" : "▾", "aria-label": `Fold ${node.label}`, "aria-expanded": String(!folded.has(node.id)),
      onclick: (event) => {
        event.stopPropagation();
        folded.has(node.id) ? folded.delete(node.id) : folded.add(node.id);
        event.currentTarget.textContent = folded.has(node.id) ? "▸" : "▾";
        event.currentTarget.setAttribute("aria-expanded", String(!folded.has(node.id)));
        refold();
      },
    }) : null;
    const row = element("div", { class: "row", style: `--depth:${depth(node)}`, "data-node": node.id });
    const name = element("span", { class: "name", text: node.label, ...pressable(player, node.id, `${node.label}, ${node.type || node.kind}`) });
    name.addEventListener("click", (event) => event.stopPropagation());
    row.addEventListener("click", () => player.select(node.id));
    row.append(...[fold, mark(node.kind, node.registered === false), name, element("span", { class: "type", text: node.type || "" }), holder, shape].filter(Boolean));
    rows.set(node.id, { row, holder, shape });
  }
  const box = element("div", { class: "tree scroll", tabindex: 0, role: "region", "aria-label": view.title || "Tree of modules" }, ...[...rows.values()].map((entry) => entry.row));
  refold();
  let last = new Map();
  return {
    node: box,
    show(state, event) {
      for (const node of shown) {
        const now = state.nodes.get(node.id) || {};
        const { row, holder, shape } = rows.get(node.id);
        const registered = now.registered ?? node.registered;
        const active = event.node === node.id;
        const key = JSON.stringify([now, registered, active, player.selected === node.id, active && event.tone]);
        if (last.get(node.id) === key) continue;
        last.set(node.id, key);
        row.className = ["row", registered === false ? "orphan" : registered === true ? "registered" : "", now.present === false ? "absent" : "",
          active ? "active" : "", player.selected === node.id ? "selected" : "", row.classList.contains("hidden") ? "hidden" : ""].join(" ");
        row.style.cssText = `--depth:${depth(node)};${active ? tone(event.tone) : ""}`;
        row.querySelector(".mark").replaceWith(mark(node.kind, registered === false));
        holder.replaceChildren(...badges(now));
        if (now.shape !== undefined) shape.textContent = now.shape;
      }
      const entry = rows.get(event.node);
      if (!entry) return;
      const { row } = entry;
      if (row.classList.contains("hidden")) return;
      // Scrolls the tree only, never the page under the reader.
      const top = row.offsetTop - box.offsetTop;
      if (top < box.scrollTop || top + row.offsetHeight > box.scrollTop + box.clientHeight) box.scrollTop = top - box.clientHeight / 2;
    },
  };
}

function detailView(player) {
  const list = element("dl", { class: "detail" });
  const heading = element("h3", { text: "" });
  const byId = new Map(player.trace.nodes.map((node) => [node.id, node]));
  let last = "";
  return {
    node: element("div", {}, heading, list),
    show(state, event) {
      const id = player.selected || event.node;
      const node = byId.get(id);
      const now = state.nodes.get(id) || {};
      const key = JSON.stringify([id, player.selected, now, event.details]);
      if (key === last) return;
      last = key;
      heading.textContent = !node ? "Click a row to see its details" : player.selected ? `Selected: ${node.id}` : `Now: ${node.id}`;
      const pairs = node ? [...Object.entries({ ...(node.details || {}), ...(now.details || {}) }), ...Object.entries((!player.selected && event.details) || {})] : [];
      list.replaceChildren(...pairs.flatMap(([name, text]) => [element("dt", { text: name }), element("dd", { text: String(text) })]));
    },
  };
}

function cardsView(player, view) {
  const cards = new Map(player.trace.nodes.filter((node) => view.nodes.includes(node.id)).map((node) => {
    const value = element("div", { class: "value" });
    const note = element("div", { class: "note" });
    const card = element("div", { class: "card", style: tone(node.tone || node.kind), ...pressable(player, node.id, node.label) },
      element("div", { class: "name", text: node.label }), element("div", { class: "type", text: node.type || "" }), value, note);
    return [node.id, { card, value, note }];
  }));
  return {
    node: element("div", { class: "cards" }, ...[...cards.values()].map((entry) => entry.card)),
    show(state, event) {
      for (const [id, { card, value, note }] of cards) {
        const now = state.nodes.get(id) || {};
        value.textContent = now.value ?? "–";
        const moved = Boolean(event.set && event.set[id]);
        note.textContent = moved ? now.note || "" : now.rest || "";
        card.classList.toggle("active", moved);
      }
    },
  };
}

function gridView(player, view) {
  const cells = new Map();
  const heads = view.columns.map((name) => element("th", { scope: "col", text: name }));
  const rows = view.rows.map((name, row) => element("tr", {}, element("th", { scope: "row", text: name }), ...view.columns.map((_, column) => {
    const cell = element("td");
    cells.set(`${view.prefix || "cell"}:${row}:${column}`, cell);
    return cell;
  })));
  return {
    node: element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": view.title || "Grid" }, element("table", { class: "grid" }, element("thead", {}, element("tr", {}, element("th"), ...heads)), element("tbody", {}, ...rows))),
    show(state, event) {
      for (const [id, cell] of cells) {
        const told = (state.nodes.get(id) || {}).told;
        cell.textContent = told ? told[1] : "";
        cell.className = [told ? "told" : "", event.set && event.set[id] ? "active" : ""].join(" ");
        cell.style.cssText = told ? tone(told[0]) : "";
      }
      rows.forEach((row, index) => row.classList.toggle("now", event.row === index));
      heads.forEach((head, index) => head.classList.toggle("now", event.column === index));
    },
  };
}

function binsView(player, view) {
  const boxes = new Map(view.bins.map((bin) => {
    const holder = element("div");
    return [bin.id, { box: element("div", { class: "bin", title: bin.says || "" }, element("h4", { text: bin.id }), holder), holder }];
  }));
  let before = new Map();
  return {
    node: element("div", { class: "bins" }, ...[...boxes.values()].map((entry) => entry.box)),
    show(state, event) {
      const here = new Map();
      for (const { box, holder } of boxes.values()) { holder.replaceChildren(); box.classList.remove("active"); }
      for (const node of player.trace.nodes.filter((one) => one.kind === "entry")) {
        const now = state.nodes.get(node.id) || {};
        for (const [index, bin] of (now.bins || []).entries()) {
          const target = boxes.get(bin);
          if (!target) continue;
          const arrived = before.size && before.get(node.id) !== now.bins.join();
          const paint = (now.paints || [])[index] || node.tone || "plain";
          target.holder.append(element("div", { class: `chip ${arrived ? "arrived" : ""}`, style: tone(paint) }, mark(paint === "registered" ? "module" : paint), element("span", {}, node.label, " ", element("small", { text: now.text || "" }))));
          if (event.set && event.set[node.id]) { target.box.classList.add("active"); target.box.style.cssText = tone(paint); }
        }
        here.set(node.id, (now.bins || []).join());
      }
      before = here;
    },
  };
}
