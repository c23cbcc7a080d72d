/** A package in the app; `texts` are the places of its licence texts in {@link Licences}. */
export type Package = { name: string; version: string; licence: string; texts: number[] };
export type Licences = { packages: Package[]; texts: string[] };

/** What the app contains of others. The build puts it beside the page, as a module, since the page may fetch nothing. */
export async function readLicences(): Promise<Licences> {
  const address = new URL("licences.js", document.baseURI).href;
  const module = (await import(/* @vite-ignore */ address)) as { default: Licences };
  return module.default;
}
