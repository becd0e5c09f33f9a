//! The session cookie: its name, its value `<id>.<signature>`, its attributes; and reading `Cookie` headers.
//!
//! Invariants
//! - The edge uses nothing from a cookie whose signature does not verify.
//! - Two cookies of one name count as no cookie.
//! - A cookie is cleared with the same attributes it was set with.
//!
//! The edge never clears the cookie of an unknown session: a late answer could remove a newer cookie.

use axum::http::{HeaderMap, HeaderValue, header};
use base16ct::lower;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chassis::secret::Secret;

use crate::providers::sites::Sites;
use crate::sessions::cookie_rotation::Generation;
use crate::sessions::keys::{DerivedKeys, Purpose};

/// Random bytes of a session ID. Its text form has 32 hexadecimal digits.
const ID_BYTES: usize = 16;

/// The buffer for a decoded signature, larger than any signature. A longer value does not verify.
const SIGNATURE_BYTES_MAX: usize = 48;

/// Gives each site that embeds the product cookies of its own (draft-cutler-httpbis-partitioned-cookies, CHIPS).
const PARTITIONED: &str = "; Partitioned";

/// The `SameSite` attribute of the session cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SameSite {
    /// Sent on requests from our own site and on top-level navigations from other sites: the default.
    Lax,
    /// Sent only on requests from our own site.
    Strict,
    /// Always sent; needs https.
    None,
}

impl SameSite {
    /// The attribute's value as browsers expect it.
    #[must_use]
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Lax => "Lax",
            Self::Strict => "Strict",
            Self::None => "None",
        }
    }
}

/// The settings of cookies.
#[derive(Clone, Debug)]
pub struct CookieSettings {
    /// Base name, without prefix.
    pub name: String,
    /// `Domain` attribute, if the session is shared with sub-domains.
    pub domain: Option<String>,
    /// `SameSite` attribute.
    pub same_site: SameSite,
    /// Whether the base URL is https.
    pub secure: bool,
    /// Whether each site that embeds the product has cookies of its own: `Partitioned` (CHIPS), with `same_site` None.
    pub partitioned: bool,
}

/// The secret ID of a session. It alone gives access to the session.
#[derive(Clone, Debug)]
pub struct SessionId(Secret<String>);

impl SessionId {
    /// Parses an ID from the session service; `None` unless it has 32 lower-case hexadecimal digits.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digits = lower::decode(text, &mut [0; ID_BYTES]).map(<[u8]>::len);
        (digits == Ok(ID_BYTES)).then(|| Self(Secret::new(text.to_owned())))
    }

    /// The ID with these bytes.
    #[must_use]
    pub(crate) fn from_bytes(bytes: [u8; ID_BYTES]) -> Self {
        Self(Secret::new(lower::encode_string(&bytes)))
    }

    /// The 16 bytes of the ID.
    #[must_use]
    pub(crate) fn to_bytes(&self) -> [u8; ID_BYTES] {
        let mut bytes = [0; ID_BYTES];
        // This succeeds: `parse` accepts only digits.
        let _ = lower::decode(self.0.expose(), &mut bytes);
        bytes
    }

    /// The ID itself, only for the session service.
    #[must_use]
    pub(crate) fn expose(&self) -> &str {
        self.0.expose()
    }
}

/// Writes and reads the session cookie.
#[derive(Clone)]
pub struct SessionCookies {
    settings: CookieSettings,
    keys: DerivedKeys,
    full_name: String,
    /// The name of the second cookie, which says that the browser recently proved the session's key.
    pub(super) proof_name: String,
    sites: Option<Sites>,
}

impl SessionCookies {
    /// Names the cookie as the prefix rules demand: `__Host-` on https, `__Secure-` with a domain, none on http.
    #[must_use]
    pub fn new(settings: CookieSettings, keys: DerivedKeys) -> Self {
        let prefix = match (settings.secure, &settings.domain) {
            (true, None) => "__Host-",
            (true, Some(_)) => "__Secure-",
            (false, _) => "",
        };
        let full_name = format!("{prefix}{}", settings.name);
        Self {
            settings,
            keys,
            proof_name: format!("{full_name}_bound"),
            full_name,
            sites: None,
        }
    }

