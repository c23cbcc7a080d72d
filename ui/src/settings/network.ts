import { type CheckedNetwork, outward } from "../state/privacy.svelte";
import type { NetworkCheck, ProcessSockets } from "../state/types";

type Counted = Extract<NetworkCheck, { type: "counted" }>;

export const HOW =
  "Linux lists the open sockets of every program in /proc. Goldcrest went through those of its own process and of all that it has started, and counted each one that is in a table of a network protocol: TCP, UDP, UDP-Lite, ICMP and raw, IPv4 and IPv6, and raw packets.";

const plural = (count: number, one: string): string => `${count} ${one}${count === 1 ? "" : "s"}`;

/** Display names of the app's processes. */
export const ROLES: Record<ProcessSockets["role"], string> = {
  app: "the app",
  download: "the download that you started",
  api: "the local API that you switched on",
  "web-view": "draws the window",
  other: "started by the app",
};

/** Connections of a running download, or null. */
export function downloadWords({ processes }: Counted): string | null {
  const download = processes.filter(({ role }) => role === "download");
  if (download.length === 0) return null;
  const count = download.reduce((sum, { network }) => sum + network.length, 0);
  return `goldcrest-fetch, the program that downloads the model you asked for, has ${count}. It ends with the download.`;
}

/** Sockets of the local API that only this computer reaches, or null. */
function apiWords({ processes }: Counted): string | null {
  const served = processes.filter(({ role }) => role === "api");
  if (served.length === 0) return null;
  const count = served.reduce((sum, each) => sum + each.network.length - outward(each).length, 0);
  return `goldcrest-serve, the local API that you switched on, has ${plural(count, "socket")}, for programs on this computer only.`;
}

/** Time since a check. */
export function whenWords(at: Date, now: Date): string {
  const minutes = Math.floor((now.getTime() - at.getTime()) / 60_000);
  if (minutes < 1) return "checked just now";
  return minutes < 60 ? `checked ${plural(minutes, "minute")} ago` : `checked at ${clock(at)}`;
}

const clock = (at: Date): string =>
  at.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });

/** Full report of a check, to be copied and sent. */
export function reportText(
  { check, at }: CheckedNetwork,
  connections: number | null,
  version: string,
): string {
  const head = [`Goldcrest ${version}`, `Network connections, checked ${at.toISOString()}`];
  if (check.type === "notShown") return [...head, "", notShownWords(check.system)].join("\n");
  const processes = check.processes.flatMap((process) => [
    "",
    `${process.name}, process ${process.pid} (${ROLES[process.role]})`,
    ...(process.readable ? socketLines(process) : ["  Its sockets could not be read."]),
  ]);
  const sum = connections === null ? "not known" : String(connections);
  const others = [downloadWords(check), apiWords(check)];
  return [
    ...head,
    `Of the app: ${sum}`,
    ...others.filter((words) => words !== null),
    ...processes,
    "",
    HOW,
  ].join("\n");
}

function socketLines({ network, local, kernel, unconnected }: ProcessSockets): string[] {
  return [
    `  Network: ${network.length}`,
    ...network.map((each) => `    ${each}`),
    `  To programs on this computer: ${local}`,
    `  To the kernel: ${kernel}`,
    ...(unconnected > 0 ? [`  In no table, so not connected: ${unconnected}`] : []),
  ];
}

export function notShownWords(system: string): string {
  const names: Record<string, string> = { macos: "macOS", windows: "Windows" };
  return `Goldcrest counts its connections on Linux only; this is ${names[system] ?? system}. A firewall, or a program that lists open sockets, shows them from outside.`;
}
