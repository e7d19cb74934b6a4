// Finds its own figure: the script's parent, so that any number of figures may share a page and no name is global.
const script = document.currentScript;
const figure = script ? script.parentElement : document.querySelector("[data-simulation]:not([data-alive])");
const host = figure.querySelector("[data-host]");
const page = JSON.parse(figure.querySelector("script[type='application/json']").textContent);
figure.dataset.alive = "";
try {
  new Player(host, page, STYLE);
} catch (error) {
  // The recorded steps stay readable as the table that lies in the page.
  if (host.shadowRoot) host.shadowRoot.replaceChildren(document.createElement("slot"));
  throw error;
}
