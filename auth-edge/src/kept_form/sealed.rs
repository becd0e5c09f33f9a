//! A form that was not forwarded, sealed for the browser that sent it.
//!
//! Invariants
//! - Only the edge opens it, and only as the form of the user it was sealed for.
//! - Its target is on our own origin.
//! - A plain form can repeat the kept body byte for byte; other bodies are not kept.

use url::Url;
use url::form_urlencoded;

use super::person_cookie::PersonTag;
use crate::sessions::keys::{DerivedKeys, SEAL_OVERHEAD};
use crate::values::return_to::ReturnTo;

/// Largest body kept, in bytes.
pub(super) const MAX_BODY_BYTES: usize = 64 * 1024;
/// Longest sealed form as text: the largest body and all else, in base64.
pub(super) const MAX_SEALED_BYTES: usize =
    (MAX_BODY_BYTES + SEAL_OVERHEAD + crate::values::return_to::MAX_BYTES + 64) * 4 / 3 + 4;
/// Separates this AAD from any other use of the seal.
const AAD_LABEL: &[u8] = b"vestibule kept form v1";
/// Allowed clock lead of the replica that sealed a form, in milliseconds.
const CLOCK_LEAD_MS: u64 = 60_000;

/// A form that waits for its user.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct KeptForm {
    /// When it was kept, in milliseconds since the Unix epoch.
    pub(super) kept_at_ms: u64,
    /// The user of the form.
    pub(super) person: PersonTag,
    /// The form's target.
    pub(super) target: ReturnTo,
    /// The body, `application/x-www-form-urlencoded`.
    pub(super) body: String,
}

impl KeptForm {
    /// Seals the form for this origin, as text.
    pub(super) fn seal(&self, keys: &DerivedKeys, base: &Url) -> Option<String> {
        let target = self.target.as_str().as_bytes();
        let length = u16::try_from(target.len()).ok()?;
        let mut plain = Vec::with_capacity(self.body.len() + target.len() + 64);
        plain.extend(self.kept_at_ms.to_be_bytes());
        plain.extend(self.person);
        plain.extend(length.to_be_bytes());
        plain.extend(target);
        plain.extend(self.body.as_bytes());
        keys.seal(&aad(base), &plain).ok()
    }

    /// Opens the result of [`KeptForm::seal`] for this origin.
    pub(super) fn open(keys: &DerivedKeys, base: &Url, sealed: &str) -> Option<Self> {
        let plain = keys.open(&aad(base), sealed)?;
        let (kept_at_ms, rest) = plain.split_first_chunk()?;
        let (person, rest) = rest.split_first_chunk()?;
        let (length, rest) = rest.split_first_chunk()?;
        let (target, body) = rest.split_at_checked(u16::from_be_bytes(*length).into())?;
        Some(Self {
            kept_at_ms: u64::from_be_bytes(*kept_at_ms),
            person: *person,
            target: ReturnTo::parse(base, std::str::from_utf8(target).ok()?)?,
            body: std::str::from_utf8(body).ok()?.to_owned(),
        })
    }

    /// Whether the form has expired, or its time is in the future.
    pub(super) fn expired(&self, now_ms: u64, duration_secs: u64) -> bool {
        let ends = self.kept_at_ms.saturating_add(duration_secs.saturating_mul(1000));
        now_ms >= ends || self.kept_at_ms > now_ms.saturating_add(CLOCK_LEAD_MS)
    }

    /// Names and values, in their original order.
    pub(super) fn fields(&self) -> Vec<(String, String)> {
        form_urlencoded::parse(self.body.as_bytes())
            .into_owned()
            .collect()
    }
}

fn aad(base: &Url) -> [&[u8]; 2] {
    [AAD_LABEL, base.as_str().as_bytes()]
}

/// The hidden field that browsers fill with the name of their encoding.
const CHARSET_FIELD: &str = "_charset_";

