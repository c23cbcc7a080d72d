// What host.test.js carries into the real window: the cases of every host, and the window's own host.
import { hostCases } from "../../src/host/suite";
import { HostStage, type Questions } from "../../src/host/suite-stage";
import { tauriHost } from "../../src/host/tauri";

/** Runs one case; the reason when it fails. */
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
