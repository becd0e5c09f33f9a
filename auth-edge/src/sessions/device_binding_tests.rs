//! The cookie, the challenges and the sealed values: each is valid for one purpose and time.

use chassis::secret::Secret;

use super::*;
use crate::sessions::cookies::{CookieSettings, SameSite};

const HANDLE: &str = "00112233445566778899aabbccddeeff";

const NOW: u64 = 1_800_000_000_000;

fn bindings() -> DeviceBindings {
    bindings_of(DeviceBound::Offered)
}

fn bindings_of(mode: DeviceBound) -> DeviceBindings {
    let settings = CookieSettings {
        name: "session".to_owned(),
        domain: None,
        same_site: SameSite::Lax,
        secure: true,
        partitioned: false,
    };
    let keys = DerivedKeys::new(&[Secret::new("a secret that is long enough".to_owned())]);
    let bound = DeviceBoundSettings {
        mode,
        duration_secs: 600,
    };
    let metrics = DeviceMetrics::new(&prometheus::Registry::new()).unwrap();
    DeviceBindings::new(keys.clone(), &SessionCookies::new(settings, keys), bound, metrics)
}

fn session(digit: char) -> SessionId {
    SessionId::parse(&digit.to_string().repeat(32)).unwrap()
}

fn request(cookie: &HeaderValue) -> HeaderMap {
    let pair = cookie.to_str().unwrap().split(';').next().unwrap();
    let mut headers = HeaderMap::new();
    headers.insert("cookie", HeaderValue::from_str(pair).unwrap());
    headers
}

#[test]
fn the_cookie_is_good_for_its_session_and_its_time() {
    let (bindings, one, other) = (bindings(), session('1'), session('2'));
    let cookie = bindings.cookie(&one, NOW).unwrap();
    let text = cookie.to_str().unwrap();
    assert!(
        text.starts_with("__Host-session_bound=") && text.ends_with("; Max-Age=540"),
        "{text}"
    );
    assert_eq!(bindings.attributes(), "Path=/; HttpOnly; Secure; SameSite=Lax");
    let headers = request(&cookie);
    let standing = |id: &SessionId, now_ms| bindings.standing(&headers, (id, HANDLE), Some(0), now_ms);
    let end = NOW + 600_000;
    assert_eq!(standing(&one, end - 1), DeviceStanding::Proven);
    assert_eq!(standing(&one, end), DeviceStanding::Missing);
    assert_eq!(standing(&other, NOW), DeviceStanding::Missing);
    assert_eq!(
        bindings.standing(&headers, (&other, HANDLE), None, NOW),
        DeviceStanding::Unbound
    );
}

#[test]
fn without_it_there_is_a_moment_after_the_registration_and_a_word_for_browsers_that_could_not() {
    let (bindings, id) = (bindings(), session('1'));
    let mut headers = HeaderMap::new();
    let standing = |headers: &HeaderMap, now_ms| bindings.standing(headers, (&id, HANDLE), Some(NOW), now_ms);
    assert_eq!(
        standing(&headers, NOW + REGISTERED_MS - 1),
        DeviceStanding::JustBound
    );
    assert_eq!(standing(&headers, NOW + REGISTERED_MS), DeviceStanding::Missing);
    let of = |handle: &str| format!("quota_exceeded;session_identifier=\"{handle}\"");
    let another = of("ffeeddccbbaa99887766554433221100");
    for (said, expected) in [
        ("unreachable".to_owned(), DeviceStanding::Skipped),
        (of(HANDLE), DeviceStanding::Skipped),
        (format!("{another}, {}", of(HANDLE)), DeviceStanding::Skipped),
        (another, DeviceStanding::Missing),
    ] {
        headers.insert(SKIPPED, HeaderValue::from_str(&said).unwrap());
        assert_eq!(standing(&headers, NOW + REGISTERED_MS), expected, "{said}");
    }
}

#[test]
fn where_it_is_required_nothing_else_counts_and_where_it_is_off_nothing_is_asked() {
    let id = session('1');
    let nothing = HeaderMap::new();
    let required = bindings_of(DeviceBound::Required);
    let proof = request(&required.cookie(&id, NOW).unwrap());
    for (headers, bound_at, standing) in [
        (&nothing, None, DeviceStanding::Missing),
        (&nothing, Some(NOW), DeviceStanding::Missing),
        (&proof, None, DeviceStanding::Missing),
        (&proof, Some(NOW), DeviceStanding::Proven),
    ] {
        assert_eq!(required.standing(headers, (&id, HANDLE), bound_at, NOW), standing);
    }
    let off = bindings_of(DeviceBound::Off);
    assert_eq!(
        off.standing(&nothing, (&id, HANDLE), Some(0), NOW),
        DeviceStanding::Unbound
    );
}

#[test]
fn a_challenge_is_for_one_session_and_no_cookie() {
    let (bindings, one, other) = (bindings(), session('1'), session('2'));
    let challenge = bindings.challenge(&one, NOW);
    assert!(bindings.is_challenge(&challenge, &one, NOW + CHALLENGE_MS - 1));
    assert!(!bindings.is_challenge(&challenge, &one, NOW + CHALLENGE_MS));
    assert!(!bindings.is_challenge(&challenge, &other, NOW));
    let cookie = HeaderValue::from_str(&format!("__Host-session_bound={challenge}")).unwrap();
    assert_eq!(
        bindings.standing(&request(&cookie), (&one, HANDLE), Some(0), NOW),
        DeviceStanding::Missing
    );
    for odd in [
        "",
        ".",
        "1.",
        "99999999999999.AA",
        &challenge[1..],
        &challenge[..20],
    ] {
        assert!(!bindings.is_challenge(odd, &one, NOW), "{odd}");
    }
}

#[test]
fn an_invitation_names_its_session_for_a_while_and_an_address_for_ever() {
    let (bindings, one) = (bindings(), session('1'));
    let (invitation, address) = (
        bindings.invitation(&one, NOW).unwrap(),
        bindings.address(&one).unwrap(),
    );
    let exposed = |id: Option<SessionId>| id.map(|id| id.expose().to_owned());
    assert_eq!(
        exposed(bindings.open_invitation(&invitation, NOW + CHALLENGE_MS - 1)),
        exposed(Some(one.clone()))
    );
    assert_eq!(
        exposed(bindings.open_invitation(&invitation, NOW + CHALLENGE_MS)),
        None
    );
    assert_eq!(
        exposed(bindings.open_address(&address).map(|(id, _)| id)),
        exposed(Some(one))
    );
    assert_eq!(
        exposed(bindings.open_address(&invitation).map(|(id, _)| id)),
        None
    );
    assert_eq!(exposed(bindings.open_invitation(&address, NOW)), None);
    assert_eq!(exposed(bindings.open_invitation("", NOW)), None);
}