/// The body as text, if a page with a hidden field per pair sends the same bytes (HTML, section 4.10.22):
/// UTF-8 with the encoding and line breaks of browsers, and no pair without a name, which browsers omit.
pub(super) fn repeatable(body: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(body).ok()?;
    let mut again = form_urlencoded::Serializer::new(String::with_capacity(text.len()));
    for (name, value) in form_urlencoded::parse(body) {
        let stays = |text: &str| !text.contains('\0') && !text.replace("\r\n", "").contains(['\r', '\n']);
        let is_told = !name.eq_ignore_ascii_case(CHARSET_FIELD) || value == "UTF-8";
        if name.is_empty() || !stays(&name) || !stays(&value) || !is_told {
            return None;
        }
        again.append_pair(&name, &value);
    }
    (again.finish() == text).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use chassis::secret::Secret;

    use super::*;

    fn keys() -> DerivedKeys {
        DerivedKeys::new(&[Secret::new("a secret that is long enough".to_owned())])
    }

    fn base(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    fn form() -> KeptForm {
        KeptForm {
            kept_at_ms: 1_000_000,
            person: [7; 32],
            target: ReturnTo::parse(&base("https://app.example"), "/orders?draft=1").unwrap(),
            body: "a=1&a=2&text=%C3%A9%0D%0A".to_owned(),
        }
    }

    #[test]
    fn a_form_comes_back_as_it_was_and_at_its_own_origin_alone() {
        let sealed = form().seal(&keys(), &base("https://app.example")).unwrap();
        let back = KeptForm::open(&keys(), &base("https://app.example"), &sealed).unwrap();
        assert!(back == form());
        assert_eq!(back.fields()[2], ("text".to_owned(), "é\r\n".to_owned()));
        assert!(KeptForm::open(&keys(), &base("https://other.example"), &sealed).is_none());
        assert!(!sealed.contains("orders"));
    }

    #[test]
    fn a_form_that_was_touched_does_not_open() {
        let sealed = form().seal(&keys(), &base("https://app.example")).unwrap();
        for at in (0..sealed.len()).step_by(3) {
            let mut touched = sealed.clone().into_bytes();
            touched[at] = if touched[at] == b'A' { b'B' } else { b'A' };
            let touched = String::from_utf8(touched).unwrap();
            assert!(
                KeptForm::open(&keys(), &base("https://app.example"), &touched).is_none(),
                "{at}"
            );
        }
        assert!(KeptForm::open(&keys(), &base("https://app.example"), "").is_none());
    }

    #[test]
    fn a_form_expires_at_its_last_second_and_is_not_believed_from_the_future() {
        let form = form();
        assert!(!form.expired(1_000_000 + 59_999, 60));
        assert!(form.expired(1_000_000 + 60_000, 60));
        assert!(!form.expired(1_000_000 - CLOCK_LEAD_MS, 60));
        assert!(form.expired(1_000_000 - CLOCK_LEAD_MS - 1, 60));
    }

    #[test]
    fn the_largest_form_fits_into_what_is_read_back() {
        let path = format!("/{}", "p".repeat(900));
        let largest = KeptForm {
            target: ReturnTo::parse(&base("https://app.example"), &path).unwrap(),
            body: "b".repeat(MAX_BODY_BYTES),
            ..form()
        };
        assert!(largest.seal(&keys(), &base("https://app.example")).unwrap().len() <= MAX_SEALED_BYTES);
    }

    #[test]
    fn only_what_a_page_sends_again_byte_for_byte_is_kept() {
        for body in [
            "",
            "a=b",
            "a=&b=",
            "a=1&a=2&a=1",
            "q=%C3%A9+%2B%26%0D%0Ax*-._",
            "%E5%90%8D=%22%27%3C",
            "_charset_=UTF-8",
            "_charset_=UTF-8",
        ] {
            assert_eq!(repeatable(body.as_bytes()).as_deref(), Some(body));
        }
        for body in [
            "a",
            "a=b&",
            "&a=b",
            "=b",
            "a=%e9",
            "a=%C3%a9",
            "a=%E9",
            "a=b c",
            "a=%20",
            "a=%0A",
            "a=%0D",
            "a=%0A%0D",
            "a%0A=b",
            "a=%00",
            "a=é",
            "a=~",
            "a=%41",
            "_Charset_=windows-1252",
        ] {
            assert_eq!(repeatable(body.as_bytes()), None, "{body}");
        }
        assert_eq!(repeatable(b"a=\xff"), None);
    }
}
