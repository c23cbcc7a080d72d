import { decodeEntities } from "./entities";

/** A run of code and the classes that colour it; no classes where it is plain. */
export type Run = [classes: string, text: string];

/**
 * The runs of what highlight.js returns: nested `<span class="…">` and escaped text, nothing else.
 * What is interpolated in a string is coloured as code, not as a part of the string.
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

/** The same runs cut into pieces of these lengths. */
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
