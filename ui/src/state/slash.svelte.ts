import { type SlashCommand, slashCommands, type SlashName } from "../host/slash";
import type { Composer } from "./composer.svelte";
import { type Models, wholeName } from "./models.svelte";
import type { Notices } from "./notices.svelte";

export { slashCommands };

/** What the menu offers: a command, or what may stand behind one. */
export type SlashChoice = {
  /** What the box holds once it is chosen. */
  text: string;
  /** Behind it: what may follow. */
  argument: string;
  does: string;
  /** It can be run as it is. */
  ready: boolean;
};

/** What was typed in place of a message. */
type Typed =
  | { type: "message"; text: string }
  | { type: "command"; command: SlashCommand; argument: string }
  | { type: "refused"; why: string };

/** The commands that are typed behind a slash: the menu of them, and what they do. */
export class Slash {
  #at = $state(0);
  /** The menu was closed: what is typed is a message, whatever it begins with. */
  #dismissed = $state(false);

  /** Why a command cannot be run now, or null. */
  refusal: (name: SlashName) => string | null = () => null;
  run: (name: SlashName, argument: string) => void = () => undefined;
  /** Sends what the box holds. */
  onsend: () => void = () => undefined;

  constructor(
    private readonly composer: Composer,
    private readonly models: Models,
    private readonly notices: Notices,
  ) {}

  readonly choices = $derived.by((): SlashChoice[] => {
    const { text } = this.composer;
    return this.#dismissed || !text.startsWith("/") ? [] : this.#choicesFor(text);
  });
  /** The place of the choice that Enter takes. */
  readonly at = $derived.by(() => Math.min(this.#at, this.choices.length - 1));

  /** What is typed has changed. */
  typed(text: string): void {
    this.#at = 0;
    if (!text.startsWith("/")) this.#dismissed = false;
  }

  dismiss(): void {
    this.#dismissed = true;
  }

  /** Goes to the next choice; past an end it goes round. */
  step(step: 1 | -1): void {
    const { length } = this.choices;
    if (length > 0) this.#at = (this.at + step + length) % length;
  }

  goTo(at: number): void {
    this.#at = at;
  }

  /** Writes a choice into the box, to be gone on with. */
  complete(choice: SlashChoice): void {
    this.#at = 0;
    this.composer.write(choice.argument === "" ? choice.text : `${choice.text} `);
    this.composer.focus();
  }

  /** Runs a choice, or writes it into the box where something has to follow it. */
  choose(choice: SlashChoice): void {
    if (!choice.ready) {
      this.complete(choice);
      return;
    }
    this.composer.write(choice.text);
    this.take();
  }

  /** Takes a command out of the box and runs it; false: what the box holds is a message. */
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
    // Gone before it runs: the command may open another chat, which has a text of its own.
    composer.write("");
    void composer.flush();
    this.run(command.name, argument);
    return true;
  }

  /** Says why something is no command; the text stays, and may be sent as it is. */
  #refuse(why: string): void {
    const send = (): void => {
      this.#dismissed = true;
      this.onsend();
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

  /** What can stand behind a command, where that is known. */
  #argumentsOf({ name, argument }: SlashCommand): string[] {
    if (name === "model") return [...new Set(this.models.here.map(wholeName))];
    return options(argument);
  }
}

/** The words of which one stands behind a command that takes no others. */
const options = (argument: string | null): string[] =>
  argument?.includes("|") ? argument.replaceAll(/[[\]]/gu, "").split("|") : [];

const isRequired = ({ argument }: SlashCommand): boolean =>
  argument !== null && !argument.startsWith("[");

const plain = (name: string): string => name.toLowerCase().replaceAll("-", "_");

const named = (name: string): SlashCommand | undefined =>
  slashCommands.find((command) => command.name === plain(name));

/** Reads what was typed. A path is no command, nor is what follows a space. */
export function read(text: string): Typed {
  const [, slashes = "", name = "", rest = ""] =
    /^(\/{1,2})([A-Za-z_-]+)(?:\s+([^]*))?$/u.exec(text) ?? [];
  if (name === "") return { type: "message", text };
  const command = named(name);
  // Two slashes stand for one that is meant.
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
