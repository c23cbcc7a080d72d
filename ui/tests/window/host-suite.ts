// Script that host.test.js runs in the real window: the shared host cases, and the window's own
// host.
import { hostCases } from "../../src/host/suite";
import { HostStage, type Questions } from "../../src/host/suite-stage";
import { tauriHost } from "../../src/host/tauri";

/** Runs one case. Resolves to the reason for a failure, or to null. */
export async function run(name: string, questions: Questions): Promise<string | null> {
  const found = hostCases.find((each) => each.name === name);
  if (!found) return "there is no such case";
  try {
    await found.run(await HostStage.open(tauriHost, questions));
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : JSON.stringify(error);
  }
}
