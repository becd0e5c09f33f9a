//! How the pages look besides our own style sheet: the operator's style sheet and logo.
//!
//! Invariants
//! - The style sheet stands in the page itself, allowed by its hash: a page needs nothing of another replica, and no other
//!   style sheet of the origin is allowed with it.
//! - The logo is served under a name made of its content, so that caches may keep it for ever; a replica that has another one
//!   gives that, uncached.
//!
//! Deliberately absent: templates. What a page has to say (the request ID, the button, the words in each language) cannot be
//! left out by a style sheet's mistake.

use std::io;
use std::path::{Path, PathBuf};

use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use base16ct::lower;
use chassis::audit;
use chassis::files::{self, POLL_INTERVAL};
use ring::digest;

use super::Pages;
use super::html::{STYLE, escape, source_of};
use crate::values::reserved::LOGO_PREFIX;

/// The setting: the folder with the style sheet and the logo.
pub(crate) const PAGES_DIR: &str = "EDGE_PAGES_DIR";
const STYLESHEET: &str = "style.css";
/// The logo's name in messages; its file is one of [`LOGO_FILES`].
const LOGO: &str = "the logo";
const LOGO_FILES: [&str; 4] = ["logo.svg", "logo.png", "logo.jpg", "logo.webp"];
/// The route of the logo.
pub(crate) const LOGO_ROUTE: &str = "/api/auth/logo/{name}";
/// Longest style sheet, in bytes: it is sent with every page.
const MAX_STYLESHEET_BYTES: usize = 64 * 1024;
/// Largest logo, in bytes: people wait for it before they can read on.
const MAX_LOGO_BYTES: usize = 256 * 1024;
/// Bytes of the hash in the logo's name: enough that no two logos meet.
const LOGO_HASH_BYTES: usize = 12;

/// Why a file of the look cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LookError {
    /// None of the names is there.
    #[error("has neither style.css nor logo.svg, logo.png, logo.jpg or logo.webp")]
    Empty,
    /// It cannot be read.
    #[error("cannot be read: {0}")]
    Unreadable(#[from] io::Error),
    /// The style sheet is no text.
    #[error("is not UTF-8")]
    NotText,
    /// It is too large, by this limit in KiB.
    #[error("is larger than {0} KiB")]
    TooLarge(usize),
    /// The style sheet would end the element it stands in.
    #[error("holds \"</\" or a NUL, which no style sheet needs")]
    Markup,
    /// The style sheet wants another one.
    #[error("holds \"@import\", which the pages' policy does not allow: put everything into this one file")]
    Import,
    /// The logo is of no kind browsers show everywhere.
    #[error("is neither SVG, PNG, JPEG nor WebP")]
    NoPicture,
}

