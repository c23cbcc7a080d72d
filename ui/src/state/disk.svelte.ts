import type { Failure, Host } from "../host/host";
import { remedy } from "./failures";

const ASK_AFTER_MS = 3000;

/** Tracks a full disk, from the first error until a write succeeds. */
export class Disk {
  full = $state(false);

  constructor(
    private readonly host: Host,
    private readonly onroom: () => void,
  ) {}

  /** Reports a failure. Returns true if the disk notice covers it. */
  report(error: Failure | null): boolean {
    if (error === null || remedy(error.code) !== "make-room") return false;
    if (!this.full) {
      this.full = true;
      this.#askLater();
    }
    return true;
  }

  #askLater(): void {
    setTimeout(() => void this.#ask(), ASK_AFTER_MS);
  }

  async #ask(): Promise<void> {
    if (!(await this.host.hasRoom().catch(() => false))) return this.#askLater();
    this.full = false;
    this.onroom();
  }
}
