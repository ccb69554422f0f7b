"use strict";
// Shows state, progress and log of a run as the service reports them; loads the page again once the run has ended.
const log = document.getElementById("log");
const state = document.getElementById("state");
const nodes = document.getElementById("nodes");

function row([name, at, text]) {
  const line = document.createElement("tr");
  const head = document.createElement("th");
  const link = document.createElement("a");
  head.scope = "row";
  link.href = `/nodes/${encodeURIComponent(name)}`;
  link.textContent = name;
  head.append(link);
  const cells = [at, text].map((value) => {
    const cell = document.createElement("td");
    cell.textContent = value;
    return cell;
  });
  line.append(head, ...cells);
  return line;
}

log.scrollTop = log.scrollHeight;
const changes = new EventSource(`/changes/runs/${encodeURIComponent(log.dataset.run)}`);
changes.onmessage = (event) => {
  const run = JSON.parse(event.data);
  const atEnd = log.scrollTop + log.clientHeight >= log.scrollHeight - 8;
  log.textContent = run.log;
  if (atEnd) {
    log.scrollTop = log.scrollHeight;
  }
  nodes.replaceChildren(...run.nodes.map(row));
  if (state.textContent !== run.state) {
    state.textContent = run.state;
  }
  if (!run.active) {
    changes.close();
    location.reload();
  }
};