    /// Binds cookies of a provider's own hosts to that provider: they are invalid at other hosts.
    #[must_use]
    pub(crate) fn on(mut self, sites: Sites) -> Self {
        self.sites = Some(sites).filter(Sites::has_hosts);
        self
    }

    /// Whether this is the name of one of the two cookies. Some browsers and frameworks ignore case.
    #[must_use]
    pub(crate) fn owns(&self, name: &str) -> bool {
        name.eq_ignore_ascii_case(&self.full_name) || name.eq_ignore_ascii_case(&self.proof_name)
    }

    /// The session ID of a request with exactly one session cookie, if its signature verifies.
    #[must_use]
    pub fn read(&self, headers: &HeaderMap) -> Option<SessionId> {
        self.read_with_generation(headers).map(|(id, _generation)| id)
    }

    /// The session ID and the cookie's generation; no generation means the first one.
    pub(super) fn read_with_generation(
        &self,
        headers: &HeaderMap,
    ) -> Option<(SessionId, Option<Generation>)> {
        let value = only_value(headers, &self.full_name)?;
        let (id, rest) = value.split_at_checked(ID_BYTES * 2)?;
        let rest = rest.strip_prefix('.')?;
        let id = SessionId::parse(id)?;
        let (generation, signature) = match rest.split_once('.') {
            None => (None, rest),
            Some((text, signature)) => {
                let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
                (Some(Generation::from_bytes(&bytes)?), signature)
            }
        };
        let mut bytes = [0; SIGNATURE_BYTES_MAX];
        let length = URL_SAFE_NO_PAD.decode_slice(signature, &mut bytes).ok()?;
        let verifies = |parts: &[&[u8]]| self.keys.verify(Purpose::SessionCookie, parts, &bytes[..length]);
        self.covered(headers, &id, generation, verifies)
            .then_some((id, generation))
    }

    /// The `Set-Cookie` value that gives a browser its session for `max_age` seconds at the requested site.
    #[must_use]
    pub fn issue(&self, headers: &HeaderMap, id: &SessionId, max_age: u64) -> Option<HeaderValue> {
        self.issue_generation(headers, id, None, max_age)
    }

    /// [`Self::issue`] with a generation.
    pub(super) fn issue_generation(
        &self,
        headers: &HeaderMap,
        id: &SessionId,
        generation: Option<Generation>,
        max_age: u64,
    ) -> Option<HeaderValue> {
        let sign = |parts: &[&[u8]]| self.keys.sign(Purpose::SessionCookie, parts);
        let signature = URL_SAFE_NO_PAD.encode(self.covered(headers, id, generation, sign));
        let id = id.expose();
        let value = match generation {
            Some(generation) => format!(
                "{id}.{}.{signature}",
                URL_SAFE_NO_PAD.encode(generation.to_bytes())
            ),
            None => format!("{id}.{signature}"),
        };
        set_cookie(&self.full_name, &value, &self.attributes(), max_age)
    }

    /// The `Set-Cookie` value that removes the cookie.
    #[must_use]
    pub(crate) fn clear(&self) -> Option<HeaderValue> {
        set_cookie(&self.full_name, "", &self.attributes(), 0)
    }

    pub(super) fn attributes(&self) -> String {
        let secure = if self.settings.secure { "; Secure" } else { "" };
        let domain = self.settings.domain.as_ref();
        let domain = domain.map_or_else(String::new, |domain| format!("; Domain={domain}"));
        let partitioned = if self.settings.partitioned {
            PARTITIONED
        } else {
            ""
        };
        format!(
            "; Path=/{domain}; HttpOnly{secure}; SameSite={}{partitioned}",
            self.settings.same_site.as_str()
        )
    }

