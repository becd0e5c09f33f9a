//! External authorization as Envoy requests it: real gRPC, with Envoy's message.

use std::collections::HashMap;

use auth_edge::app::App;
use auth_edge::gateway::ext_authz::api;
use auth_edge::routes;
use chassis::runtime::Workers;
use session_proto::v1::{ListSessionsRequest, TokenSet};
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::transport::Channel;

use crate::device_bound::device::Device;
use crate::gateway::{Gateway, UNAUTHORIZED};
use crate::support::Browser;
use api::authorization_client::AuthorizationClient;
use api::check_response::HttpResponse;

pub(crate) struct Envoy {
    client: AuthorizationClient<Channel>,
    _stop: DropGuard,
}

impl Envoy {
    async fn before(gateway: &Gateway) -> Self {
        Self::before_edge(&gateway.stack.edge).await
    }

    pub(crate) async fn before_edge(edge: &App) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let router = routes::ext_authz(edge.clone());
        tokio::spawn(chassis::serve::serve_each(
            Workers::here(),
            listener,
            move || router.clone(),
            None,
            chassis::serve::Limits::default(),
            chassis::serve::Stopping::on(stop.clone()),
        ));
        let client = AuthorizationClient::connect(format!("http://{address}"))
            .await
            .unwrap();
        Self {
            client,
            _stop: stop.drop_guard(),
        }
    }

    async fn ask(&mut self, headers: &[(&str, &str)], extensions: &[(&str, &str)]) -> api::CheckResponse {
        self.ask_about("app.example", "192.0.2.7", headers, extensions)
            .await
    }

    /// Checks a request to this host from this address.
    pub(crate) async fn ask_about(
        &mut self,
        host: &str,
        source: &str,
        headers: &[(&str, &str)],
        extensions: &[(&str, &str)],
    ) -> api::CheckResponse {
        let map = |pairs: &[(&str, &str)]| -> HashMap<String, String> {
            pairs
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect()
        };
        let own = [(":authority", host), (":path", "/a?b=c"), (":method", "GET")];
        let headers = map(&[&own, headers].concat());
        let address = api::core::address::Address::SocketAddress(api::core::SocketAddress {
            address: source.to_owned(),
            port_value: 4711,
        });
        let attributes = api::AttributeContext {
            source: Some(api::attribute_context::Peer {
                address: Some(api::core::Address {
                    address: Some(address),
                }),
            }),
            request: Some(api::attribute_context::Request {
                http: Some(api::attribute_context::HttpRequest {
                    method: headers[":method"].clone(),
                    headers,
                    path: "/a?b=c".to_owned(),
                    host: host.to_owned(),
                    scheme: "https".to_owned(),
                }),
            }),
            context_extensions: map(extensions),
        };
        let question = api::CheckRequest {
            attributes: Some(attributes),
        };
        self.client.check(question).await.unwrap().into_inner()
    }
}

fn named<'h>(headers: &'h [api::core::HeaderValueOption], name: &str) -> Vec<&'h str> {
    let of = |option: &'h api::core::HeaderValueOption| option.header.as_ref().unwrap();
    headers
        .iter()
        .map(of)
        .filter(|header| header.key == name)
        .map(|header| header.value.as_str())
        .collect()
}

pub(crate) fn denied(answer: api::CheckResponse) -> (i32, api::DeniedHttpResponse) {
    match answer.http_response {
        Some(HttpResponse::DeniedResponse(denied)) => (answer.status.unwrap().code, denied),
        other => panic!("{other:?}"),
    }
}

pub(crate) fn passed(answer: api::CheckResponse) -> api::OkHttpResponse {
    assert_eq!(answer.status.unwrap().code, 0);
    match answer.http_response {
        Some(HttpResponse::OkResponse(ok)) => ok,
        other => panic!("{other:?}"),
    }
}

async fn cookie(gateway: &Gateway) -> String {
    let (name, value) = gateway.stack.session_cookie().await;
    format!("{name}={value}")
}

