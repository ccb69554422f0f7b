"use strict";
// Filters the tiles, and replaces those that the service reports as changed. The service knows the parts of each node.
const racks = document.getElementById("racks");
const filter = document.getElementById("filter");
const shown = document.getElementById("shown");
const live = document.getElementById("live");

let found = new Set(); // names of nodes that the service has found by their parts
let waiting = 0;

function matches(tile) {
  return found.has(tile.id.slice("tile-".length))
    || filter.value.toLowerCase().split(/\s+/).every((word) => tile.dataset.text.includes(word));
}

async function ask(text) {
  const answer = await fetch(`/search?q=${encodeURIComponent(text)}`);
  if (answer.ok && filter.value.trim() === text) {
    found = new Set((await answer.json()).nodes);
    apply();
  }
}

function search() {
  clearTimeout(waiting);
  found = new Set();
  const text = filter.value.trim();
  if (text.length > 2) {
    waiting = setTimeout(() => ask(text).catch(() => {}), 250); // without an answer, the tiles' own texts are left
  }
}

function apply() {
  let count = 0;
  for (const tile of racks.querySelectorAll(".tile")) {
    tile.hidden = !matches(tile);
    count += tile.hidden ? 0 : 1;
  }
  for (const rack of racks.querySelectorAll(".rack")) {
    rack.hidden = !rack.querySelector(".tile:not([hidden])");
  }
  shown.textContent = filter.value ? `${count} shown` : "";
}

function recount() {
  const counts = new Map();
  for (const tile of racks.querySelectorAll(".tile")) {
    counts.set(tile.dataset.mark, (counts.get(tile.dataset.mark) || 0) + 1);
  }
  const line = document.getElementById("counts");
  line.replaceChildren(...[...counts].sort().flatMap(([mark, count]) => {
    const chip = document.createElement("a");
    chip.href = `#q=${encodeURIComponent(mark)}`;
    chip.className = `count ${mark.replaceAll(" ", "-")}`;
    chip.textContent = `${count} ${mark}`;
    return [chip, " "];
  }));
}

function replace(name, html) {
  const old = document.getElementById(`tile-${name}`);
  const fresh = new DOMParser().parseFromString(html, "text/html").body.firstElementChild;
  if (old && fresh) {
    old.replaceWith(fresh);
  } else {
    location.reload(); // a node that the page does not have yet
  }
}

filter.closest("p").hidden = false;
function follow() { // a count of the page, or an address with a filter
  filter.value = new URLSearchParams(location.hash.slice(1)).get("q") || "";
  search();
  apply();
}

window.addEventListener("hashchange", follow);
filter.addEventListener("input", () => {
  history.replaceState(null, "", filter.value ? `#q=${encodeURIComponent(filter.value)}` : location.pathname);
  search();
  apply();
});
follow();

const changes = new EventSource(`/changes?since=${racks.dataset.seq}`);
changes.onmessage = (event) => {
  for (const [name, html] of Object.entries(JSON.parse(event.data))) {
    replace(name, html);
  }
  recount();
  apply();
  live.textContent = `live, last change ${new Date().toLocaleTimeString()}`;
};
changes.onopen = () => { live.textContent = "live"; };
changes.onerror = () => { live.textContent = "the service does not answer; trying again"; };