    /// Signed parts: name, ID, issuer (empty unless the host is a provider's), generation (empty for the first).
    fn covered<T>(
        &self,
        headers: &HeaderMap,
        id: &SessionId,
        generation: Option<Generation>,
        signed: impl FnOnce(&[&[u8]]) -> T,
    ) -> T {
        let (name, id) = (self.settings.name.as_bytes(), id.expose().as_bytes());
        let owner = self
            .sites
            .as_ref()
            .and_then(|sites| sites.of(headers).owner.as_ref());
        let issuer = owner.map(String::as_bytes).unwrap_or_default();
        let generation = generation.map(Generation::to_bytes).unwrap_or_default();
        signed(&[name, id, issuer, &generation])
    }
}

/// The `Set-Cookie` value of a cookie that lasts for `max_age` seconds; 0 removes it.
pub(crate) fn set_cookie(name: &str, value: &str, attributes: &str, max_age: u64) -> Option<HeaderValue> {
    let cookie = format!("{name}={value}{attributes}; Max-Age={max_age}");
    let mut cookie = HeaderValue::try_from(cookie).ok()?;
    cookie.set_sensitive(true);
    Some(cookie)
}

/// All cookies of a request, in the order of all `Cookie` headers. Pairs that are not UTF-8 are left out.
pub(crate) fn pairs(headers: &HeaderMap) -> impl Iterator<Item = (&str, &str)> {
    parts(headers)
        .filter_map(|pair| std::str::from_utf8(pair).ok())
        .filter_map(|pair| pair.split_once('='))
}

/// The texts between the semicolons of all `Cookie` headers.
fn parts(headers: &HeaderMap) -> impl Iterator<Item = &[u8]> {
    let lines = headers.get_all(header::COOKIE).iter();
    lines
        .flat_map(|line| line.as_bytes().split(|byte| *byte == b';'))
        .map(<[u8]>::trim_ascii)
}