/// A file that cannot be used, and why.
type WrongFile = (&'static str, LookError);

/// The files of the folder, and what they held at the start.
#[derive(Clone, Debug, Default)]
pub(crate) struct LookSettings {
    stylesheet: Option<PathBuf>,
    logo: Option<PathBuf>,
    /// What they held.
    pub(crate) look: Look,
}

impl LookSettings {
    /// Reads the files of `folder`.
    ///
    /// # Errors
    /// Each file that cannot be used, and why.
    pub(crate) fn read(folder: &Path) -> Result<Self, Vec<WrongFile>> {
        let existing = |name: &str| Some(folder.join(name)).filter(|path| path.is_file());
        let stylesheet = existing(STYLESHEET);
        let logo = LOGO_FILES.iter().find_map(|name| existing(name));
        if stylesheet.is_none() && logo.is_none() {
            return Err(vec![("the folder", LookError::Empty)]);
        }
        let content =
            |path: &Option<PathBuf>| path.as_ref().map(|path| files::read_bounded(path)).transpose();
        let style = content(&stylesheet).map_err(|error| vec![(STYLESHEET, error.into())])?;
        let picture = content(&logo).map_err(|error| vec![(LOGO, error.into())])?;
        let look = Look::parse(style.as_deref(), picture.as_deref())?;
        Ok(Self {
            stylesheet,
            logo,
            look,
        })
    }
}

/// How the pages look.
#[derive(Clone, Debug)]
pub(crate) struct Look {
    style: String,
    logo: Option<Logo>,
    policy: String,
}

#[derive(Clone, Debug)]
struct Logo {
    name: String,
    kind: &'static str,
    content: Vec<u8>,
}

impl Default for Look {
    fn default() -> Self {
        Self::of(String::new(), None)
    }
}

impl Look {
    /// Reads what the files hold.
    ///
    /// # Errors
    /// Each file that cannot be used, and why.
    fn parse(stylesheet: Option<&[u8]>, logo: Option<&[u8]>) -> Result<Self, Vec<WrongFile>> {
        match (
            stylesheet.map(style).transpose(),
            logo.map(Logo::parse).transpose(),
        ) {
            (Ok(style), Ok(logo)) => Ok(Self::of(style.unwrap_or_default(), logo)),
            (style, logo) => {
                let wrong = [(STYLESHEET, style.err()), (LOGO, logo.err())];
                let wrong = wrong.into_iter();
                Err(wrong.filter_map(|(file, error)| Some((file, error?))).collect())
            }
        }
    }

    fn of(style: String, logo: Option<Logo>) -> Self {
        let mut policy = format!("default-src 'none'; style-src {}", source_of(STYLE));
        if !style.is_empty() {
            policy.push(' ');
            policy.push_str(&source_of(&style));
        }
        if logo.is_some() {
            policy.push_str("; img-src 'self'");
        }
        policy.push_str("; base-uri 'none'; frame-ancestors 'none'");
        Self { style, logo, policy }
    }

    /// What a page may do, without its `form-action` and its script.
    pub(super) fn policy(&self) -> &str {
        &self.policy
    }

    /// The operator's style sheet as an element, behind ours.
    pub(super) fn style_element(&self) -> String {
        if self.style.is_empty() {
            return String::new();
        }
        format!("<style>{}</style>", self.style)
    }

    /// The logo as an element. It says nothing that the page does not say, so it has no words of its own.
    pub(super) fn logo_element(&self) -> String {
        self.logo.as_ref().map_or_else(String::new, |logo| {
            format!(
                "<img class=\"logo\" alt=\"\" src=\"{LOGO_PREFIX}/{}\">",
                escape(&logo.name)
            )
        })
    }
}

/// A style sheet as it stands in a page: parsers read every line end as one character, and the hash is of what they read.
fn style(content: &[u8]) -> Result<String, LookError> {
    if content.len() > MAX_STYLESHEET_BYTES {
        return Err(LookError::TooLarge(MAX_STYLESHEET_BYTES / 1024));
    }
    let text = std::str::from_utf8(content).map_err(|_not_utf8| LookError::NotText)?;
    let text = text
        .trim_start_matches('\u{feff}')
        .replace("\r\n", "\n")
        .replace('\r', "\n");
    if text.contains("</") || text.contains('\0') {
        return Err(LookError::Markup);
    }
    if text.to_ascii_lowercase().contains("@import") {
        return Err(LookError::Import);
    }
    Ok(text)
}

impl Logo {
    fn parse(content: &[u8]) -> Result<Self, LookError> {
        if content.len() > MAX_LOGO_BYTES {
            return Err(LookError::TooLarge(MAX_LOGO_BYTES / 1024));
        }
        let (kind, extension) = kind(content).ok_or(LookError::NoPicture)?;
        let hash = digest::digest(&digest::SHA256, content);
        let name = lower::encode_string(&hash.as_ref()[..LOGO_HASH_BYTES]);
        Ok(Self {
            name: format!("{name}.{extension}"),
            kind,
            content: content.to_vec(),
        })
    }
}

/// The media type of a picture by how it begins (WHATWG MIME Sniffing, section 6.1), and what its name ends with.
fn kind(content: &[u8]) -> Option<(&'static str, &'static str)> {
    if content.starts_with(b"\x89PNG\r\n\x1a\n") {
        return Some(("image/png", "png"));
    }
    if content.starts_with(b"\xff\xd8\xff") {
        return Some(("image/jpeg", "jpg"));
    }
    if content.starts_with(b"RIFF") && content.get(8..12) == Some(b"WEBP") {
        return Some(("image/webp", "webp"));
    }
    let text = std::str::from_utf8(content)
        .ok()?
        .trim_start_matches('\u{feff}')
        .trim_start();
    let is_svg = text.starts_with("<svg") || (text.starts_with("<?xml") && text.contains("<svg"));
    is_svg.then_some(("image/svg+xml", "svg"))
}

/// Keeps the look in step with its files. Needs a tokio runtime; ends with it.
pub(crate) fn follow(pages: &Pages, settings: &LookSettings) {
    let (with_style, with_logo) = (settings.stylesheet.is_some(), settings.logo.is_some());
    let paths: Vec<PathBuf> = settings
        .stylesheet
        .iter()
        .chain(&settings.logo)
        .cloned()
        .collect();
    if paths.is_empty() {
        return;
    }
    let pages = pages.clone();
    let _watch = files::watch_from(None, POLL_INTERVAL, paths, move |contents| {
        let mut contents = contents.iter().map(Vec::as_slice);
        let stylesheet = if with_style { contents.next() } else { None };
        let logo = if with_logo { contents.next() } else { None };
        match Look::parse(stylesheet, logo) {
            Ok(look) => {
                pages.look.store(look);
                tracing::info!("the look of the pages was read from its files");
                audit::reloaded(PAGES_DIR, None, Ok(()));
            }
            Err(wrong) => {
                for (file, error) in wrong {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(
                        setting = PAGES_DIR,
                        file,
                        error,
                        "the changed file is refused: the old look stays in use"
                    );
                    audit::reloaded(PAGES_DIR, Some(Path::new(file)), Err(error));
                }
            }
        }
    });
}

impl Pages {
    /// The logo, by the name it has now or had before; `None` without a logo. Opened by itself a picture may do nothing either.
    pub(crate) fn logo(&self, name: &str) -> Option<Response> {
        let look = self.look.load();
        let logo = look.logo.as_ref()?;
        let caching = if logo.name == name {
            "public, max-age=31536000, immutable"
        } else {
            "no-store"
        };
        let headers = [
            (header::CONTENT_TYPE, logo.kind),
            (header::CACHE_CONTROL, caching),
            (header::CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox"),
        ];
        Some((headers, logo.content.clone()).into_response())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_style_sheet_that_could_leave_its_element_is_refused() {
        for (text, expected) in [
            (&b"</style><script>"[..], "</"),
            (b"a{}\0", "NUL"),
            (b"\xff", "UTF-8"),
            (b"@IMPORT url(https://evil.example)", "@import"),
            (&[b'a'; MAX_STYLESHEET_BYTES + 1], "64 KiB"),
        ] {
            let wrong = Look::parse(Some(text), Some(b"GIF89a")).unwrap_err();
            let [(file, error), (LOGO, _)] = &wrong[..] else {
                panic!("both are named: {wrong:?}");
            };
            assert_eq!(*file, STYLESHEET);
            assert!(error.to_string().contains(expected), "{error}");
        }
    }

    #[test]
    fn a_style_sheet_is_allowed_by_the_hash_of_what_parsers_read() {
        let look = Look::parse(Some(b"\xef\xbb\xbfa{}\r\nb{}\r"), None).unwrap();
        assert_eq!(look.style_element(), "<style>a{}\nb{}\n</style>");
        assert!(look.policy().contains(&source_of("a{}\nb{}\n")));
        assert!(!look.policy().contains("unsafe") && !look.policy().contains("'self'"));
    }

    #[test]
    fn a_logo_is_a_picture_and_nothing_else() {
        for (content, name) in [
            (&b"\x89PNG\r\n\x1a\n..."[..], "png"),
            (b"\xff\xd8\xff\xe0", "jpg"),
            (b"RIFF....WEBPVP8 ", "webp"),
            (
                b"<?xml version='1.0'?>\n<svg xmlns='http://www.w3.org/2000/svg'/>",
                "svg",
            ),
            (b"\n<svg/>", "svg"),
        ] {
            let look = Look::parse(None, Some(content)).unwrap();
            assert!(look.logo_element().contains(&format!(".{name}\"")), "{name}");
            assert!(look.policy().contains("; img-src 'self';"));
        }
        for content in [&b"<html><svg>"[..], b"GIF89a", b"", b"\xff\xfe"] {
            assert_eq!(Look::parse(None, Some(content)).unwrap_err()[0].0, LOGO);
        }
        let large = [b"<svg>".to_vec(), vec![b' '; MAX_LOGO_BYTES]].concat();
        assert!(Look::parse(None, Some(&large)).is_err());
    }
}
