//! `OperatorSessionService` as the web app calls it: the edge admits operators, and a stand-in of the session
//! service answers.

mod activity;
mod forwarded;
mod refused;
mod stand_in;

use std::io::Write as _;
use std::time::Duration;

use prost::Message;
use reqwest::header::HeaderMap;
use scripted_provider::{CLIENT_ID, CLIENT_SECRET, ScriptedProvider};
use serde_json::{Value, json};
use session_proto::v1::session_filter::By;
use session_proto::v1::{
    Activity, Operator, SearchSessionsRequest, SearchSessionsResponse, SessionFilter, WatchActivityRequest,
};
use tempfile::NamedTempFile;
use tokio::net::TcpListener;
use tonic::Status;

use self::stand_in::StandIn;
use crate::support::Stack;

const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// The other provider. No test contacts it.
const ISSUER_OF_B: &str = "https://b.example";

/// People of support are operators of their own provider.
const RULE: &str = "[operator]\nclaims = { groups = \"support\" }\n";

const OURS: [(&str, &str); 2] = [("x-csrf", "1"), ("sec-fetch-site", "same-origin")];

/// The edge with the providers `a` and `b`, and the rule.
struct Console {
    stack: Stack,
    service: StandIn,
    routes: NamedTempFile,
    _files: [NamedTempFile; 2],
}

impl Console {
    async fn start(rule: &str) -> Self {
        Self::with(rule, &[]).await
    }

    async fn with(rule: &str, settings: &[(&str, &str)]) -> Self {
        let a = ScriptedProvider::start();
        let [mut secret, mut providers, routes] = [(); 3].map(|()| NamedTempFile::new().unwrap());
        writeln!(secret, "{CLIENT_SECRET}").unwrap();
        writeln!(providers, "default = \"a\"").unwrap();
        for (id, issuer) in [("a", a.issuer()), ("b", ISSUER_OF_B)] {
            let secret = secret.path().display();
            writeln!(
                providers,
                "[[provider]]\nid = \"{id}\"\nname = \"Provider {id}\"\nissuer_url = \"{issuer}\"\n\
                 client_id = \"{CLIENT_ID}\"\nclient_secret_file = \"{secret}\""
            )
            .unwrap();
        }
        std::fs::write(routes.path(), rule).unwrap();
        let own = [
            ("OIDC_PROVIDERS", providers.path().to_str().unwrap()),
            ("EDGE_ROUTES", routes.path().to_str().unwrap()),
        ];
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stack = Stack::at(a, listener, &[&own, settings].concat()).await;
        let service = StandIn::new(stack.sessions.client());
        stack.sessions.answer_operators_by(service.routes());
        Self {
            stack,
            service,
            routes,
            _files: [secret, providers],
        }
    }

    fn issuer(&self) -> &str {
        self.stack.provider.issuer()
    }

    /// A page of a person of support.
    async fn operator(&self) -> Page {
        self.page(json!({ "sub": "olga", "groups": ["support"] })).await
    }

    /// A page of a person with these claims, at provider `a`.
    async fn page(&self, user: Value) -> Page {
        let (name, value) = self.stack.session_of(user, "openid").await;
        Page::of(self.stack.address(), format!("{name}={value}"))
    }

    fn search(&self, by: By) -> SearchSessionsRequest {
        search(self.issuer(), by)
    }

    fn watch(&self) -> WatchActivityRequest {
        WatchActivityRequest {
            operator: operator("ticket 7"),
            issuer: self.issuer().to_owned(),
        }
    }
}

fn operator(purpose: &str) -> Option<Operator> {
    Some(Operator {
        purpose: purpose.to_owned(),
        ..Operator::default()
    })
}

fn filter(issuer: &str, by: By) -> Option<SessionFilter> {
    Some(SessionFilter {
        issuer: issuer.to_owned(),
        by: Some(by),
        ..SessionFilter::default()
    })
}

