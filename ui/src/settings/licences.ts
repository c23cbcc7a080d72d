/** A package in the app. `texts`: indices of its licence texts in {@link Licences}. */
export type Package = { name: string; version: string; licence: string; texts: number[] };
export type Licences = { packages: Package[]; texts: string[] };

/**
 * Loads the third-party licences. The build writes them as a module, since the page may not fetch
 * anything.
 */
export async function readLicences(): Promise<Licences> {
  const address = new URL("licences.js", document.baseURI).href;
  const module = (await import(/* @vite-ignore */ address)) as { default: Licences };
  return module.default;
}
