import type { DownloadState } from "../host/host";
import { size, timeLeft } from "../text/figures";

/** Progress of a download, or of its verification, from 0 to 1; null if unknown. */
export function share({ done, total }: DownloadState): number | null {
  return total === null || total === 0 ? null : Math.min(1, done / total);
}

/** Whole percent, rounded down: 100 % means complete. */
export const percentOf = (share: number): string => `${Math.floor(share * 100)} %`;

/** Progress as text: 412 MB of 1.9 GB · 8.2 MB/s · 3 min left. */
export function progressWords(download: DownloadState): string {
  const here = share(download);
  const amount = [size(download.done), download.total !== null && `of ${size(download.total)}`]
    .filter(Boolean)
    .join(" ");
  switch (download.state) {
    case "running": {
      const { bytesPerSecond, secondsLeft } = download;
      const parts = [
        amount,
        bytesPerSecond !== null && `${size(bytesPerSecond)}/s`,
        secondsLeft !== null && `${timeLeft(secondsLeft)} left`,
      ];
      return parts.filter(Boolean).join(" · ");
    }
    case "waiting":
      return `${amount} · trying again within ${timeLeft(download.seconds)}`;
    case "verifying":
      return `Downloaded. Checking the file: ${percentOf(here ?? 0)}`;
    case "paused":
      return `Paused at ${amount}`;
    case "failed":
      return `Download failed at ${amount}`;
  }
}

/** Shortest form of the state: 42 %, paused. */
export function shortWords(download: DownloadState): string {
  const here = share(download);
  switch (download.state) {
    case "running":
    case "waiting":
      return here === null ? size(download.done) : percentOf(here);
    case "verifying":
      return "checking";
    case "paused":
      return "paused";
    case "failed":
      return "failed";
  }
}

/**
 * Announcement when the state of `download` follows `before`: on each change of state, and each
 * quarter.
 */
export function spokenWords(
  name: string,
  before: DownloadState | null,
  download: DownloadState,
): string | null {
  const changed = before?.state !== download.state;
  switch (download.state) {
    case "running": {
      const quarter = Math.floor((share(download) ?? 0) * 4);
      const last = before && !changed ? Math.floor((share(before) ?? 0) * 4) : 0;
      if (changed) return `Downloading ${name}.`;
      if (quarter <= last) return null;
      const { secondsLeft } = download;
      const left = secondsLeft === null ? "" : `, ${timeLeft(secondsLeft)} left`;
      return `${name}: ${quarter * 25} % downloaded${left}.`;
    }
    case "waiting":
      return changed ? `${download.message} Goldcrest tries to download ${name} again.` : null;
    case "verifying":
      return changed ? `${name} is downloaded. Checking the file.` : null;
    case "paused":
      return changed ? `Download of ${name} paused.` : null;
    case "failed":
      return changed ? `Download of ${name} failed. ${download.message}` : null;
  }
}
