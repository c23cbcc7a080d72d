// Preloaded by `node -r`: reports a Node version that is too old. Uses the syntax of 2009 on
// purpose, because it must run where the other scripts cannot even be parsed.
"use strict";

var engines = require("../package.json").engines.node;

/**
 * Reason why this version of Node is not supported, or undefined. `range`: of the form "^20.19 ||
 * >=22.12".
 */
function nodeProblem(version, range) {
  var found = numbers(version);
  var alternatives = range.split("||");
  for (var i = 0; i < alternatives.length; i++) {
    var least = numbers(alternatives[i]);
    var isSameMajor = found[0] === least[0];
    if (isSameMajor && found[1] >= least[1]) return undefined;
    if (alternatives[i].indexOf(">=") >= 0 && found[0] > least[0]) return undefined;
  }
  return (
    "Node " +
    alternatives.map(inWords).join(", or ") +
    " is needed, this is " +
    found.join(".") +
    ". Get a newer one from https://nodejs.org or a version manager, then run this again"
  );
}

function numbers(version) {
  return /(\d+)\.(\d+)(?:\.(\d+))?/.exec(version).slice(1).filter(Boolean).map(Number);
}

function inWords(alternative) {
  return numbers(alternative).join(".") + (alternative.indexOf(">=") >= 0 ? " or newer" : "");
}

var problem = nodeProblem(process.versions.node, engines);
if (problem) {
  console.error("goldcrest: " + problem);
  process.exit(1);
}

module.exports = { nodeProblem: nodeProblem };
