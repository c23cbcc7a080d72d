import { slashCommands as all } from "./bindings";

type Any = (typeof all)[number];

/** Name of a command that works in the window. */
export type SlashName = Exclude<Any, { place: "terminal" }>["name"];

/** A command of the window: its name, its argument and its effect. */
export type SlashCommand = { name: SlashName; argument: string | null; does: string };

/** Commands of the window, from the table shared with the terminal. */
export const slashCommands: readonly SlashCommand[] = all.filter(
  (command): command is Exclude<Any, { place: "terminal" }> => command.place !== "terminal",
);
