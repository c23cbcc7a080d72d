import type { DatabaseCopy, Host, StartProblem, StartState } from "../host/host";
import { reason } from "./notices.svelte";

/** A failed start: the problem, and the options. */
export class Recovery {
  problem: StartProblem;
  /** Description of the running operation, shown to the user; null while they choose. */
  busy = $state<string | null>(null);
  /** Error of the last choice. */
  error = $state("");
  #started: (note: string | null) => void = () => undefined;
  /** Resolves once the app has started, with an optional note for the user. */
  readonly started = new Promise<string | null>((resolve) => (this.#started = resolve));

  constructor(
    private readonly host: Host,
    problem: StartProblem,
  ) {
    this.problem = $state.raw(problem);
  }

  restore(copy: DatabaseCopy): Promise<void> {
    const note = `Goldcrest goes on from ${copyName(copy)}.${this.#kept()}`;
    return this.#act("Restoring the backup…", () => this.host.restoreCopy(copy.name), note);
  }

  startEmpty(): Promise<void> {
    const note = `Goldcrest starts with no chats.${this.#kept()}`;
    return this.#act("Making an empty file…", () => this.host.startEmpty(), note);
  }

  openDamaged(): Promise<void> {
    const note = "You’re using the damaged file. Copy out anything you need.";
    return this.#act("Opening the file as it is…", () => this.host.openDamaged(), note);
  }

  /** True if the user may start with an empty database. */
  get canStartEmpty(): boolean {
    return this.problem.keptAs !== null || this.problem.kind === "missing";
  }

  retry(): Promise<void> {
    return this.#act("Trying again…", () => this.host.retryStart(), null);
  }

  /** Switches to another data folder; the app then restarts. */
  chooseFolder(): Promise<void> {
    return this.#leave(() => this.host.chooseDataFolder());
  }

  /** Switches to the default data folder; the app then restarts. */
  beginInDefaultFolder(): Promise<void> {
    return this.#leave(async () => {
      await this.host.beginInDefaultFolder();
      return true;
    });
  }

  async #leave(act: () => Promise<boolean>): Promise<void> {
    if (this.busy !== null) return;
    this.busy = "Goldcrest starts again…";
    this.error = "";
    const leaves = await act().catch((error: unknown) => {
      this.error = reason(error);
      return false;
    });
    if (!leaves) this.busy = null;
  }

  async showFolder(): Promise<void> {
    this.error = "";
    await this.host.showDataFolder().catch((error: unknown) => (this.error = reason(error)));
  }

  quit(): void {
    void this.host.quit();
  }

  #kept(): string {
    const { keptAs } = this.problem;
    return keptAs === null ? "" : ` Your previous file is kept as ${keptAs}.`;
  }

  async #act(busy: string, act: () => Promise<StartState>, note: string | null): Promise<void> {
    if (this.busy !== null) return;
    this.busy = busy;
    this.error = "";
    try {
      const startup = await act();
      if (startup.type === "ready") this.#started(note);
      else {
        this.problem = startup;
        this.error = "The problem is still there.";
      }
    } catch (error) {
      this.error = reason(error);
    }
    this.busy = null;
  }
}

/** Display name of a backup, by its date. */
export function copyName({ reason, day, time, number }: DatabaseCopy): string {
  if (day === null) return "the backup made before the last update";
  const [year = 0, month = 1, date = 1] = day.split("-").map(Number);
  const options = { day: "numeric", month: "long", year: "numeric" } as const;
  const words = new Date(year, month - 1, date).toLocaleDateString("en-GB", options);
  if (reason === "set-aside")
    return `the chats before a restore, ${words}${number > 1 ? ` (${number})` : ""}`;
  return time === null ? `the backup of ${words}` : `the backup of ${words}, ${time}`;
}

export const capital = (words: string): string => words.charAt(0).toUpperCase() + words.slice(1);

/** Heading and explanation for a failed start. */
export function explain({ kind, copies, opens }: StartProblem): { title: string; text: string } {
  switch (kind) {
    case "damaged": {
      const rest = copies.length
        ? "You can go on from a backup. What you wrote after it stays in the damaged file, which is kept."
        : "There is no good backup, but you can start with an empty one. The damaged file is kept.";
      return {
        title: "The file with your chats is damaged",
        text: `Goldcrest has not changed it. ${opens ? "It still opens, but parts of it may be missing or wrong. " : ""}${rest}`,
      };
    }
    case "missing":
      return {
        title: "The file with your chats is missing",
        text: `If it was moved, put it back, then try again. ${copies.length ? "Or go on from a backup: it has everything but what you wrote after it." : "There is no good backup, but you can start with an empty one."}`,
      };
    case "newer":
      return {
        title: "A newer Goldcrest wrote your chats",
        text: "This version cannot read them. Install the newer version, and they are there again.",
      };
    case "foreign":
      return {
        title: "This file is not Goldcrest’s",
        text: "Where your chats should be, there is the database of another program. Goldcrest has not changed it.",
      };
    case "unreadable":
      return {
        title: "The file with your chats cannot be opened",
        text: "Make sure that you may read and write the file, then try again.",
      };
    case "read-only":
      return {
        title: "The file with your chats cannot be written",
        text: "Goldcrest can read it, but not change it. Give yourself permission to write it, then try again.",
      };
    case "folder-not-writable":
      return {
        title: "Nothing can be written in the data folder",
        text: "Goldcrest keeps your chats there. Give yourself permission to write in it, then try again.",
      };
    case "held":
      return {
        title: "Another program holds the file with your chats",
        text: "Perhaps a backup or a sync program. Wait until it is done or close it, then try again.",
      };
    case "disk-full":
      return {
        title: "The disk is full",
        text: "Goldcrest needs a little room to open your chats. Nothing is lost: free some space, then try again.",
      };
    case "folder-missing":
      return {
        title: "The folder with your chats is not there",
        text: "You moved your chats to it. Perhaps its disk is not connected. Connect it, then try again. If they are in another folder now, choose that one. Or begin in the default folder: nothing is deleted.",
      };
    case "in-use":
      return {
        title: "Goldcrest is open already",
        text: "It uses the same data folder, but its window could not be brought to the front. Use that window, or close it and try again.",
      };
    case "importing":
      return {
        title: "Chats are being imported",
        text: "“goldcrest import” adds them from the command line. Wait until it is done, then try again.",
      };
    case "other":
      return { title: "Goldcrest could not start", text: "Your chats were not changed." };
  }
}
