/** What takes what is typed, or has keys of its own: a dialog, a menu. */
const FIELDS =
  "input, textarea, select, [contenteditable], [role=textbox], [role=searchbox], dialog, [role=dialog], [role=menu]";

/** A key that writes something, or begins to, while no field has the focus to take it. */
export function isStrayTyping(event: KeyboardEvent): boolean {
  const { target, key } = event;
  if (event.defaultPrevented || !(target instanceof Element) || target.closest(FIELDS))
    return false;
  const pastes = (event.ctrlKey || event.metaKey) && !event.altKey && key.toLowerCase() === "v";
  if (pastes) return true;
  // With Ctrl and Alt together many layouts write, as AltGr does.
  const commands = event.metaKey || event.ctrlKey !== event.altKey;
  const writes = [...key].length === 1 || key === "Dead" || key === "Process";
  if (commands || !writes) return false;
  // The space bar presses what the keyboard has come to.
  return key !== " " || target === document.body || !target.matches(":focus-visible");
}