/// The value of a cookie that the request carries exactly once.
#[must_use]
pub(crate) fn only_value<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let value = |pair: &'a [u8]| pair.strip_prefix(name.as_bytes())?.strip_prefix(b"=");
    let mut found = parts(headers)
        .filter_map(value)
        .filter_map(|value| std::str::from_utf8(value).ok());
    let value = found.next()?;
    found.next().is_none().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "00112233445566778899aabbccddeeff";

    fn cookies(secure: bool, domain: Option<&str>) -> SessionCookies {
        cookies_with(secure, domain, "a secret that is long enough")
    }

    fn cookies_with(secure: bool, domain: Option<&str>, secret: &str) -> SessionCookies {
        let settings = CookieSettings {
            name: "session".to_owned(),
            domain: domain.map(str::to_owned),
            same_site: SameSite::Lax,
            secure,
            partitioned: false,
        };
        SessionCookies::new(settings, DerivedKeys::new(&[Secret::new(secret.to_owned())]))
    }

    fn request(cookie: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::COOKIE, HeaderValue::from_str(cookie).unwrap());
        headers
    }

    fn sent_back(set_cookie: &HeaderValue) -> String {
        set_cookie.to_str().unwrap().split(';').next().unwrap().to_owned()
    }

    #[test]
    fn the_cookie_verifies_when_it_comes_back_and_is_short() {
        let cookies = cookies(true, None);
        let pair = sent_back(
            &cookies
                .issue(&HeaderMap::new(), &SessionId::parse(ID).unwrap(), 60)
                .unwrap(),
        );
        assert!(pair.len() <= 120, "{} bytes", pair.len());
        assert_eq!(cookies.read(&request(&pair)).unwrap().expose(), ID);
        assert_eq!(
            cookies
                .read(&request(&format!("a=b; {pair}; c=d")))
                .unwrap()
                .expose(),
            ID
        );
    }

    #[test]
    fn the_prefix_follows_scheme_and_domain() {
        assert_eq!(cookies(true, None).full_name, "__Host-session");
        assert_eq!(cookies(true, Some("example.test")).full_name, "__Secure-session");
        assert_eq!(cookies(false, None).full_name, "session");
    }

    #[test]
    fn clearing_uses_the_attributes_of_setting() {
        for cookies in [
            cookies(true, None),
            cookies(true, Some("example.test")),
            cookies(false, None),
        ] {
            let set = cookies
                .issue(&HeaderMap::new(), &SessionId::parse(ID).unwrap(), 60)
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned();
            let clear = cookies.clear().unwrap().to_str().unwrap().to_owned();
            let attributes = |text: &str, age: &str| text.split_once(';').unwrap().1.replace(age, "");
            assert_eq!(attributes(&set, "Max-Age=60"), attributes(&clear, "Max-Age=0"));
        }
    }

    #[test]
    fn sites_that_embed_the_product_get_a_partitioned_cookie() {
        let settings = CookieSettings {
            same_site: SameSite::None,
            partitioned: true,
            ..cookies(true, None).settings
        };
        let keys = DerivedKeys::new(&[Secret::new("a secret that is long enough".to_owned())]);
        let cookies = SessionCookies::new(settings, keys);
        let set = cookies.issue(&HeaderMap::new(), &SessionId::parse(ID).unwrap(), 60);
        for cookie in [set.unwrap(), cookies.clear().unwrap()] {
            let text = cookie.to_str().unwrap();
            assert!(
                text.contains("; Secure; SameSite=None; Partitioned; Max-Age="),
                "{text}"
            );
        }
    }

    #[test]
    fn a_cookie_sent_twice_counts_as_none_wherever_the_second_stands() {
        let cookies = cookies(true, None);
        let pair = sent_back(
            &cookies
                .issue(&HeaderMap::new(), &SessionId::parse(ID).unwrap(), 60)
                .unwrap(),
        );
        assert!(cookies.read(&request(&format!("{pair}; {pair}"))).is_none());
        assert!(
            cookies
                .read(&request(&format!("{pair}; __Host-session=x")))
                .is_none()
        );
        let mut two_headers = request(&pair);
        two_headers.append(header::COOKIE, HeaderValue::from_static("__Host-session=x"));
        assert!(cookies.read(&two_headers).is_none());
    }

    #[test]
    fn a_cookie_that_is_forged_truncated_or_of_another_shape_is_not_read() {
        let cookies = cookies(true, None);
        let pair = sent_back(
            &cookies
                .issue(&HeaderMap::new(), &SessionId::parse(ID).unwrap(), 60)
                .unwrap(),
        );
        for at in "__Host-session=".len()..pair.len() {
            let mut bytes = pair.clone().into_bytes();
            bytes[at] = if bytes[at] == b'0' { b'1' } else { b'0' };
            let forged = String::from_utf8(bytes).unwrap();
            // The signature's last character has two unused bits; the decoder rejects them unless they are 0.
            assert!(cookies.read(&request(&forged)).is_none(), "changed at {at}");
            assert!(cookies.read(&request(&pair[..at])).is_none(), "cut at {at}");
        }
        let other = cookies_with(true, None, "another secret altogether");
        assert!(other.read(&request(&pair)).is_none());
        let long = format!("__Host-session={}", "a".repeat(5000));
        for odd in [
            "__Host-session",
            "__Host-session=",
            "__Host-session=.",
            "__host-session=x.y",
            &long,
        ] {
            assert!(cookies.read(&request(odd)).is_none(), "{odd}");
        }
    }

    #[test]
    fn a_signature_does_not_verify_under_another_cookie_name() {
        let mut settings = cookies(true, None).settings;
        let keys = DerivedKeys::new(&[Secret::new("a secret that is long enough".to_owned())]);
        settings.name = "other".to_owned();
        let other = SessionCookies::new(settings, keys);
        let pair = sent_back(
            &other
                .issue(&HeaderMap::new(), &SessionId::parse(ID).unwrap(), 60)
                .unwrap(),
        );
        let renamed = pair.replace("other", "session");
        assert!(cookies(true, None).read(&request(&renamed)).is_none());
    }

    #[test]
    fn a_session_id_comes_back_from_its_bytes_and_is_never_shown() {
        let id = SessionId::parse(ID).unwrap();
        assert_eq!(SessionId::from_bytes(id.to_bytes()).expose(), ID);
        assert!(!format!("{id:?}").contains("0011"));
        assert!(SessionId::parse(&ID.to_uppercase()).is_none());
        assert!(SessionId::parse(&ID[1..]).is_none());
    }
}
