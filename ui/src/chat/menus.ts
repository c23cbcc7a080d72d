import { copyText } from "../parts/clipboard";
import type { App } from "../state/app.svelte";
import type { Entry } from "../state/entry.svelte";
import type { MenuItem } from "../state/menu.svelte";

/** Menu of a message, in groups. */
export function messageMenu(app: App, entry: Entry): MenuItem[][] {
  if (entry.writing) return [];
  const { conversation } = app;
  const disabled = conversation.writing || app.current.readOnly;
  const { noun } = entry;
  const isAnswer = noun === "answer";
  const text: MenuItem[] = [
    {
      label: `Copy ${noun}`,
      ...(conversation.lastAnswer === entry && { keys: "Ctrl+Shift+C" }),
      run: () => void copyText(entry.text),
    },
    { label: `Edit ${noun}`, disabled, run: () => void (conversation.editing = entry.id) },
  ];
  /** True after an edit of the question, or if its answer was deleted. */
  const hasNoAnswer = !isAnswer && conversation.last === entry;
  const answer = (): void => void conversation.regenerate(entry, app.thinking.on);
  const goOn: MenuItem[] = [
    ...(hasNoAnswer ? [{ label: "Answer", disabled, run: answer }] : []),
    { label: "New chat from here", disabled, run: () => void app.navigation.fork(entry) },
  ];
  if (entry.canGoOn)
    goOn.unshift({ label: "Continue", disabled, run: () => void conversation.continue(entry) });
  const remove: MenuItem = {
    label: `Delete ${noun} and what follows`,
    keys: "Ctrl+Shift+Backspace",
    danger: true,
    disabled,
    run: () => void app.deletion.deleteMessage(entry),
  };
  return [
    ...(isAnswer ? [regenerateMenu(app, entry)] : []),
    entry.text === "" ? [] : text,
    goOn,
    [remove],
  ];
}

/** Options for a new answer. */
export function regenerateMenu(app: App, entry: Entry): MenuItem[] {
  const { conversation, thinking } = app;
  const disabled = conversation.writing || app.current.readOnly;
  const item = (label: string, run: () => Promise<boolean>): MenuItem => ({
    label,
    disabled,
    run: () => void run(),
  });
  return [
    {
      ...item("Regenerate", () => conversation.regenerate(entry, thinking.on)),
      ...(conversation.lastAnswer === entry && { keys: "Ctrl+R" }),
    },
    item("Shorter", () => conversation.regenerate(entry, thinking.on, "shorter")),
    item("Longer", () => conversation.regenerate(entry, thinking.on, "longer")),
    ...(thinking.possible
      ? [
          item("Without thinking", () => conversation.regenerate(entry, false)),
          item("With thinking", () => conversation.regenerate(entry, true)),
        ]
      : []),
  ];
}
