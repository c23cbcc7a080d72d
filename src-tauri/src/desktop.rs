//! Interface to the desktop: a file picker and the browser.

use std::path::{Path, PathBuf};

use host::test_hooks;
use tauri::{AppHandle, Manager, Runtime};
use tauri_plugin_dialog::{DialogExt, FileDialogBuilder, FilePath};
use url::Url;

use crate::main_window;

/// The desktop. Dialogs block, and so may every call that starts a program or moves a file.
pub trait Desktop: Send + Sync {
    /// Lets the person choose files, or one; none if the dialog was closed. The dialog begins in `from`.
    fn open_files(
        &self,
        title: &str,
        filter: FileFilter,
        from: Option<&Path>,
        many: bool,
    ) -> Vec<PathBuf>;

    /// Lets the person choose the path of a file to write; the dialog begins in `from`. Choosing an existing one confirms
    /// that it is replaced.
    fn save_file(&self, title: &str, name: &str, from: Option<&Path>) -> Option<PathBuf>;

    /// Lets the person choose a folder; the dialog begins in `from`.
    fn pick_folder(&self, title: &str, from: &Path) -> Option<PathBuf>;

    /// Opens the dialog that prints the page of the window.
    fn print(&self) -> Result<(), chat::Failure>;

    /// Restarts the app.
    fn restart(&self);

    /// Shows a file in the person's file manager.
    fn reveal(&self, file: &Path) -> Result<(), chat::Failure>;

    /// Moves files to the trash of the system.
    fn trash(&self, files: &[PathBuf]) -> Result<(), chat::Failure>;

    /// Opens an address in the person's browser.
    fn browse(&self, url: &Url) -> Result<(), chat::Failure>;

    /// Opens a folder in the person's file manager.
    fn show_folder(&self, folder: &Path) -> Result<(), chat::Failure>;

    /// Gives the window's frame these colours.
    fn set_theme(&self, theme: chat::Theme);

    /// Draws the page this large, in percent.
    fn set_zoom(&self, percent: u32);

    /// Ends the app as closing the window does.
    fn quit(&self);
}

