import type { ApiStatus } from "../state/types";

/** Numbers of requests; empty if there are none. */
export function requestWords(status: ApiStatus): string {
  if (status.kind !== "listening") return "";
  const { running, waiting } = status;
  const counts = [running > 0 && `${running} running`, waiting > 0 && `${waiting} waiting`];
  const words = counts.filter(Boolean).join(", ");
  return words === "" ? "" : `Requests: ${words}`;
}

/** Status in few words. */
export function statusWords(status: ApiStatus): string {
  switch (status.kind) {
    case "off":
      return "Off";
    case "starting":
      return "Starting…";
    case "listening":
      return "Listening";
    case "failed":
      return "Not running";
    default:
      return status satisfies never;
  }
}

/** Reach of the open local API, who may connect, and the way to switch it off. */
export const REACH =
  "The local API is on: a separate program, goldcrest-serve, listens at 127.0.0.1 and [::1], which only this computer reaches. Programs with its key may connect. Settings → Local API switches it off.";
