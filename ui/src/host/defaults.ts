import { defaultSettings as constants } from "./bindings";
import type { Settings } from "./host";

/** The settings of which none was changed. */
export const defaultSettings: Settings = {
  ...constants,
  ownTemplates: [...constants.ownTemplates],
};
