/** Elements that accept typing or have keys of their own, such as dialogs and menus. */
const FIELDS =
  "input, textarea, select, [contenteditable], [role=textbox], [role=searchbox], dialog, [role=dialog], [role=menu]";

/** Returns true for a key that types a character, or begins to, while no field has the focus. */
export function isStrayTyping(event: KeyboardEvent): boolean {
  const { target, key } = event;
  if (event.defaultPrevented || !(target instanceof Element) || target.closest(FIELDS))
    return false;
  const pastes = (event.ctrlKey || event.metaKey) && !event.altKey && key.toLowerCase() === "v";
  if (pastes) return true;
  // Ctrl+Alt types characters in many layouts, like AltGr.
  const commands = event.metaKey || event.ctrlKey !== event.altKey;
  const writes = [...key].length === 1 || key === "Dead" || key === "Process";
  if (commands || !writes) return false;
  // The space bar activates the element focused by keyboard.
  return key !== " " || target === document.body || !target.matches(":focus-visible");
}
