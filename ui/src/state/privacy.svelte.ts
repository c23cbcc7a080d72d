import type { Host, NetworkCheck, ProcessSockets } from "../host/host";
import type { Notices } from "./notices.svelte";

export type CheckedNetwork = { check: NetworkCheck; at: Date };

/** Socket whose own end has an address that only this computer reaches. */
const LOOPBACK = /^TCP(?:, listens on)? (?:127\.0\.0\.1|\[::1\]):/u;

/** Network sockets that lead, or may lead, to other computers. */
export const outward = ({ role, network }: ProcessSockets): string[] =>
  role === "api" ? network.filter((socket) => !LOOPBACK.test(socket)) : network;

/** Number of network connections at the last check. */
export class Privacy {
  last = $state.raw<CheckedNetwork | null>(null);
  checking = $state(false);

  constructor(
    private readonly host: Host,
    private readonly notices: Notices,
  ) {}

  /**
   * Connections of the app without those of downloads and of the local API on this computer; null
   * if not all could be counted.
   */
  readonly connections = $derived.by((): number | null => {
    if (this.last?.check.type !== "counted") return null;
    const own = this.last.check.processes.filter(({ role }) => role !== "download");
    if (own.some(({ readable }) => !readable)) return null;
    return own.reduce((sum, process) => sum + outward(process).length, 0);
  });

  /** Counts the connections now. */
  async check(): Promise<void> {
    if (this.checking) return;
    this.checking = true;
    const check = await this.notices.guard(this.host.checkNetwork());
    if (check) this.last = { check, at: new Date() };
    this.checking = false;
  }
}
