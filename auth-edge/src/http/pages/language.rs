//! A visitor's language by `Accept-Language` (RFC 9110, section 12.5.4; lookup of RFC 4647, section 3.4).
//!
//! Not supported: regions and scripts, since the texts are the same; a stored choice, since visitors see these
//! pages too rarely.

use axum::http::{HeaderMap, header};

use super::catalogue::{LANGUAGES, TEXTS};

/// How many ranges the edge reads; browsers send at most a dozen.
const MAX_RANGES: usize = 32;
/// The quality of a range without a weight.
const FULL_QUALITY: f32 = 1.0;

/// A language of the pages, by its index in [`LANGUAGES`]. English, the first, is the source's language and the
/// default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Language(usize);

impl Language {
    /// All languages.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        (0..LANGUAGES.len()).map(Self)
    }

    /// The supported language of the highest quality in these headers; the first if several tie.
    #[must_use]
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let lines = headers.get_all(header::ACCEPT_LANGUAGE).iter();
        let ranges = lines
            .filter_map(|line| line.to_str().ok())
            .flat_map(|line| line.split(','))
            .take(MAX_RANGES);
        let mut best = (0.0, Self::default());
        for (quality, language) in ranges.filter_map(range) {
            if quality > best.0 {
                best = (quality, language);
            }
        }
        best.1
    }

    /// The tag of the `lang` attribute (RFC 5646).
    #[must_use]
    pub(super) fn tag(self) -> &'static str {
        LANGUAGES[self.0].0
    }

    /// The `dir` attribute.
    #[must_use]
    pub(super) fn direction(self) -> &'static str {
        if self.tag() == "ar" { "rtl" } else { "ltr" }
    }

    /// A text of the edge in this language, or in English if it has no translation.
    #[must_use]
    pub(crate) fn say(self, english: &str) -> &str {
        TEXTS[self.0].get(english).copied().unwrap_or(english)
    }
}

/// One range with its quality, if its language is supported. All tags here are primary subtags, so only the
/// range's first subtag counts.
fn range(text: &str) -> Option<(f32, Language)> {
    let (range, weight) = match text.split_once(';') {
        Some((range, weight)) => (range, quality(weight)?),
        None => (text, FULL_QUALITY),
    };
    let primary = range.trim().split('-').next()?;
    let language = Language::all().find(|language| language.tag().eq_ignore_ascii_case(primary))?;
    Some((weight, language))
}

/// A weight (RFC 9110, section 12.4.2): a number from 0 to 1.
fn quality(weight: &str) -> Option<f32> {
    let (name, value) = weight.trim().split_once('=')?;
    let quality: f32 = value.trim().parse().ok()?;
    (name.trim().eq_ignore_ascii_case("q") && (0.0..=FULL_QUALITY).contains(&quality)).then_some(quality)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn the_first_of_the_highest_quality_that_there_is_is_spoken() {
        for (accepts, spoken) in [
            ("de", "de"),
            ("de-CH-1996", "de"),
            ("DE-ch", "de"),
            ("fr;q=0.5, ja;q=0.9, es;q=0.9", "ja"),
            ("zh-Hans, pt;q=0.9, ar;q=0.1", "ar"),
            ("en;q=0.8, fr", "fr"),
            ("ja;q=0, es;q=0.001", "es"),
            ("*", "en"),
            ("*, de;q=0.5", "de"),
            ("deu, x-de, d", "en"),
            ("de;q=2, fr;q=0.3", "fr"),
            ("de;q=-1, de;q=x, de;level=1, de;q=NaN, es;q=0.2", "es"),
            ("de;q=1.001", "en"),
            ("", "en"),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_LANGUAGE, HeaderValue::from_static(accepts));
            assert_eq!(Language::of(&headers).tag(), spoken, "{accepts}");
        }
        assert_eq!(Language::of(&HeaderMap::new()).tag(), "en");
    }

    #[test]
    fn only_the_first_ranges_count() {
        let mut headers = HeaderMap::new();
        let many = format!("{}de", "xx,".repeat(MAX_RANGES));
        headers.insert(header::ACCEPT_LANGUAGE, HeaderValue::try_from(many).unwrap());
        assert_eq!(Language::of(&headers).tag(), "en");
    }
}
