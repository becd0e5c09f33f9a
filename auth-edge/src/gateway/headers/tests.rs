//! Tests which headers, cookies and trailers of a client are forwarded.

use super::{IdentityHeaderNames, for_upstream, strip_trailers};
use crate::route_table::file;
use http::{HeaderMap, HeaderName, HeaderValue};

pub(super) fn ours(name: &str) -> bool {
    name.eq_ignore_ascii_case("__Host-session") || name.starts_with("__Host-session_login_")
}

pub(super) fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
    pairs
        .iter()
        .map(|(name, value)| {
            (
                name.parse::<HeaderName>().expect("a name"),
                HeaderValue::from_str(value).expect("a value"),
            )
        })
        .collect()
}

#[test]
fn identity_headers_are_removed_in_every_spelling() {
    for name in [
        "X-Auth-Subject",
        "x_auth_subject",
        "X-AUTH_Subject",
        "x-auth_session",
        "X_Auth-Anything",
        "X-Forwarded-User",
        "x_forwarded_user",
        "X-Forwarded_Email",
        "x-forwarded-groups",
        "X-Forwarded-Preferred_Username",
        "x_forwarded_access_token",
        "X-Forwarded-For",
        "x_forwarded_for",
        "x.auth.subject",
        "X-Auth.Session",
        "X~Auth!Assertion",
        "X.Forwarded.User",
        "x_forwarded.email",
        "X+Original^URL",
        "X-Forwarded_Anything",
        "X_Request_ID",
        "Transfer_Encoding",
        "content.length",
        "Keep_Alive",
        "Content-Length",
        "HTTP2_Settings",
        "X-HTTP-Method-Override",
        "x_http_method_override",
        "X-HTTP_Method",
        "X.Method.Override",
        "X-Real-IP",
        "X_Original_URL",
        "Forwarded",
    ] {
        let sent = headers(&[(name, "admin"), (name, "again"), ("accept", "*/*")]);
        assert_eq!(
            for_upstream(&sent, &[], &IdentityHeaderNames::default(), false, false, ours),
            headers(&[("accept", "*/*")]),
            "{name}"
        );
    }
}

#[test]
fn what_some_rule_tells_is_removed_in_every_spelling_from_trailers_too() {
    let table = "[[route]]\npath = \"/a\"\nguard = \"api\"\nupstream = \"http://a\"\n\
         headers = { Remote-User = \"subject\", X_WEBAUTH_EMAIL = \"claim:email\" }\n\
         [[route]]\npath = \"/b\"\nguard = \"none\"\nupstream = \"http://a\"\n";
    let table = file::parse(table, &file::RouteFileContext::default()).expect("a right table");
    for route in table.routes.all() {
        let identity_names = &route.table.identity_names;
        for name in [
            "Remote-User",
            "remote_user",
            "REMOTE.USER",
            "x-webauth-email",
            "X_Webauth-Email",
        ] {
            let mut sent = headers(&[(name, "admin"), (name, "again"), ("accept", "*/*")]);
            assert_eq!(
                for_upstream(&sent, &[], identity_names, true, false, ours),
                headers(&[("accept", "*/*")]),
                "{name}"
            );
            strip_trailers(&mut sent, identity_names);
            assert_eq!(sent, headers(&[("accept", "*/*")]), "{name}");
        }
    }
}

#[test]
fn headers_of_this_hop_end_here_also_those_named_by_the_client() {
    let sent = headers(&[
        ("connection", "close, X-Secret, Cookie"),
        ("cookie", "a=1"),
        ("connection", "x-other"),
        ("x-secret", "1"),
        ("x-other", "1"),
        ("keep-alive", "1"),
        ("te", "trailers"),
        ("transfer-encoding", "chunked"),
        ("upgrade", "h2c"),
        ("proxy-authorization", "x"),
        ("accept", "*/*"),
    ]);
    assert_eq!(
        for_upstream(&sent, &[], &IdentityHeaderNames::default(), false, false, ours),
        headers(&[("accept", "*/*")])
    );
}

#[test]
fn a_list_of_names_is_as_long_as_what_it_names() {
    let many = "x-secret, nowhere, ".repeat(1_000);
    let sent = headers(&[("connection", &many), ("x-secret", "1"), ("accept", "*/*")]);
    assert_eq!(super::named_by_connection(&sent), ["x-secret"]);
    assert_eq!(
        for_upstream(&sent, &[], &IdentityHeaderNames::default(), false, false, ours),
        headers(&[("accept", "*/*")])
    );
}

#[test]
fn trailers_may_not_say_what_headers_may_not() {
    let mut sent = headers(&[
        ("x-checksum", "1"),
        ("X-Auth-Subject", "admin"),
        ("x.auth.session", "admin"),
        ("authorization", "Bearer x"),
        ("set-cookie", "__Host-session=evil"),
        ("secure-session-registration", "(ES256);path=\"/own\""),
        ("Secure-Session-Challenge", "\"a\""),
        ("content-length", "5"),
        ("transfer-encoding", "chunked"),
        ("connection", "x-named"),
        ("x-named", "1"),
    ]);
    strip_trailers(&mut sent, &IdentityHeaderNames::default());
    assert_eq!(sent, headers(&[("x-checksum", "1")]));
}

#[test]
fn our_cookies_stay_here_and_others_go_on() {
    for (cookie, expected) in [
        ("a=1; __Host-session=x.y; b=2", Some("a=1; b=2")),
        ("__Host-session=x.y", None),
        ("__Host-session_login_abc=x; c=3", Some("c=3")),
        (" __Host-session = x ;c=3", Some("c=3")),
        ("=__Host-session=x; c=3", Some("c=3")),
        ("sessionless=1", Some("sessionless=1")),
    ] {
        let sent = for_upstream(
            &headers(&[("cookie", cookie)]),
            &[],
            &IdentityHeaderNames::default(),
            false,
            false,
            ours,
        );
        assert_eq!(
            sent.get("cookie").map(|value| value.to_str().expect("text")),
            expected,
            "{cookie}"
        );
    }
}
