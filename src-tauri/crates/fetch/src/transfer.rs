//! One connection: the bytes of a file from the end of the last one.

use std::io::{Read, Seek, SeekFrom, Write};
use std::time::{Duration, Instant};

use download::{DownloadEvent, DownloadPaths, DownloadRequest, free_bytes};
use ureq::Body;
use ureq::http::{Response, StatusCode};
use url::Url;

use crate::client::{Client, Question, ServerAnswer, reading_failure, without_query};
use crate::error::FetchError;
use crate::headers::header;
use crate::incomplete::Incomplete;
use crate::output;
use crate::retries::units;
use crate::test_setting::test_setting;

/// Bytes that are read and written at once.
const PART: usize = 1 << 17;
/// Interval between two reports.
const REPORT: Duration = Duration::from_millis(250);
/// Reports over which the speed is averaged: about five seconds.
const SPEED_REPORTS: usize = 20;
/// Bytes of a disk that are left to other programs.
const RESERVE: u64 = 128 << 20;
/// Setting of tests in bytes, in place of [`RESERVE`].
const RESERVE_SETTING: &str = "GOLDCREST_FETCH_RESERVE";

/// Maximum bytes of a file of unknown size. It takes no more than half of the free space, either.
const LARGEST: u64 = 64 << 30;
/// Units in which a server must send at least [`LEAST`] bytes.
const SLOW: u32 = 120;
const LEAST: u64 = 1 << 13;

/// A file that is being downloaded.
pub struct Transfer<'a> {
    pub client: &'a Client,
    pub url: &'a Url,
    pub request: &'a DownloadRequest,
    pub paths: &'a DownloadPaths,
    pub incomplete: &'a Incomplete,
    /// Bytes in the partial file.
    pub done: u64,
    /// True if the parts of the file came over several connections.
    pub is_pieced: bool,
    /// Bytes of the disk that are left to other programs.
    reserve: u64,
    /// Maximum bytes of the file if its size is unknown.
    largest: u64,
}

impl<'a> Transfer<'a> {
    /// Starts a transfer of which `done` bytes are there already.
    pub fn new(
        client: &'a Client,
        url: &'a Url,
        request: &'a DownloadRequest,
        paths: &'a DownloadPaths,
        incomplete: &'a Incomplete,
        done: u64,
    ) -> Self {
        Self {
            client,
            url,
            request,
            paths,
            incomplete,
            done,
            is_pieced: done > 0,
            reserve: test_setting(RESERVE_SETTING).unwrap_or(RESERVE),
            largest: free_bytes(paths.folder())
                .map_or(LARGEST, |free| LARGEST.min(done.saturating_add(free) / 2)),
        }
    }

