/** What may be done at once without the window standing still: a part of one frame. */
const SLICE_MS = 6;
const MOST_STEPS = 3;

let steps = 0;
let end = 0;

/** Whether the work of this moment has taken its share of the frame; asked after each step of it. */
export function enough(): boolean {
  const now = performance.now();
  if (steps === 0) {
    end = now + SLICE_MS;
    setTimeout(() => (steps = 0));
  }
  steps += 1;
  return steps >= MOST_STEPS || now > end;
}
