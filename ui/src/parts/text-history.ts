/** The text of a field, and what is selected in it; null where a field does not tell, as one for numbers. */
export type FieldState = { text: string; start: number | null; end: number | null };

type Field = HTMLTextAreaElement | HTMLInputElement;
type Step = "undo" | "redo";

const MOST_STEPS = 100;
/** After a pause of this length typing begins a step of its own. */
const PAUSE_MS = 1000;

/** Edits that go on from one event to the next; any other is a step by itself. */
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
 * The edits of one field. WebKitGTK has no keys for its own history of edits, which belongs to the whole page: undo in one
 * field would change another. `document.execCommand("undo")` therefore does not serve here.
 */
export class TextHistory {
  #past: FieldState[] = [];
  #future: FieldState[] = [];
  #last: FieldState | null = null;
  #run: string | undefined;
  #editedAt = 0;

  /** Records an edit, of the kind that `InputEvent.inputType` names, at a time in milliseconds. */
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

  /** Moves to the state before or after; null where there is none. */
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

  /** A text that the program has set, as that of another chat, has no edits to take back. */
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
/** As they were before the event of an edit that is under way. Dragging edits two fields at once. */
const before = new WeakMap<Field, FieldState>();

export const isTextField = (target: EventTarget | null): target is Field =>
  target instanceof HTMLTextAreaElement ||
  (target instanceof HTMLInputElement && !["radio", "checkbox"].includes(target.type));

const stateOf = (field: Field): FieldState => ({
  text: field.value,
  start: field.selectionStart,
  end: field.selectionEnd,
});

/** Has the edits of all fields recorded; for the window, which sees them before the fields do. */
export function noteBeforeInput({ target }: InputEvent): void {
  if (isTextField(target)) before.set(target, stateOf(target));
}

/** The second half of `noteBeforeInput`. */
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

/** Takes back an edit of the field, or makes it again; false where there is none. */
function stepIn(field: Field, step: Step): boolean {
  const state = histories.get(field)?.step(step, stateOf(field));
  if (!state) return false;
  field.value = state.text;
  if (state.start !== null) field.setSelectionRange(state.start, state.end);
  const inputType = step === "undo" ? "historyUndo" : "historyRedo";
  field.dispatchEvent(new InputEvent("input", { bubbles: true, inputType }));
  return true;
}

/** The edits of a field whose text is about something else now. */
export function forgetEdits(field: Field): void {
  histories.delete(field);
}

/** The keys of undo and redo in a field; true where it has taken them. */
export function takeUndoKeys(event: KeyboardEvent): boolean {
  const { target, key, ctrlKey, metaKey, shiftKey, altKey } = event;
  if (!isTextField(target) || altKey || (!ctrlKey && !metaKey)) return false;
  const letter = key.toLowerCase();
  const isUndo = letter === "z" && !shiftKey;
  const isRedo = (letter === "z" && shiftKey) || (letter === "y" && !shiftKey);
  if (!isUndo && !isRedo) return false;
  // A key that is held down ends where the field's edits do, before what was done in the app.
  return stepIn(target, isUndo ? "undo" : "redo") || event.repeat;
}