    /// Restarts from the beginning.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn begin_again(&mut self) -> Result<(), FetchError> {
        self.incomplete.with(self.paths, |file| file.set_len(0))?;
        self.done = 0;
        self.is_pieced = false;
        Ok(())
    }

    /// Truncates the partial file to the file's size. The hash decides whether the rest is the file.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn shorten(&mut self, bytes: u64) -> Result<(), FetchError> {
        self.incomplete
            .with(self.paths, |file| file.set_len(bytes))?;
        self.done = bytes;
        Ok(())
    }

    /// Receives over one connection, until the end of the file or a failure.
    ///
    /// # Errors
    /// Returns the reason for an early end.
    pub fn receive(&mut self) -> Result<(), FetchError> {
        let mut question = Question {
            request: self.request,
            headers_only: false,
            from: Some(self.done).filter(|done| *done > 0),
        };
        let mut answer = self.client.ask(self.url, &question)?;
        if question.from.is_some() {
            let (status, range) = (answer.response.status(), range(&answer.response));
            if status == StatusCode::RANGE_NOT_SATISFIABLE && range.total == Some(self.done) {
                // Complete. The hash decides whether it is the file.
                return Ok(());
            }
            let is_next = range.first == question.from;
            if status == StatusCode::RANGE_NOT_SATISFIABLE
                || status == StatusCode::PARTIAL_CONTENT && !is_next
            {
                // The server has no range that begins here.
                question.from = None;
                answer = self.client.ask(self.url, &question)?;
            }
        }
        check_status(self.client, &answer)?;
        let host = answer.host();
        let (first, total) = self.begin(&host, &answer.response)?;
        self.read(&host, answer.response, first, total)
    }

    /// Compares the headers with the request, and returns the first byte and, if known, the size of the whole file.
    fn begin(
        &mut self,
        host: &str,
        response: &Response<Body>,
    ) -> Result<(u64, Option<u64>), FetchError> {
        let headers = response.headers();
        if header(headers, "content-type").is_some_and(|it| it.starts_with("text/html")) {
            return Err(FetchError::WebPage {
                host: host.to_owned(),
            });
        }
        let encoding = header(headers, "content-encoding").filter(|it| *it != "identity");
        if let Some(encoding) = encoding {
            return Err(FetchError::Encoded {
                host: host.to_owned(),
                encoding: encoding.to_owned(),
            });
        }
        let (first, total) = if response.status() == StatusCode::PARTIAL_CONTENT {
            let range = range(response);
            (range.first, range.total)
        } else {
            let length = header(headers, "content-length").and_then(|it| it.parse().ok());
            (Some(0), length)
        };
        if let Some(error) = total.and_then(|found| FetchError::size(host, found, self.request)) {
            return Err(error);
        }
        // If it ignores the range, the bytes that are there already are skipped.
        let first = first.filter(|first| *first == self.done || *first == 0);
        let first = first.ok_or_else(|| FetchError::CutOff {
            host: host.to_owned(),
        })?;
        self.is_pieced |= self.done > 0;
        Ok((first, self.request.bytes.or(total)))
    }

    /// Writes the body, which begins with the byte `first`, except for what is there already.
    fn read(
        &mut self,
        host: &str,
        response: Response<Body>,
        first: u64,
        total: Option<u64>,
    ) -> Result<(), FetchError> {
        let mut body = response.into_body().into_reader();
        let mut part = vec![0; PART];
        let mut at = first;
        let mut speed = Speed::new(at);
        let (mut counted, mut since) = (at, Instant::now());
        let mut checked = self.done;
        self.check_space(total)?;
        self.report(total, &speed);
        // The body is not read beyond the size: the hash decides whether the bytes are the file.
        while total.is_none_or(|total| self.done < total) {
            let read = match body.read(&mut part) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(reading_failure(host, error)),
            };
            let ends = at + read as u64;
            let ends = total.map_or(ends, |total| ends.min(total));
            if total.is_none() && ends > self.largest {
                return Err(FetchError::Endless {
                    host: host.to_owned(),
                });
            }
            self.write(at, &part, ends)?;
            at += read as u64;
            if since.elapsed() >= units(SLOW) {
                if at - counted < LEAST {
                    return Err(FetchError::TooSlow {
                        host: host.to_owned(),
                    });
                }
                (counted, since) = (at, Instant::now());
            }
            let is_due = speed.is_due();
            // However fast the line is, the reserve is not used up between two checks.
            if is_due || self.done - checked > self.reserve / 4 {
                self.check_space(total)?;
                checked = self.done;
            }
            if is_due {
                speed.add(at);
                self.report(total, &speed);
            }
        }
        speed.add(at);
        self.report(total, &speed);
        if total.is_some_and(|total| self.done < total) {
            return Err(FetchError::CutOff {
                host: host.to_owned(),
            });
        }
        Ok(())
    }

    /// Writes the new bytes of a part: `part` begins with the byte `at`, and counts up to `ends`.
    fn write(&mut self, at: u64, part: &[u8], ends: u64) -> Result<(), FetchError> {
        if ends <= self.done {
            return Ok(());
        }
        let offset = |byte: u64| usize::try_from(byte - at).unwrap_or(part.len());
        let part = &part[offset(self.done)..offset(ends)];
        self.incomplete.with(self.paths, |file| {
            file.seek(SeekFrom::Start(self.done))?;
            file.write_all(part)
        })?;
        self.done = ends;
        Ok(())
    }

    /// Stops before the disk is full, which would hurt other programs.
    ///
    /// # Errors
    /// Fails if the rest of the file does not fit.
    pub fn check_space(&self, total: Option<u64>) -> Result<(), FetchError> {
        let folder = self.paths.folder();
        let rest = total.unwrap_or(0).saturating_sub(self.done);
        let needed = rest.saturating_add(self.reserve);
        match free_bytes(folder) {
            Ok(free) if free < needed => Err(FetchError::NoSpace {
                folder: folder.to_owned(),
                needed,
                free,
            }),
            // If the system does not report it, the write shows it.
            _ => Ok(()),
        }
    }

    fn report(&self, total: Option<u64>, speed: &Speed) {
        output::emit(&DownloadEvent::Progress {
            done: self.done,
            total,
            bytes_per_second: speed.bytes_per_second(),
        });
    }
}