/// Filter of a dialog: the name of the file type, and its extensions.
pub type FileFilter = (&'static str, &'static [&'static str]);

/// The window's own desktop.
pub struct NativeDesktop<R: Runtime>(pub AppHandle<R>);

impl<R: Runtime> NativeDesktop<R> {
    /// Returns the choice in a dialog of this title, which begins in `from`.
    fn pick(
        &self,
        title: &str,
        from: Option<&Path>,
        show: impl FnOnce(FileDialogBuilder<R>) -> Option<Vec<FilePath>>,
    ) -> Vec<PathBuf> {
        if let Some(file) = test_hooks::picked_file() {
            return vec![file];
        }
        let mut dialog = self.0.dialog().file().set_title(title);
        if let Some(from) = from {
            dialog = dialog.set_directory(from);
        }
        let picked = show(dialog);
        let paths = picked.into_iter().flatten();
        paths.filter_map(|path| path.into_path().ok()).collect()
    }
}

impl<R: Runtime> Desktop for NativeDesktop<R> {
    fn open_files(
        &self,
        title: &str,
        filter: FileFilter,
        from: Option<&Path>,
        many: bool,
    ) -> Vec<PathBuf> {
        self.pick(title, from, |dialog| {
            let dialog = dialog.add_filter(filter.0, filter.1);
            if many {
                dialog.blocking_pick_files()
            } else {
                dialog.blocking_pick_file().map(|file| vec![file])
            }
        })
    }

    fn save_file(&self, title: &str, name: &str, from: Option<&Path>) -> Option<PathBuf> {
        let extension = Path::new(name).extension()?.to_str()?;
        let show = |dialog: FileDialogBuilder<R>| {
            let dialog = dialog.set_file_name(name);
            let dialog = dialog.add_filter(extension.to_uppercase(), &[extension]);
            dialog.blocking_save_file().map(|file| vec![file])
        };
        self.pick(title, from, show).pop()
    }

    fn pick_folder(&self, title: &str, from: &Path) -> Option<PathBuf> {
        let show =
            |dialog: FileDialogBuilder<R>| dialog.blocking_pick_folder().map(|folder| vec![folder]);
        self.pick(title, Some(from), show).pop()
    }

    fn print(&self) -> Result<(), chat::Failure> {
        let printed = self
            .0
            .get_webview_window(main_window::MAIN)
            .map(|window| window.print());
        match printed {
            Some(Err(error)) => Err(chat::Failure::other(format!(
                "The dialog did not open: {error}"
            ))),
            _ => Ok(()),
        }
    }

    fn restart(&self) {
        self.0.request_restart();
    }

    fn reveal(&self, file: &Path) -> Result<(), chat::Failure> {
        tauri_plugin_opener::reveal_item_in_dir(file)
            .map_err(|error| chat::Failure::other(format!("The folder did not open: {error}")))
    }

    fn trash(&self, files: &[PathBuf]) -> Result<(), chat::Failure> {
        for file in files {
            move_to_trash(file).map_err(|error| {
                let file = file.display();
                chat::Failure::other(format!("{file} was not moved to the trash: {error}"))
            })?;
        }
        Ok(())
    }

    fn browse(&self, url: &Url) -> Result<(), chat::Failure> {
        tauri_plugin_opener::open_url(url.as_str(), None::<&str>)
            .map_err(|error| chat::Failure::other(format!("The browser did not open: {error}")))
    }

    fn show_folder(&self, folder: &Path) -> Result<(), chat::Failure> {
        tauri_plugin_opener::open_path(folder, None::<&str>)
            .map_err(|error| chat::Failure::other(format!("The folder did not open: {error}")))
    }

    fn quit(&self) {
        self.0.exit(0);
    }

    fn set_theme(&self, theme: chat::Theme) {
        let set = self
            .0
            .get_webview_window(main_window::MAIN)
            .map(|window| main_window::set_theme(&window, theme));
        if let Some(Err(error)) = set {
            tracing::warn!("could not set the window theme: {error}");
        }
    }

    fn set_zoom(&self, percent: u32) {
        let set = self
            .0
            .get_webview_window(main_window::MAIN)
            .map(|window| main_window::set_zoom(&window, percent));
        if let Some(Err(error)) = set {
            tracing::warn!("could not zoom the page: {error}");
        }
    }
}

/// Moves a file to the trash by the rules of the system, so that its file manager can restore it. A link is moved
/// without its target.
#[cfg(target_os = "linux")]
fn move_to_trash(file: &Path) -> Result<(), gtk::glib::Error> {
    use gtk::gio::prelude::FileExt;
    gtk::gio::File::for_path(file).trash(gtk::gio::Cancellable::NONE)
}

#[cfg(not(target_os = "linux"))]
fn move_to_trash(file: &Path) -> Result<(), trash::Error> {
    trash::delete(file)
}

/// Checks an address for the browser: a page or a mail, never a file or a program.
pub fn link(url: &str) -> Result<Url, chat::Failure> {
    let url = Url::parse(url)
        .map_err(|error| chat::Failure::other(format!("That is not an address: {error}")))?;
    match url.scheme() {
        "http" | "https" if !url.username().is_empty() || url.password().is_some() => {
            Err(chat::Failure::other(
                "This address has a user name or a password in it, behind which another page can hide. It is not \
                 opened.",
            ))
        }
        "http" | "https" => Ok(url),
        "mailto" => Ok(mail(url)),
        scheme => Err(chat::Failure::other(format!(
            "Only web and mail addresses are opened, not {scheme}:"
        ))),
    }
}

/// Reduces a mail address to a subject and a body: mail programs may act on other fields, such as attachments.
fn mail(mut url: Url) -> Url {
    let is_text = |field: &&str| {
        let name = field.split('=').next().unwrap_or_default();
        ["subject", "body"]
            .iter()
            .any(|known| name.eq_ignore_ascii_case(known))
    };
    let query = url.query().unwrap_or_default();
    let kept: Vec<&str> = query.split('&').filter(is_text).collect();
    let kept = kept.join("&");
    url.set_query(Some(kept.as_str()).filter(|kept| !kept.is_empty()));
    url.set_fragment(None);
    url
}

#[cfg(test)]
mod tests {
    use super::link;

    #[test]
    fn a_mail_has_a_subject_and_a_body_and_attaches_nothing() {
        for (given, kept) in [
            ("mailto:a@b", "mailto:a@b"),
            ("mailto:a@b?attach=/etc/passwd", "mailto:a@b"),
            (
                "mailto:a@b?Subject=A%20b&attach=/etc/passwd&cc=c@d&body=x%26attach=y#z",
                "mailto:a@b?Subject=A%20b&body=x%26attach=y",
            ),
            ("mailto:a@b?%61ttach=x&bcc=c@d", "mailto:a@b"),
        ] {
            assert_eq!(link(given).expect("a link").as_str(), kept);
        }
    }

    #[test]
    fn only_web_and_mail_addresses_are_links() {
        for good in [
            "https://example.org/a?b#c",
            "http://example.org",
            "mailto:a@example.org",
        ] {
            assert!(link(good).is_ok(), "{good}");
        }
        for bad in [
            "file:///etc/passwd",
            "javascript:alert(1)",
            "data:text/html,x",
            "smb://host/share",
            "tauri://localhost",
            "/usr/bin/true",
            "",
        ] {
            assert!(link(bad).is_err(), "{bad}");
        }
    }
}
