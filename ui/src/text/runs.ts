import { decodeEntities } from "./entities";

/** A run of code and its highlight classes; empty for plain code. */
export type Run = [classes: string, text: string];

/**
 * Runs in the output of highlight.js, which consists of nested `<span class="…">` and escaped text.
 * Interpolations within a string are coloured as code, not as part of the string.
 */
export function runsOf(html: string): Run[] {
  const runs: Run[] = [];
  const open: string[] = [];
  for (const [token, classes] of html.matchAll(/<span class="([^"]*)">|<\/span>|[^<]+/gu)) {
    if (classes !== undefined) open.push(classes);
    else if (token === "</span>") open.pop();
    else {
      const inner = open.slice(open.lastIndexOf("hljs-subst") + 1);
      runs.push([inner.join(" "), decodeEntities(token)]);
    }
  }
  return runs;
}

/** Splits runs into pieces of these lengths. */
export function cutRuns(runs: Run[], lengths: number[]): Run[][] {
  const pieces: Run[][] = [];
  let at = 0;
  let taken = 0;
  for (const length of lengths) {
    const piece: Run[] = [];
    let room = length;
    for (let run = runs[at]; run && room > 0; run = runs[at]) {
      const [classes, text] = run;
      const part = text.slice(taken, taken + room);
      piece.push([classes, part]);
      room -= part.length;
      taken += part.length;
      if (taken === text.length) {
        at += 1;
        taken = 0;
      }
    }
    pieces.push(piece);
  }
  return pieces;
}
