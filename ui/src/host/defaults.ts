import { defaultSettings as constants } from "./bindings";
import type { Settings } from "./host";

export { parameters, settingNames } from "./bindings";

/** The settings of which none was changed. */
export const defaultSettings: Settings = constants;
