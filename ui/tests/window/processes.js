// Processes of the app and their network sockets, from /proc.
import { readdirSync, readlinkSync } from "node:fs";
import { read } from "./app.js";

/** Network sockets of a process and its descendants, with their ports. */
export function sockets(pid) {
  const found = [];
  for (const process of [pid, ...descendants(pid)]) {
    const inodes = new Set(
      names(`/proc/${process}/fd`).map(
        (name) => /^socket:\[(\d+)\]/.exec(link(`/proc/${process}/fd/${name}`))?.[1],
      ),
    );
    for (const protocol of ["tcp", "tcp6", "udp", "udp6"])
      for (const line of read(`/proc/${process}/net/${protocol}`).trim().split("\n").slice(1)) {
        const fields = line.trim().split(/\s+/);
        const port = (address) => Number.parseInt(address.split(":")[1], 16);
        if (inodes.has(fields[9]))
          found.push({ process, protocol, local: port(fields[1]), remote: port(fields[2]) });
      }
  }
  return found;
}

/** Matches the port that WebKit opens for the test driver. */
export function isDriverPort(pid) {
  const [, port] = /WEBKIT_INSPECTOR_SERVER=[\d.]+:(\d+)/.exec(read(`/proc/${pid}/environ`)) ?? [];
  return ({ local, remote }) => [local, remote].includes(Number(port));
}

// A process may exit during the reads, and then has no sockets.

function names(folder) {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** Target of a symbolic link, or an empty text if it no longer exists. */
export function link(path) {
  try {
    return readlinkSync(path);
  } catch {
    return "";
  }
}

/** Descendants of a process. Each thread has its own children. */
export function descendants(pid) {
  const children = names(`/proc/${pid}/task`).flatMap((thread) =>
    read(`/proc/${pid}/task/${thread}/children`).split(" ").filter(Boolean).map(Number),
  );
  return children.flatMap((child) => [child, ...descendants(child)]);
}