#[tokio::test(flavor = "multi_thread")]
async fn checks_compressed_with_gzip_are_read_up_to_the_bound_of_their_unpacked_size() {
    let gateway = Gateway::start("", &[("EDGE_BASE_URL", "https://app.example")]).await;
    let mut envoy = Envoy::before(&gateway).await;
    envoy.client = envoy
        .client
        .send_compressed(tonic::codec::CompressionEncoding::Gzip);
    let (code, _) = denied(envoy.ask(&[("accept", "application/json")], &[]).await);
    assert_eq!(code, 16);
    let bomb = api::CheckRequest {
        attributes: Some(api::AttributeContext {
            context_extensions: HashMap::from([("bomb".to_owned(), "0".repeat(16 * 1024 * 1024))]),
            ..Default::default()
        }),
    };
    let refused = envoy.client.check(bomb).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::ResourceExhausted, "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_is_denied_word_for_word_or_sent_to_sign_in() {
    let gateway = Gateway::start("", &[("EDGE_BASE_URL", "https://app.example")]).await;
    let mut envoy = Envoy::before(&gateway).await;
    let (code, answer) = denied(envoy.ask(&[("accept", "application/json")], &[]).await);
    assert_eq!(
        (code, answer.status.unwrap().code, answer.body.as_str()),
        (16, 401, UNAUTHORIZED)
    );
    assert_eq!(named(&answer.headers, "cache-control"), ["no-store"]);

    let redirect = [("redirect", "1")];
    let (_, answer) = denied(envoy.ask(&[("accept", "text/html")], &redirect).await);
    assert_eq!(answer.status.unwrap().code, 302);
    assert_eq!(
        named(&answer.headers, "location"),
        ["https://app.example/api/auth/login?returnTo=https%3A%2F%2Fapp.example%2Fa%3Fb%3Dc"]
    );
    assert!(
        answer.headers.iter().all(|header| header.append.is_none()),
        "Envoy leaves out what has the deprecated field: {answer:?}"
    );
    let (_, script) = denied(envoy.ask(&[("sec-fetch-mode", "cors")], &redirect).await);
    assert_eq!(script.status.unwrap().code, 401, "a script cannot follow");
    assert_eq!(gateway.stack.sessions.calls(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn somebody_signed_in_passes_with_their_name_and_without_our_cookie() {
    let settings = [
        ("EDGE_CHECK_AUTHORIZATION", "true"),
        ("EDGE_EXT_AUTHZ_LISTEN", "127.0.0.1:0"),
    ];
    let gateway = Gateway::start("", &settings).await;
    let mut envoy = Envoy::before(&gateway).await;
    let ours = cookie(&gateway).await;
    let cookies = format!("theme=dark; {ours}");
    let sent = [
        ("cookie", cookies.as_str()),
        ("x-auth-subject", "admin"),
        ("x-auth-issuer", "https://evil.example"),
        ("x_auth_subject", "admin"),
        ("x.auth.subject", "admin"),
        ("x-auth-groups", "admin"),
        ("x-forwarded-user", "admin"),
        ("x-forwarded-for", "192.0.2.7"),
    ];
    let ok = passed(envoy.ask(&sent, &[]).await);
    assert_eq!(named(&ok.headers, "x-auth-subject"), ["person-1"]);
    assert_eq!(named(&ok.headers, "x-auth-session").len(), 1);
    assert_eq!(
        named(&ok.headers, "x-auth-issuer"),
        [gateway.stack.provider.issuer()]
    );
    assert_eq!(named(&ok.headers, "authorization"), ["Bearer token-of-person-1"]);
    assert_eq!(named(&ok.headers, "cookie"), ["theme=dark"]);
    let overwrite = api::core::header_value_option::HeaderAppendAction::OverwriteIfExistsOrAdd as i32;
    assert!(ok.headers.iter().all(|header| header.append_action == overwrite));
    let mut removed = ok.headers_to_remove.clone();
    removed.sort_unstable();
    assert_eq!(
        removed,
        [
            "x-auth-groups",
            "x-forwarded-user",
            "x.auth.subject",
            "x_auth_subject"
        ]
    );

    let alone = passed(envoy.ask(&[("cookie", &ours)], &[]).await);
    assert_eq!(alone.headers_to_remove, ["cookie"]);
    gateway.stack.advance(120);
    let rolled = passed(envoy.ask(&[("cookie", &ours)], &[]).await);
    assert!(named(&rolled.response_headers_to_add, "set-cookie")[0].starts_with("session="));
}

/// All cookies of a browser.
fn cookies(browser: &Browser) -> String {
    let pairs = browser.jar.iter().map(|(name, value)| format!("{name}={value}"));
    pairs.collect::<Vec<_>>().join("; ")
}

#[tokio::test(flavor = "multi_thread")]
async fn envoy_is_told_that_a_session_is_bound_to_its_device() {
    let gateway = Gateway::start("", &[("EDGE_BASE_URL", "https://app.example")]).await;
    let mut envoy = Envoy::before(&gateway).await;
    let mut browser = gateway.stack.browser();
    browser.sign_in().await;
    let own = cookies(&browser);
    let claimed = ("x-auth-device", "bound");
    let unbound = passed(envoy.ask(&[("cookie", &own), claimed], &[]).await);
    assert_eq!(named(&unbound.headers, "x-auth-device"), Vec::<&str>::new());
    assert!(unbound.headers_to_remove.contains(&"x-auth-device".to_owned()));
    let _device = Device::bind(&mut browser).await;
    let own = cookies(&browser);
    for sent in [&[("cookie", own.as_str())][..], &[("cookie", &own), claimed]] {
        let bound = passed(envoy.ask(sent, &[]).await);
        assert_eq!(named(&bound.headers, "x-auth-device"), ["bound"]);
        assert_eq!(bound.headers_to_remove, ["cookie"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cookie_that_rotates_comes_with_answers_that_come_soon() {
    let gateway = Gateway::start("", &[("EDGE_COOKIE_ROTATION", "300")]).await;
    let mut envoy = Envoy::before(&gateway).await;
    let ours = cookie(&gateway).await;
    gateway.stack.advance(300);
    for (method, is_given) in [("POST", false), ("GET", true)] {
        let ok = passed(envoy.ask(&[("cookie", &ours), (":method", method)], &[]).await);
        let given = named(&ok.response_headers_to_add, "set-cookie");
        assert_eq!(given.len(), usize::from(is_given), "{method}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn envoy_is_told_what_the_application_reads_and_what_no_client_may_send() {
    let rules = "[[check]]\nhost = \"app.example\"\nguard = \"page\"\nupstream_jwt = true\n\
         headers = { Remote-User = \"claim:preferred_username\", Remote-Groups = \"claim:groups\" }\n\
         [[check]]\nhost = \"app.example\"\nmethods = [\"DELETE\"]\nguard = \"none\"\n";
    let keys = crate::support::key_file();
    let settings = [("EDGE_UPSTREAM_JWT_KEY_FILE", keys.path().to_str().unwrap())];
    let gateway = Gateway::start(rules, &settings).await;
    let mut envoy = Envoy::before(&gateway).await;
    let person = serde_json::json!({"sub": "ada-1", "preferred_username": "ada"});
    let (name, value) = gateway.stack.session_of(person, "openid").await;
    let cookie = format!("{name}={value}");
    let sent = [
        ("cookie", cookie.as_str()),
        ("remote-user", "admin"),
        ("remote_user", "admin"),
        ("remote-groups", "admin"),
        ("x-auth-assertion", "forged"),
        ("x-forwarded-method", "DELETE"),
        ("x-forwarded-uri", "/elsewhere"),
    ];
    let ok = passed(envoy.ask(&sent, &[]).await);
    assert_eq!(named(&ok.headers, "remote-user"), ["ada"]);
    assert_eq!(named(&ok.headers, "remote-groups"), Vec::<&str>::new());
    assert_eq!(named(&ok.headers, "x-auth-subject"), ["ada-1"]);
    assert_eq!(named(&ok.headers, "x-auth-assertion").len(), 1);
    let mut removed = ok.headers_to_remove.clone();
    removed.sort_unstable();
    assert_eq!(removed, ["cookie", "remote-groups", "remote_user"]);
    let (_, stranger) = denied(envoy.ask(&sent[1..], &[]).await);
    assert_eq!(
        stranger.status.unwrap().code,
        401,
        "a method of the client's own saying is none"
    );
    for name in ["x-http-method-override", "X_Method_Override"] {
        let sent = [("cookie", cookie.as_str()), (name, "DELETE")];
        let (_, refused) = denied(envoy.ask(&sent, &[]).await);
        assert_eq!(refused.status.unwrap().code, 403, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subject_beyond_ascii_is_told_and_no_client_takes_its_place() {
    let gateway = Gateway::start("", &[]).await;
    let mut envoy = Envoy::before(&gateway).await;
    let person = serde_json::json!({"sub": "j\u{fc}rgen"});
    let (name, value) = gateway.stack.session_with(person, TokenSet::default()).await;
    let cookies = format!("theme=d\u{fc}ster; {name}={value}");
    let sent = [("cookie", cookies.as_str()), ("x-auth-subject", "admin")];
    let ok = passed(envoy.ask(&sent, &[]).await);
    assert_eq!(named(&ok.headers, "x-auth-subject"), ["j\u{fc}rgen"]);
    assert_eq!(named(&ok.headers, "cookie"), ["theme=d\u{fc}ster"]);
    assert_eq!(ok.headers_to_remove, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn with_the_session_service_down_envoy_is_told_503() {
    let gateway = Gateway::start("", &[]).await;
    let mut envoy = Envoy::before(&gateway).await;
    let ours = cookie(&gateway).await;
    gateway.stack.sessions.stop().await;
    let (code, answer) = denied(envoy.ask(&[("cookie", &ours)], &[]).await);
    assert_eq!((code, answer.status.unwrap().code), (14, 503));
    assert_eq!(named(&answer.headers, "set-cookie"), Vec::<&str>::new());
    assert_eq!(named(&answer.headers, "retry-after").len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_no_larger_than_what_browsers_send() {
    let gateway = Gateway::start("", &[]).await;
    let mut envoy = Envoy::before(&gateway).await;
    let question = api::CheckRequest {
        attributes: Some(api::AttributeContext {
            context_extensions: [("padding".to_owned(), "x".repeat(300 * 1024))].into(),
            ..api::AttributeContext::default()
        }),
    };
    let refused = envoy.client.check(question).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::OutOfRange);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_without_a_request_is_refused() {
    let gateway = Gateway::start("", &[]).await;
    let mut envoy = Envoy::before(&gateway).await;
    let refused = envoy
        .client
        .check(api::CheckRequest::default())
        .await
        .unwrap_err();
    assert_eq!(refused.code(), tonic::Code::InvalidArgument);
}

#[tokio::test(flavor = "multi_thread")]
async fn envoy_lets_a_client_with_a_token_of_its_own_through_and_keeps_the_token() {
    let rules = "[[check]]\nhost = \"app.example\"\nguard = \"api\"\n[check.bearer]\n";
    let gateway = Gateway::start(rules, &[]).await;
    let now = gateway.stack.now_secs();
    gateway.stack.provider.script(|script| script.now = Some(now));
    let mut envoy = Envoy::before(&gateway).await;
    let token = |aud: &str| {
        gateway
            .stack
            .provider
            .access_token(serde_json::json!({ "aud": aud }))
    };
    let good = format!("Bearer {}", token("https://app.example"));
    let sent = [
        ("authorization", good.as_str()),
        ("x-auth-client", "root"),
        ("x-auth-session", "any"),
    ];
    let ok = passed(envoy.ask(&sent, &[]).await);
    assert_eq!(named(&ok.headers, "x-auth-subject"), ["alice"]);
    assert_eq!(named(&ok.headers, "x-auth-client"), ["machine"]);
    let mut removed = ok.headers_to_remove.clone();
    removed.sort_unstable();
    assert_eq!(removed, ["authorization", "x-auth-session"]);
    let other = format!("Bearer {}", token("https://other.example"));
    let (_, refused) = denied(envoy.ask(&[("authorization", &other)], &[]).await);
    assert_eq!(refused.status.unwrap().code, 401);
    assert!(named(&refused.headers, "www-authenticate")[0].contains("invalid_token"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_route_of_envoy_gets_the_token_of_the_api_it_names() {
    let settings = [
        ("EDGE_CHECK_AUTHORIZATION", "true"),
        ("EDGE_EXT_AUTHZ_LISTEN", "127.0.0.1:0"),
    ];
    let gateway = Gateway::start("", &settings).await;
    let mut envoy = Envoy::before(&gateway).await;
    let mut browser = gateway.stack.browser();
    browser.sign_in().await;
    let cookie = format!("session={}", browser.jar["session"]);
    let sent = [("cookie", cookie.as_str())];
    let own = passed(envoy.ask(&sent, &[]).await);
    let named_by_route = [("audience", "orders"), ("scope", "read")];
    let orders = passed(envoy.ask(&sent, &named_by_route).await);
    let (own, orders) = (
        named(&own.headers, "authorization"),
        named(&orders.headers, "authorization"),
    );
    assert_eq!((own.len(), orders.len()), (1, 1));
    assert_ne!(own, orders);
    let asked = gateway
        .stack
        .provider
        .last_request(scripted_provider::Endpoint::Token);
    assert_eq!(
        (asked.param("audience"), asked.param("scope")),
        (Some("orders"), Some("read"))
    );
}

/// The headers of every proxy by which a client could describe its request.
fn described(host: &str, path: &str) -> Vec<(String, String)> {
    let url = format!("https://{host}{path}");
    let pairs = [
        ("x-forwarded-host", host),
        ("x_forwarded_host", host),
        ("x-forwarded-proto", "https"),
        ("x-forwarded-uri", path),
        ("x-forwarded-method", "GET"),
        ("x-forwarded-for", "6.6.6.6"),
        ("x-original-url", &url),
        ("x-original-uri", path),
        ("x-original-method", "GET"),
        ("forwarded", "for=6.6.6.6;host=a.localhost"),
        ("x-real-ip", "6.6.6.6"),
        ("host", host),
    ];
    pairs
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec()
}

#[tokio::test(flavor = "multi_thread")]
async fn no_header_of_a_client_describes_the_request_that_envoy_asks_about() {
    let rules = "[[check]]\nhost = \"app.example\"\nguard = \"page\"\nredirect = true\n\
         [[check]]\nhost = \"open.example\"\nguard = \"none\"\n\
         [[check]]\nhost = \"app.example\"\nmethods = [\"GET\"]\npath = \"/public/*\"\nguard = \"none\"\n";
    // Envoy's address and its clients' are trusted proxies, as the documents advise.
    let settings = [
        ("EDGE_BASE_URL", "https://app.example"),
        ("EDGE_TRUSTED_PROXIES", "192.0.2.0/24"),
    ];
    let gateway = Gateway::start(rules, &settings).await;
    let mut envoy = Envoy::before(&gateway).await;
    let lies = described("open.example", "/public/a");
    let lies: Vec<(&str, &str)> = lies.iter().map(|(name, value)| (&**name, &**value)).collect();
    let (_, answer) = denied(envoy.ask(&lies, &[]).await);
    assert_eq!(answer.status.unwrap().code, 401);
    let visit = [&lies[..], &[("accept", "text/html")]].concat();
    let (_, answer) = denied(envoy.ask(&visit, &[]).await);
    assert_eq!(
        named(&answer.headers, "location"),
        ["https://app.example/api/auth/login?returnTo=https%3A%2F%2Fapp.example%2Fa%3Fb%3Dc"],
        "and the rule sends visitors to sign in without context extensions"
    );
    // The session service learns the address a session is used from.
    let gateway = Gateway::start("", &settings[1..]).await;
    let mut envoy = Envoy::before(&gateway).await;
    let ours = cookie(&gateway).await;
    gateway.stack.advance(120);
    passed(envoy.ask(&[&lies[..], &[("cookie", &ours)]].concat(), &[]).await);
    let list = gateway.stack.sessions.client();
    let sessions = list
        .list_sessions(ListSessionsRequest {
            issuer: gateway.stack.provider.issuer().to_owned(),
            subject: "person-1".to_owned(),
            ..ListSessionsRequest::default()
        })
        .await
        .unwrap()
        .sessions;
    let seen = sessions[0].last_seen_on.as_ref().unwrap();
    assert_eq!(seen.address, "192.0.2.7");
}