/// Checks that the server sends the file.
///
/// # Errors
/// Returns the meaning of its status.
pub fn check_status(client: &Client, answer: &ServerAnswer) -> Result<(), FetchError> {
    let host = answer.host();
    let status = answer.response.status().as_u16();
    Err(match status {
        200 | 206 => return Ok(()),
        401 | 403 if !answer.is_hub => FetchError::Refused { host, status },
        401 | 403 if client.has_token() => FetchError::TokenRefused { host, status },
        401 | 403 => FetchError::NeedsToken { host, status },
        404 | 410 => FetchError::NotFound {
            address: without_query(&answer.url),
            status,
        },
        // Statuses from 520 on are Cloudflare's, about a server behind it.
        408 | 425 | 429 | 500 | 502 | 503 | 504 | 520..=530 => {
            let seconds = header(answer.response.headers(), "retry-after");
            let seconds = seconds.and_then(|it| it.parse().ok());
            FetchError::Busy {
                host,
                status,
                retry_after: seconds,
            }
        }
        _ => FetchError::Status { host, status },
    })
}

/// Parsed `Content-Range` of an answer.
#[derive(Debug, Default, PartialEq, Eq)]
struct ContentRange {
    /// First byte; `None` in a refusal.
    first: Option<u64>,
    /// Bytes of the whole file.
    total: Option<u64>,
}

fn range(response: &Response<Body>) -> ContentRange {
    let range = header(response.headers(), "content-range").and_then(content_range);
    range.unwrap_or_default()
}

/// Parses `bytes FIRST-LAST/TOTAL` or `bytes */TOTAL`.
fn content_range(text: &str) -> Option<ContentRange> {
    let (range, total) = text.strip_prefix("bytes ")?.split_once('/')?;
    let first = match range.trim() {
        "*" => None,
        range => Some(range.split_once('-')?.0.trim().parse().ok()?),
    };
    let total = total.trim().parse().ok();
    Some(ContentRange { first, total })
}

/// Speed of the last seconds.
struct Speed {
    reports: Vec<(Instant, u64)>,
}

impl Speed {
    fn new(done: u64) -> Self {
        Self {
            reports: vec![(Instant::now(), done)],
        }
    }

    fn is_due(&self) -> bool {
        self.reports
            .last()
            .is_none_or(|(at, _)| at.elapsed() >= REPORT)
    }

    fn add(&mut self, done: u64) {
        if self.reports.len() > SPEED_REPORTS {
            self.reports.remove(0);
        }
        self.reports.push((Instant::now(), done));
    }

    /// Returns the speed; `None` until there is something to measure.
    fn bytes_per_second(&self) -> Option<f64> {
        let ((begun, first), (ended, last)) = self.reports.first().zip(self.reports.last())?;
        let seconds = ended.duration_since(*begun).as_secs_f64();
        (seconds > 0.0).then(|| (last - first) as f64 / seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_content_range_is_read_with_and_without_the_size() {
        for (text, first, total) in [
            ("bytes 5-9/10", Some(5), Some(10)),
            ("bytes 5-9/*", Some(5), None),
            ("bytes */10", None, Some(10)),
        ] {
            assert_eq!(content_range(text), Some(ContentRange { first, total }));
        }
        for other in ["", "items 5-9/10", "bytes -9/10", "bytes 5-9"] {
            assert_eq!(content_range(other), None, "{other}");
        }
    }
}
