// Loaded by `node -r` before any other script: explains that Node is too old. Its syntax is that of
// 2009 on purpose, for it has to run where the other scripts cannot even be parsed.
"use strict";

var engines = require("../package.json").engines.node;

/** Why this version of Node cannot be used, or undefined. `range` is of the form "^20.19 || >=22.12". */
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
