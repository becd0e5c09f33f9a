//! The operator's look of the pages: a style sheet and a logo, after the edge's own style sheet.
//!
//! Invariants
//! - The style sheet is inline and allowed by its hash. So a page needs no file from another replica, and allows no
//!   other style sheet of the origin.
//! - The edge reads the files once, at the start.
//!
//! Not supported: templates. A mistake in a style sheet cannot remove the request ID, the button or the
//! translated words.

use std::io;
use std::path::Path;

use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use chassis::files;

use super::Pages;
use super::html::{STYLE, source_of};
use crate::values::reserved::LOGO_PATH;

/// The setting's name: the folder with the style sheet and the logo.
pub(crate) const PAGES_DIR: &str = "EDGE_PAGES_DIR";
const STYLESHEET: &str = "style.css";
/// The logo's name in messages; the file is one of [`LOGO_FILES`].
const LOGO: &str = "the logo";
const LOGO_FILES: [&str; 4] = ["logo.svg", "logo.png", "logo.jpg", "logo.webp"];
/// Longest style sheet, in bytes: every page contains it.
const MAX_STYLESHEET_BYTES: usize = 64 * 1024;
/// Largest logo, in bytes: people wait for it before they can read on.
const MAX_LOGO_BYTES: usize = 256 * 1024;
/// How long caches keep the logo. It rarely changes, and an old logo for an hour does no harm.
const LOGO_CACHING: &str = "public, max-age=3600";

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LookError {
    /// The file cannot be read.
    #[error("cannot be read: {0}")]
    Unreadable(#[from] io::Error),
    /// The content cannot be used.
    #[error("{0}")]
    Unusable(&'static str),
}

/// A file that cannot be used, and why.
type WrongFile = (&'static str, LookError);

/// How the pages look.
#[derive(Clone, Debug)]
pub(crate) struct Look {
    style: String,
    logo: Option<Logo>,
    policy: String,
}

/// A picture: its media type and its content.
type Logo = (&'static str, Vec<u8>);

impl Default for Look {
    fn default() -> Self {
        Self::of(String::new(), None)
    }
}

impl Look {
    /// Reads the files of `folder`.
    ///
    /// # Errors
    /// Each file that cannot be used, and why.
    pub(crate) fn read(folder: &Path) -> Result<Self, Vec<WrongFile>> {
        let content = |names: &[&str]| {
            let mut paths = names.iter().map(|name| folder.join(name));
            let path = paths.find(|path| path.is_file());
            path.map(|path| files::read_bounded(&path)).transpose()
        };
        let style = content(&[STYLESHEET]).map_err(|error| vec![(STYLESHEET, error.into())])?;
        let logo = content(&LOGO_FILES).map_err(|error| vec![(LOGO, error.into())])?;
        if style.is_none() && logo.is_none() {
            let words = "has neither style.css nor logo.svg, logo.png, logo.jpg or logo.webp";
            return Err(vec![("the folder", LookError::Unusable(words))]);
        }
        Self::parse(style.as_deref(), logo.as_deref())
    }

    /// Parses the content of the files.
    fn parse(stylesheet: Option<&[u8]>, logo: Option<&[u8]>) -> Result<Self, Vec<WrongFile>> {
        match (stylesheet.map(style).transpose(), logo.map(picture).transpose()) {
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

    /// The policy of a page, without `form-action` and the script.
    pub(super) fn policy(&self) -> &str {
        &self.policy
    }

    /// The operator's style sheet as an element; it follows the edge's own.
    pub(super) fn style_element(&self) -> String {
        if self.style.is_empty() {
            return String::new();
        }
        format!("<style>{}</style>", self.style)
    }

    /// The logo as an element. It is decoration, so `alt` is empty.
    pub(super) fn logo_element(&self) -> String {
        let element = |_: &Logo| format!("<img class=\"logo\" alt=\"\" src=\"{LOGO_PATH}\">");
        self.logo.as_ref().map(element).unwrap_or_default()
    }
}

/// The style sheet as parsers read it, with every line end as one character: the hash is of that text.
fn style(content: &[u8]) -> Result<String, LookError> {
    if content.len() > MAX_STYLESHEET_BYTES {
        return Err(LookError::Unusable("is larger than 64 KiB"));
    }
    let text = std::str::from_utf8(content).map_err(|_not_utf8| LookError::Unusable("is not UTF-8"))?;
    let text = text
        .trim_start_matches('\u{feff}')
        .replace("\r\n", "\n")
        .replace('\r', "\n");
    if text.contains("</") || text.contains('\0') {
        let words = "holds \"</\" or a NUL, which no style sheet needs";
        return Err(LookError::Unusable(words));
    }
    if text.to_ascii_lowercase().contains("@import") {
        let words =
            "holds \"@import\", which the pages' policy does not allow: put everything into this one file";
        return Err(LookError::Unusable(words));
    }
    Ok(text)
}

fn picture(content: &[u8]) -> Result<Logo, LookError> {
    if content.len() > MAX_LOGO_BYTES {
        return Err(LookError::Unusable("is larger than 256 KiB"));
    }
    let kind = kind(content).ok_or(LookError::Unusable("is neither SVG, PNG, JPEG nor WebP"))?;
    Ok((kind, content.to_vec()))
}

/// The media type of a picture by its first bytes (WHATWG MIME Sniffing, section 6.1).
fn kind(content: &[u8]) -> Option<&'static str> {
    if content.starts_with(b"\x89PNG\r\n\x1a\n") {
        return Some("image/png");
    }
    if content.starts_with(b"\xff\xd8\xff") {
        return Some("image/jpeg");
    }
    if content.starts_with(b"RIFF") && content.get(8..12) == Some(b"WEBP") {
        return Some("image/webp");
    }
    let text = std::str::from_utf8(content)
        .ok()?
        .trim_start_matches('\u{feff}')
        .trim_start();
    let is_svg = text.starts_with("<svg") || (text.starts_with("<?xml") && text.contains("<svg"));
    is_svg.then_some("image/svg+xml")
}

impl Pages {
    /// The logo; `None` without one. A picture opened directly may load nothing and run no script.
    pub(crate) fn logo(&self) -> Option<Response> {
        let (kind, content) = self.look.logo.as_ref()?;
        let headers = [
            (header::CONTENT_TYPE, *kind),
            (header::CACHE_CONTROL, LOGO_CACHING),
            (header::CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox"),
        ];
        Some((headers, content.clone()).into_response())
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
        for (content, kind) in [
            (&b"\x89PNG\r\n\x1a\n..."[..], "image/png"),
            (b"\xff\xd8\xff\xe0", "image/jpeg"),
            (b"RIFF....WEBPVP8 ", "image/webp"),
            (
                b"<?xml version='1.0'?>\n<svg xmlns='http://www.w3.org/2000/svg'/>",
                "image/svg+xml",
            ),
            (b"\n<svg/>", "image/svg+xml"),
        ] {
            let look = Look::parse(None, Some(content)).unwrap();
            assert_eq!(look.logo.as_ref().unwrap().0, kind);
            assert!(look.logo_element().contains(LOGO_PATH), "{kind}");
            assert!(look.policy().contains("; img-src 'self';"));
        }
        for content in [&b"<html><svg>"[..], b"GIF89a", b"", b"\xff\xfe"] {
            assert_eq!(Look::parse(None, Some(content)).unwrap_err()[0].0, LOGO);
        }
        let large = [b"<svg>".to_vec(), vec![b' '; MAX_LOGO_BYTES]].concat();
        assert!(Look::parse(None, Some(&large)).is_err());
    }
}