fn search(issuer: &str, by: By) -> SearchSessionsRequest {
    SearchSessionsRequest {
        operator: operator("ticket 7"),
        filter: filter(issuer, by),
        ..SearchSessionsRequest::default()
    }
}

fn subject(subject: &str) -> By {
    By::Subject(subject.to_owned())
}

/// A page of the operators' console as a program.
struct Page {
    client: reqwest::Client,
    url: String,
    cookie: String,
}

impl Page {
    fn of(address: &str, cookie: String) -> Self {
        Self {
            client: reqwest::Client::builder().no_proxy().build().unwrap(),
            url: format!("http://{address}/session.v1.OperatorSessionService"),
            cookie,
        }
    }

    async fn send(
        &self,
        method: &str,
        message: &impl Message,
        headers: &[(&'static str, &'static str)],
    ) -> reqwest::Response {
        let message = message.encode_to_vec();
        let length = u32::try_from(message.len()).unwrap().to_be_bytes();
        let mut request = self
            .client
            .post(format!("{}/{method}", self.url))
            .header("content-type", "application/grpc-web+proto")
            .header("cookie", &self.cookie)
            .body([&[0], &length[..], &message].concat());
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = request.send().await.unwrap();
        assert_eq!(answer.headers()["cache-control"], "no-store");
        assert!(
            !answer.headers().contains_key("set-cookie"),
            "no call extends a session"
        );
        answer
    }

    async fn call<M: Message + Default>(&self, method: &str, message: &impl Message) -> Result<M, Status> {
        let mut stream = self.open(method, message).await;
        let answer = stream.next().await?;
        let end = stream.next::<M>().await.err().expect("one message");
        assert_eq!(end.code(), tonic::Code::Ok, "{end:?}");
        Ok(answer)
    }

    async fn search(&self, message: &SearchSessionsRequest) -> Result<SearchSessionsResponse, Status> {
        self.call("SearchSessions", message).await
    }

    async fn open(&self, method: &str, message: &impl Message) -> Messages {
        let answer = self.send(method, message, &OURS).await;
        Messages {
            answer,
            read: Vec::new(),
        }
    }

    async fn watch(&self, request: &WatchActivityRequest) -> Messages {
        self.open("WatchActivity", request).await
    }
}

/// The messages of an answer.
struct Messages {
    answer: reqwest::Response,
    read: Vec<u8>,
}

impl Messages {
    /// The next message, or the status at the end.
    async fn next<M: Message + Default>(&mut self) -> Result<M, Status> {
        if let Some(status) = Status::from_header_map(self.answer.headers()) {
            return Err(status);
        }
        loop {
            if let Some((flag, part, rest)) = frame(&self.read) {
                let message = match flag {
                    0 => Ok(M::decode(part).unwrap()),
                    _ => Err(trailers(part)),
                };
                self.read = rest.to_vec();
                return message;
            }
            let chunk = tokio::time::timeout(LONGEST_WAIT, self.answer.chunk()).await;
            let chunk = chunk.expect("in time").unwrap().expect("a status at the end");
            self.read.extend_from_slice(&chunk);
        }
    }

    /// Reads until the stream ends.
    async fn end(&mut self) -> Status {
        loop {
            if let Err(status) = self.next::<Activity>().await {
                return status;
            }
        }
    }
}

fn frame(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (head, rest) = bytes.split_at_checked(5)?;
    let length = u32::from_be_bytes(head[1..].try_into().unwrap());
    let (part, rest) = rest.split_at_checked(usize::try_from(length).unwrap())?;
    Some((head[0], part, rest))
}

fn trailers(part: &[u8]) -> Status {
    let text = String::from_utf8_lossy(part).into_owned();
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    let map: HeaderMap = lines
        .map(|(name, value)| (name.parse().unwrap(), value.trim().parse().unwrap()))
        .collect();
    Status::from_header_map(&map).unwrap()
}
