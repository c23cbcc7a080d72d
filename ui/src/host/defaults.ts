import { defaultSettings as constants } from "./bindings";
import type { Settings } from "./host";

export { parameters, settingNames } from "./bindings";

/** Settings without any changes. */
export const defaultSettings: Settings = { ...constants, tools: [], allowedTools: [] };
