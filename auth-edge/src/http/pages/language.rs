//! Which language a visitor reads, by `Accept-Language` (RFC 9110, section 12.5.4), looked up as RFC 4647, section 3.4, has it.
//!
//! Deliberately absent: regions and scripts; the pages say the same to all who read a language. A choice that is remembered,
//! for these pages are seen too rarely to hold a switch.

use axum::http::{HeaderMap, header};

use super::catalogue;

/// The most ranges looked at: no browser sends more than a dozen.
const MAX_RANGES: usize = 32;
/// The quality of a range that says nothing of it.
const FULL_QUALITY: f32 = 1.0;

/// A language the pages are written in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Language {
    /// What the source is written in, and what everybody gets whose languages are not here.
    #[default]
    English,
    /// Right to left.
    Arabic,
    /// With "Sie".
    German,
    /// With "usted".
    Spanish,
    /// With "vous".
    French,
    /// Without spaces between words.
    Japanese,
}

impl Language {
    /// All of them.
    pub(super) const ALL: [Self; 6] = [
        Self::English,
        Self::Arabic,
        Self::German,
        Self::Spanish,
        Self::French,
        Self::Japanese,
    ];

    /// The language of these request headers: of those they accept the first of the highest quality that there is.
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
        match self {
            Self::English => "en",
            Self::Arabic => "ar",
            Self::German => "de",
            Self::Spanish => "es",
            Self::French => "fr",
            Self::Japanese => "ja",
        }
    }

    /// The `dir` attribute.
    #[must_use]
    pub(super) fn direction(self) -> &'static str {
        if self == Self::Arabic { "rtl" } else { "ltr" }
    }

    /// An English text of ours in this language; as it is where nobody has translated it.
    #[must_use]
    pub(crate) fn say(self, english: &str) -> &str {
        catalogue::of(self).get(english).copied().unwrap_or(english)
    }
}

/// One range with its quality, if it leads to a language there is. Every tag here is a primary subtag alone, so that what
/// lookup does, to shorten a range until it is a tag, comes down to its first subtag.
fn range(text: &str) -> Option<(f32, Language)> {
    let (range, weight) = match text.split_once(';') {
        Some((range, weight)) => (range, quality(weight)?),
        None => (text, FULL_QUALITY),
    };
    let primary = range.trim().split('-').next()?;
    let language = Language::ALL
        .into_iter()
        .find(|language| language.tag().eq_ignore_ascii_case(primary))?;
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
            ("de", Language::German),
            ("de-CH-1996", Language::German),
            ("DE-ch", Language::German),
            ("fr;q=0.5, ja;q=0.9, es;q=0.9", Language::Japanese),
            ("zh-Hans, pt;q=0.9, ar;q=0.1", Language::Arabic),
            ("en;q=0.8, fr", Language::French),
            ("ja;q=0, es;q=0.001", Language::Spanish),
            ("*", Language::English),
            ("*, de;q=0.5", Language::German),
            ("deu, x-de, d", Language::English),
            ("de;q=2, fr;q=0.3", Language::French),
            (
                "de;q=-1, de;q=x, de;level=1, de;q=NaN, es;q=0.2",
                Language::Spanish,
            ),
            ("de;q=1.001", Language::English),
            ("", Language::English),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_LANGUAGE, HeaderValue::from_static(accepts));
            assert_eq!(Language::of(&headers), spoken, "{accepts}");
        }
        assert_eq!(Language::of(&HeaderMap::new()), Language::English);
    }

    #[test]
    fn only_the_first_ranges_count() {
        let mut headers = HeaderMap::new();
        let many = format!("{}de", "xx,".repeat(MAX_RANGES));
        headers.insert(header::ACCEPT_LANGUAGE, HeaderValue::try_from(many).unwrap());
        assert_eq!(Language::of(&headers), Language::English);
    }
}
