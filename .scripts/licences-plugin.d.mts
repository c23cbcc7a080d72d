import type { Plugin } from "vite";

export const MODULE: string;
export function licences(): { page: Plugin; worker: Plugin };
