//! Forged identities and addresses from clients: rejected in every spelling, method and path.

use reqwest::Method;

use crate::gateway::Gateway;

/// Identity headers as clients spell them.
const IDENTITY: [&str; 18] = [
    "X-Auth-Subject",
    "x_auth_subject",
    "X-AUTH_Subject",
    "X_Auth-Session",
    "x-auth-assertion",
    "X_AUTH_ASSERTION",
    "x-auth-groups",
    "X-Forwarded-User",
    "x_forwarded_user",
    "X-Forwarded_Email",
    "x_forwarded-groups",
    "X-Forwarded-Preferred-Username",
    "x_forwarded_preferred_username",
    "X-Forwarded-Access-Token",
    "X.Auth.Subject",
    "x-auth.session",
    "X~Auth~Assertion",
    "x.forwarded_user",
];

#[tokio::test(flavor = "multi_thread")]
async fn no_spelling_and_no_method_brings_an_identity_to_the_upstream() {
    let gateway = Gateway::start("", &[]).await;
    let mut browser = gateway.signed_in().await;
    for method in [
        Method::GET,
        Method::HEAD,
        Method::OPTIONS,
        Method::POST,
        Method::DELETE,
    ] {
        for path in ["/public/a", "/api/a"] {
            let spoofed: Vec<(&str, &str)> = IDENTITY.iter().map(|name| (*name, "admin")).collect();
            assert_eq!(
                browser.send(method.clone(), path, &spoofed, None).await.status,
                200
            );
            let seen = gateway.upstream.requests().pop().unwrap();
            let lies: Vec<_> = seen
                .headers
                .iter()
                .filter(|(_, value)| *value == "admin")
                .collect();
            assert!(lies.is_empty(), "{method} {path}: {lies:?}");
            assert_eq!(
                seen.all("x-auth-subject").len(),
                usize::from(path == "/api/a"),
                "{method} {path}"
            );
        }
    }
    let spoofed: String = IDENTITY.iter().map(|name| format!("{name}: admin\r\n")).collect();
    gateway
        .stack
        .raw(&format!(
            "GET /public/socket HTTP/1.1\r\nHost: a\r\n{spoofed}Connection: Upgrade, X-Auth-Subject\r\nUpgrade: websocket\r\n\r\nping"
        ))
        .await;
    let socket = gateway.upstream.requests().pop().unwrap();
    assert_eq!(socket.target, "/public/socket");
    assert!(
        socket.headers.iter().all(|(_, value)| value != "admin"),
        "{socket:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn no_header_skips_a_guard() {
    let gateway = Gateway::start("", &[]).await;
    let mut stranger = gateway.stack.browser();
    for (name, value) in [
        ("user-agent", "kube-probe/1.30"),
        ("user-agent", "GoogleHC/1.0"),
        ("user-agent", "ELB-HealthChecker/2.0"),
        ("x-original-url", "/public/a"),
        ("x-original-uri", "/public/a"),
        ("x-rewrite-url", "/public/a"),
        ("x-forwarded-uri", "/public/a"),
        ("x-forwarded-prefix", "/public"),
        ("x-forwarded-path", "/public/a"),
        ("x-forwarded-method", "OPTIONS"),
        ("x-http-method-override", "OPTIONS"),
        ("x-forwarded-for", "127.0.0.1"),
        ("x-forwarded-user", "admin"),
        ("x-auth-subject", "admin"),
        ("authorization", "Bearer anything"),
        ("authorization", "Basic YWRtaW46YWRtaW4="),
        ("connection", "cookie"),
        ("referer", "/public/a"),
        ("sec-purpose", "prefetch"),
    ] {
        let answer = stranger.get_with("/api/a", &[(name, value)]).await;
        assert_eq!(answer.status, 401, "{name}: {value}");
    }
    for target in ["/api/a?/public/a", "/api/a?x=/../public/a", "/api/a%3f/public/a"] {
        assert_eq!(stranger.get(target).await.status, 401, "{target}");
    }
    assert_eq!(gateway.upstream.requests().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_gets_back_what_is_for_the_upstream_alone() {
    let gateway = Gateway::start("", &[]).await;
    let mut browser = gateway.signed_in().await;
    assert_eq!(
        browser.send(Method::TRACE, "/token/a", &[], None).await.status,
        405
    );
    assert_eq!(gateway.upstream.requests().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn forwarding_headers_from_anybody_change_nothing() {
    let gateway = Gateway::start("", &[]).await;
    let lies = [
        ("x-forwarded-proto", "https"),
        ("x-forwarded-host", "evil.example"),
        ("x-forwarded-port", "443"),
        ("x-forwarded-for", "6.6.6.6"),
        ("x-forwarded-uri", "/public/a"),
        ("x-forwarded-server", "evil.example"),
        ("x-real-ip", "6.6.6.6"),
        ("forwarded", "for=6.6.6.6;host=evil.example;proto=https"),
    ];
    let mut browser = gateway.stack.browser();
    let login = browser.get_with("/api/auth/login", &lies).await;
    assert_eq!(login.status, 302);
    assert!(!login.location().contains("evil"), "{login:?}");
    assert!(
        login
            .set_cookies()
            .iter()
            .all(|cookie| !cookie.contains("Secure")),
        "{login:?}"
    );
    let mut signed_in = gateway.signed_in().await;
    assert_eq!(signed_in.get_with("/api/a", &lies).await.status, 200);
    let seen = gateway.upstream.requests().pop().unwrap();
    for (name, _) in lies {
        assert!(
            seen.all(name)
                .iter()
                .all(|value| !value.contains("evil") && !value.contains("6.6.6.6") && value != "https"),
            "{name}: {seen:?}"
        );
    }
    let page = gateway.stack.browser().get_with("/account/a", &lies).await;
    assert!(!page.location().contains("evil"), "{page:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_garbled_origin_has_neither_another_clients_bucket_nor_the_proxys() {
    let settings = [
        ("EDGE_TRUSTED_PROXIES", "127.0.0.1"),
        ("EDGE_RATE_LIMIT_LOGIN", "2"),
    ];
    let gateway = Gateway::start("", &settings).await;
    let status = async |path: &str, forwarded: &str| {
        let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\n{forwarded}Connection: close\r\n\r\n");
        let answer = gateway.stack.raw(&request).await;
        answer.split(' ').nth(1).unwrap().to_owned()
    };
    for (forwarded, statuses) in [
        ("X-Forwarded-For: \u{e9}, 192.0.2.1\r\n", ["302", "302", "429"]),
        ("X-Forwarded-For: \u{e9}, 192.0.2.2\r\n", ["302", "302", "429"]),
        (
            "X-Forwarded-For: \u{e9}\r\nX-Forwarded-For: 192.0.2.3\r\n",
            ["302", "302", "429"],
        ),
        ("X-Forwarded-For: 192.0.2.4, unknown\r\n", ["302", "302", "429"]),
        // Counts as the same unknown address as the previous one.
        ("X-Forwarded-For: \u{e9}\r\n", ["429", "429", "429"]),
        // The address of the proxy itself.
        ("", ["302", "302", "429"]),
    ] {
        for expected in statuses {
            assert_eq!(
                status("/api/auth/login", forwarded).await,
                expected,
                "{forwarded}"
            );
        }
    }
    for (forwarded, expected) in [("\u{e9}, 192.0.2.1", "192.0.2.1"), ("\u{e9}", "0.0.0.0")] {
        let forwarded = format!("X-Forwarded-For: {forwarded}\r\n");
        assert_eq!(status("/public/a", &forwarded).await, "200");
        let seen = gateway.upstream.requests().pop().unwrap();
        assert_eq!(seen.all("x-forwarded-for"), [expected]);
    }
}

/// Headers that only a proxy may send: one of each kind, as applications and frameworks read them.
const OF_PROXIES: [&str; 24] = [
    "True-Client-IP",
    "Client-IP",
    "CF-Connecting-IP",
    "Fastly-Client-IP",
    "X-Cluster-Client-IP",
    "Forwarded-For",
    "X-Forwarded",
    "X-Remote-Addr",
    "X-Host",
    "X-Scheme",
    "Front-End-Https",
    "X-ARR-SSL",
    "X-ARR-ClientCert",
    "SSL-Client-S-DN",
    "X-SSL-Client-Cert",
    "MS-ASPNETCORE-WINAUTHTOKEN",
    "X-MS-CLIENT-PRINCIPAL-NAME",
    "X-Amzn-Oidc-Data",
    "X-Goog-Authenticated-User-Email",
    "X-Envoy-External-Address",
    "Script-Name",
    "X-Sendfile-Type",
    "X-Accel-Mapping",
    "Remote-User",
];

#[tokio::test(flavor = "multi_thread")]
async fn what_only_a_proxy_may_tell_reaches_an_upstream_from_a_trusted_one_alone() {
    let spelled: Vec<String> = OF_PROXIES.iter().map(|name| name.replace('-', "_")).collect();
    for (settings, is_trusted) in [(&[][..], false), (&[("EDGE_TRUSTED_PROXIES", "127.0.0.1")], true)] {
        let gateway = Gateway::start("", settings).await;
        let mut browser = gateway.signed_in().await;
        let names = OF_PROXIES
            .iter()
            .copied()
            .chain(spelled.iter().map(String::as_str));
        let sent: Vec<(&str, &str)> = names
            .chain(["Proxy"])
            .map(|name| (name, "http://6.6.6.6/"))
            .collect();
        for path in ["/public/a", "/api/a"] {
            assert_eq!(browser.get_with(path, &sent).await.status, 200);
            let seen = gateway.upstream.requests().pop().unwrap();
            let mut lies: Vec<&str> = seen
                .headers
                .iter()
                .filter(|(_, value)| value.as_bytes() == b"http://6.6.6.6/")
                .map(|(name, _)| name.as_str())
                .collect();
            lies.sort_unstable();
            let mut expected: Vec<String> = OF_PROXIES.iter().map(|name| name.to_ascii_lowercase()).collect();
            expected.retain(|_| is_trusted);
            expected.sort_unstable();
            assert_eq!(lies, expected, "{path} {settings:?}");
        }
    }
}
