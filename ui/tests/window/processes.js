// The processes of the app and the network sockets that they hold, as /proc shows them.
import { readdirSync, readlinkSync } from "node:fs";
import { read } from "./app.js";

/** The network sockets that this process and those below it hold, with their ports. */
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

/** The port that WebKit has open because a test asked for a driver. */
export function isDriverPort(pid) {
  const [, port] = /WEBKIT_INSPECTOR_SERVER=[\d.]+:(\d+)/.exec(read(`/proc/${pid}/environ`)) ?? [];
  return ({ local, remote }) => [local, remote].includes(Number(port));
}

// A process may go while it is looked at: then it holds nothing.

function names(folder) {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** What a symbolic link leads to; nothing where it has gone. */
export function link(path) {
  try {
    return readlinkSync(path);
  } catch {
    return "";
  }
}

/** All processes below one: each thread has children of its own. */
export function descendants(pid) {
  const children = names(`/proc/${pid}/task`).flatMap((thread) =>
    read(`/proc/${pid}/task/${thread}/children`).split(" ").filter(Boolean).map(Number),
  );
  return children.flatMap((child) => [child, ...descendants(child)]);
}
