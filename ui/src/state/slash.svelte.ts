import { type SlashCommand, slashCommands, type SlashName } from "../host/slash";
import type { Composer } from "./composer.svelte";
import { type Models, wholeName } from "./models.svelte";
import type { Notices } from "./notices.svelte";

export { slashCommands };

/** A completion in the menu: a command or one of its arguments. */
export type SlashChoice = {
  /** Text in the box after the choice. */
  text: string;
  /** Placeholder for the argument. */
  argument: string;
  does: string;
  /** True if it can be run as it is. */
  ready: boolean;
};

/** Result of parsing the text in the box. */
type Typed =
  | { type: "message"; text: string }
  | { type: "command"; command: SlashCommand; argument: string }
  | { type: "refused"; why: string };

/** Slash commands: the menu, and how they are run. */
export class Slash {
  #at = $state(0);
  /** Set once the menu is dismissed: the text is then a message, even if it begins with a slash. */
  #dismissed = $state(false);

  /** Reason why a command cannot be run now, or null. */
  refusal: (name: SlashName) => string | null = () => null;
  run: (name: SlashName, argument: string) => void = () => undefined;

  constructor(
    private readonly composer: Composer,
    private readonly models: Models,
    private readonly notices: Notices,
    /** Sends the text in the box. */
    private readonly send: () => void,
  ) {}

  readonly choices = $derived.by((): SlashChoice[] => {
    const { text } = this.composer;
    return this.#dismissed || !text.startsWith("/") ? [] : this.#choicesFor(text);
  });
  /** Index of the highlighted choice. */
  readonly at = $derived.by(() => Math.min(this.#at, this.choices.length - 1));

  /** Updates the menu after a change of the text. */
  typed(text: string): void {
    this.#at = 0;
    if (!text.startsWith("/")) this.#dismissed = false;
  }

  dismiss(): void {
    this.#dismissed = true;
  }

  /** Moves to the next choice and wraps around at the ends. */
  step(step: 1 | -1): void {
    const { length } = this.choices;
    if (length > 0) this.#at = (this.at + step + length) % length;
  }

  goTo(at: number): void {
    this.#at = at;
  }

  /** Completes a choice in the box, without running it. */
  complete(choice: SlashChoice): void {
    this.#at = 0;
    this.composer.write(choice.argument === "" ? choice.text : `${choice.text} `);
    this.composer.focus();
  }

  /** Runs a choice, or completes it if it needs an argument. */
  choose(choice: SlashChoice): void {
    if (!choice.ready) {
      this.complete(choice);
      return;
    }
    this.composer.write(choice.text);
    this.take();
  }

  /** Runs the command in the box and clears it. Returns false if the text is a message. */
  take(): boolean {
    const { composer } = this;
    const typed = this.#dismissed ? null : read(composer.text);
    this.#dismissed = false;
    if (typed === null || typed.type === "message") {
      if (typed && typed.text !== composer.text) composer.write(typed.text);
      return false;
    }
    if (typed.type === "refused") {
      this.#refuse(typed.why);
      return true;
    }
    const { command, argument } = typed;
    const refusal = this.refusal(command.name);
    if (refusal !== null) {
      this.#refuse(refusal);
      return true;
    }
    // Cleared before the run: the command may open another chat, which has its own draft.
    composer.write("");
    void composer.flush();
    this.run(command.name, argument);
    return true;
  }

  /** Shows why a text is not a valid command. It stays in the box, and may be sent as a message. */
  #refuse(why: string): void {
    const send = (): void => {
      this.#dismissed = true;
      this.send();
    };
    this.notices.show(why, { label: "Send as a message", run: send });
  }

  #choicesFor(text: string): SlashChoice[] {
    const typed = /^\/([A-Za-z_-]*)(?:([ \t]+)([^\n]*))?$/u.exec(text);
    if (!typed) return [];
    const [, name = "", blank = "", rest = ""] = typed;
    if (blank === "") {
      const begun = slashCommands.filter(
        (command) => command.name.startsWith(plain(name)) && this.refusal(command.name) === null,
      );
      return begun.map((command) => ({
        text: `/${command.name}`,
        // The menu lists them once the command is chosen.
        argument:
          options(command.argument).length > 0 && !isRequired(command)
            ? "[…]"
            : (command.argument ?? ""),
        does: command.does,
        ready: !isRequired(command),
      }));
    }
    const command = named(name);
    if (!command) return [];
    return this.#argumentsOf(command)
      .filter((argument) => argument.toLowerCase().startsWith(rest.toLowerCase()))
      .map((argument) => ({
        text: `/${command.name} ${argument}`,
        argument: "",
        does: "",
        ready: true,
      }));
  }

  /** Possible arguments of a command, if known. */
  #argumentsOf({ name, argument }: SlashCommand): string[] {
    if (name === "model") return [...new Set(this.models.here.map(wholeName))];
    return options(argument);
  }
}

/** Options of a command that accepts a fixed set of arguments. */
const options = (argument: string | null): string[] =>
  argument?.includes("|") ? argument.replaceAll(/[[\]]/gu, "").split("|") : [];

const isRequired = ({ argument }: SlashCommand): boolean =>
  argument !== null && !argument.startsWith("[");

const plain = (name: string): string => name.toLowerCase().replaceAll("-", "_");

const named = (name: string): SlashCommand | undefined =>
  slashCommands.find((command) => command.name === plain(name));

/** Parses the text in the box. A path is not a command, nor is text after a space. */
export function read(text: string): Typed {
  const [, slashes = "", name = "", rest = ""] =
    /^(\/{1,2})([A-Za-z_-]+)(?:\s+([^]*))?$/u.exec(text) ?? [];
  if (name === "") return { type: "message", text };
  const command = named(name);
  // Two slashes escape a literal one.
  if (slashes === "//") return { type: "message", text: command ? text.slice(1) : text };
  if (!command) return { type: "refused", why: `There is no command /${name}.` };
  const argument = rest.trim();
  if (argument !== "" && command.argument === null)
    return { type: "refused", why: `/${command.name} takes nothing behind it.` };
  const wanted = options(command.argument);
  const mayBeAlone = argument === "" && !isRequired(command);
  if (wanted.length > 0 && !mayBeAlone && !wanted.includes(argument.toLowerCase()))
    return { type: "refused", why: `/${command.name} takes one of these: ${wanted.join(", ")}.` };
  return {
    type: "command",
    command,
    argument: wanted.length > 0 ? argument.toLowerCase() : argument,
  };
}
