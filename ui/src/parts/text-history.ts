/**
 * Text and selection of a field. The selection is null for types that do not expose it, such as
 * numbers.
 */
export type FieldState = { text: string; start: number | null; end: number | null };

type Field = HTMLTextAreaElement | HTMLInputElement;
type Step = "undo" | "redo";

const MOST_STEPS = 100;
/** Pause in typing after which a new undo step begins. */
const PAUSE_MS = 1000;

/** Input types that are merged into one step; any other is a step of its own. */
const RUNS: Record<string, string> = {
  insertText: "typing",
  insertCompositionText: "composition",
  deleteCompositionText: "composition",
  insertFromComposition: "composition",
  deleteContentBackward: "backspace",
  deleteContentForward: "delete",
  deleteByDrag: "drag",
  insertFromDrop: "drag",
};

/**
 * Undo history of one field. WebKitGTK has no keys for its own history, which covers the whole
 * page: undo in one field could change another. So `document.execCommand("undo")` does not work
 * here.
 */
export class TextHistory {
  #past: FieldState[] = [];
  #future: FieldState[] = [];
  #last: FieldState | null = null;
  #run: string | undefined;
  #editedAt = 0;

  /** Records an edit. `inputType`: see `InputEvent.inputType`; `now`: time in milliseconds. */
  record(before: FieldState, after: FieldState, inputType: string, now: number): void {
    if (before.text === after.text) return;
    this.#forgetWhereChanged(before.text);
    const run = RUNS[inputType];
    const continues =
      run !== undefined &&
      run === this.#run &&
      now - this.#editedAt < PAUSE_MS &&
      (run === "drag" || (isSame(before, this.#last) && !beginsWord(before, after, run)));
    if (!continues) this.#past = [...this.#past.slice(1 - MOST_STEPS), before];
    this.#future = [];
    this.#last = after;
    this.#run = run;
    this.#editedAt = now;
  }

  /** Moves to the previous or next state; null if there is none. */
  step(step: Step, now: FieldState): FieldState | null {
    this.#forgetWhereChanged(now.text);
    const [from, to] = step === "undo" ? [this.#past, this.#future] : [this.#future, this.#past];
    const state = from.pop();
    if (!state) return null;
    to.push(now);
    this.#last = state;
    this.#run = undefined;
    return state;
  }

  /**
   * Clears the history if the program has replaced the text, for example by that of another chat.
   */
  #forgetWhereChanged(text: string): void {
    if (this.#last === null || this.#last.text === text) return;
    this.#past = [];
    this.#future = [];
    this.#last = null;
    this.#run = undefined;
  }
}

const isSame = (a: FieldState, b: FieldState | null): boolean =>
  a.start === b?.start && a.end === b.end;

function beginsWord(before: FieldState, after: FieldState, run: string): boolean {
  if (run !== "typing" || before.start === null) return false;
  const [last = "", next = ""] = [before.text[before.start - 1], after.text[before.start]];
  return /\s/u.test(last) && !/\s/u.test(next);
}

const histories = new WeakMap<Field, TextHistory>();
/** State of each field before the current edit. Dragging edits two fields at once. */
const before = new WeakMap<Field, FieldState>();

export const isTextField = (target: EventTarget | null): target is Field =>
  target instanceof HTMLTextAreaElement ||
  (target instanceof HTMLInputElement && !["radio", "checkbox"].includes(target.type));

const stateOf = (field: Field): FieldState => ({
  text: field.value,
  start: field.selectionStart,
  end: field.selectionEnd,
});

/**
 * Notes the state before an edit. Listens on the window, which receives the event before the fields
 * do.
 */
export function noteBeforeInput({ target }: InputEvent): void {
  if (isTextField(target)) before.set(target, stateOf(target));
}

/** Records the edit that `noteBeforeInput` has noted. */
export function noteInput(event: Event): void {
  const { target, isTrusted, timeStamp } = event;
  if (!isTrusted || !isTextField(target)) return;
  const state = before.get(target);
  if (!state) return;
  before.delete(target);
  const history = histories.get(target) ?? new TextHistory();
  histories.set(target, history);
  const inputType = event instanceof InputEvent ? event.inputType : "";
  history.record(state, stateOf(target), inputType, timeStamp);
}

/** Undoes or redoes an edit of the field; false if there is none. */
function stepIn(field: Field, step: Step): boolean {
  const state = histories.get(field)?.step(step, stateOf(field));
  if (!state) return false;
  field.value = state.text;
  if (state.start !== null) field.setSelectionRange(state.start, state.end);
  const inputType = step === "undo" ? "historyUndo" : "historyRedo";
  field.dispatchEvent(new InputEvent("input", { bubbles: true, inputType }));
  return true;
}

/** Clears the history of a field whose text now belongs to something else. */
export function forgetEdits(field: Field): void {
  histories.delete(field);
}

/** Handles the undo and redo keys in a field. Returns true if it uses the key. */
export function takeUndoKeys(event: KeyboardEvent): boolean {
  const { target, key, ctrlKey, metaKey, shiftKey, altKey } = event;
  if (!isTextField(target) || altKey || (!ctrlKey && !metaKey)) return false;
  const letter = key.toLowerCase();
  const isUndo = letter === "z" && !shiftKey;
  const isRedo = (letter === "z" && shiftKey) || (letter === "y" && !shiftKey);
  if (!isUndo && !isRedo) return false;
  // A held key stops at the end of the field's history, and does not undo changes in the app.
  return stepIn(target, isUndo ? "undo" : "redo") || event.repeat;
}
