"use strict";
// Shows the raw output of a finding below it, once it is unfolded. Without this, the link in it leads there.
const MOST = 200000; // characters

async function read(raw) {
  const shown = document.createElement("pre");
  shown.className = "log";
  shown.tabIndex = 0;
  shown.textContent = "…";
  raw.append(shown);
  try {
    const answer = await fetch(raw.querySelector("a").href);
    shown.textContent = (await answer.text()).slice(0, MOST);
  } catch {
    shown.textContent = "the service does not answer";
  }
}

for (const raw of document.querySelectorAll("details.raw")) {
  raw.addEventListener("toggle", () => {
    if (raw.open && !raw.querySelector("pre")) {
      read(raw);
    }
  });
}
