/** What may be done at once without the window standing still: a part of one frame. */
const SLICE_MS = 6;

let end = 0;

/** Whether the work of this moment has taken its share of the frame; whoever asks shares it. */
export function enough(): boolean {
  const now = performance.now();
  if (end === 0) {
    end = now + SLICE_MS;
    setTimeout(() => (end = 0));
  }
  return now > end;
}
