// Folded parts are printed too, and a link into one opens it. Nothing else is done here.
"use strict";
const folded = () => document.querySelectorAll("details:not([open])");
let opened = [];
addEventListener("beforeprint", () => {
  opened = [...folded()];
  for (const part of opened) part.open = true;
});
addEventListener("afterprint", () => {
  for (const part of opened) part.open = false;
  opened = [];
});
function reveal() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const part = target && target.closest("details");
  if (part) { part.open = true; target.scrollIntoView(); }
}
addEventListener("hashchange", reveal);
reveal();
