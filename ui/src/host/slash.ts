import { slashCommands as all } from "./bindings";

type Any = (typeof all)[number];

/** The name of a command that works in the window. */
export type SlashName = Exclude<Any, { place: "terminal" }>["name"];

/** A command of the window: its name, what may follow it, and what it does. */
export type SlashCommand = { name: SlashName; argument: string | null; does: string };

/** The commands of the window, from the table that the terminal has too. */
export const slashCommands: readonly SlashCommand[] = all.filter(
  (command): command is Exclude<Any, { place: "terminal" }> => command.place !== "terminal",
);
