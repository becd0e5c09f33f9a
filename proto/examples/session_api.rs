//! What a service does with the session API, in Rust. docs/session-api.md explains each function.
//!
//! ```text
//! export SESSION_SVC=http://127.0.0.1:50051   # https://… takes SESSION_CA, SESSION_CERT and SESSION_KEY, PEM files
//! cargo run -p vestibule-session-api --example session_api -- look-up HANDLE
//! SESSION_ID=… cargo run -p vestibule-session-api --example session_api -- call-api URL SCOPE
//! SESSION_ID=… cargo run -p vestibule-session-api --example session_api -- remember KEY VALUE
//! cargo run -p vestibule-session-api --example session_api -- end-all ISSUER SUBJECT
//! cargo run -p vestibule-session-api --example session_api -- watch
//! ```
//! A session ID is a secret: it comes from the environment, because others can read a program's arguments.

use std::error::Error;

use vestibule_session_api::client::{Advice, ClientSettings, ClientTls, SessionClient};

/// One client for the whole program: it connects with the first call; clones share its connections.
fn connect() -> Result<SessionClient, Box<dyn Error>> {
    let mut settings =
        ClientSettings::new([variable("SESSION_SVC").unwrap_or("http://127.0.0.1:50051".into())]);
    if let Some(ca) = variable("SESSION_CA") {
        let identity = variable("SESSION_CERT").zip(variable("SESSION_KEY"));
        let identity = identity.map(|(certificate, key)| (certificate.into(), key.into()));
        settings.tls = Some(ClientTls::from_files(ca.into(), identity)?);
    }
    Ok(SessionClient::new(settings)?)
}

use vestibule_session_api::v1::{GetSessionRequest, get_session_request::By, session::State};

/// Prints who is signed in with a session.
async fn look_up(sessions: &SessionClient, handle: String) -> Result<(), Box<dyn Error>> {
    let by = Some(By::Handle(handle));
    let session = match sessions.get_session(GetSessionRequest { by }).await {
        Ok(answer) => answer.session.ok_or("an answer without a session")?,
        Err(error) if error.advice() == Advice::SignIn => {
            println!("no user is signed in: {}", error.reason.as_str_name());
            return Ok(());
        }
        // For example ERR_SESSION_SERVICE_UNAVAILABLE: the state is unknown, so this is not "signed out".
        Err(error) => return Err(error.into()),
    };
    match session.state() {
        State::NeedsSignIn => println!(
            "{} has to sign in again before an API can be called",
            session.subject
        ),
        State::Active | State::Unreadable | State::Unspecified => {
            println!("{} is signed in", session.subject)
        }
    }
    Ok(())
}

use vestibule_session_api::v1::GetAccessTokenRequest;

/// Calls an API for the person. Request the token each time: the session service refreshes it.
async fn call_api(sessions: &SessionClient, url: &str, scope: String) -> Result<(), Box<dyn Error>> {
    let request = GetAccessTokenRequest {
        session_id: variable("SESSION_ID").ok_or("SESSION_ID is not set")?,
        scopes: vec![scope],
        ..GetAccessTokenRequest::default()
    };
    let token = match sessions.get_access_token(request).await {
        Ok(token) => token,
        Err(error) if error.advice() == Advice::SignIn => {
            println!("sign in again: {}", error.reason.as_str_name());
            return Ok(());
        }
        Err(error) if error.advice() == Advice::GrantScopes => {
            println!("not granted: {}", error.metadata["scopes"]);
            return Ok(());
        }
        Err(error) => return Err(error.into()),
    };
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let call = reqwest::Client::builder()
        .build()?
        .get(url)
        .bearer_auth(token.access_token);
    println!("{}", call.send().await?.error_for_status()?.text().await?);
    Ok(())
}

use serde_json::{Map, Value};
use vestibule_session_api::v1::UpdateSessionRequest;

/// Stores a value with the session. If another writer changes the session in between, the version is stale:
/// apply the change again to the current session.
async fn remember(sessions: &SessionClient, key: String, value: String) -> Result<(), Box<dyn Error>> {
    let session_id = variable("SESSION_ID").ok_or("SESSION_ID is not set")?;
    loop {
        let by = Some(By::SessionId(session_id.clone()));
        let session = sessions.get_session(GetSessionRequest { by }).await?.session;
        let session = session.ok_or("an answer without a session")?;
        let mut attributes: Map<String, Value> = serde_json::from_str(&session.attributes)?;
        attributes.insert(key.clone(), value.clone().into());
        let request = UpdateSessionRequest {
            session_id: session_id.clone(),
            attributes: serde_json::to_string(&attributes)?,
            version: session.version,
            ..Default::default()
        };
        match sessions.update_session(request).await {
            Ok(_) => break,
            Err(error) if error.advice() == Advice::ReadAgain => {
                println!("another caller changed the session: trying again")
            }
            Err(error) => return Err(error.into()),
        }
    }
    println!("remembered");
    Ok(())
}

use vestibule_session_api::v1::{Cause, EndSessionRequest, ListSessionsRequest, end_session_request};

/// Lists a person's sessions page by page, and ends them. (`EndSessions` ends them all in one call.)
async fn end_all(sessions: &SessionClient, issuer: String, subject: String) -> Result<(), Box<dyn Error>> {
    let mut request = ListSessionsRequest {
        issuer,
        subject,
        page_size: 100,
        page_token: String::new(),
    };
    loop {
        let page = sessions.list_sessions(request.clone()).await?;
        for session in page.sessions {
            let answer = sessions
                .end_session(EndSessionRequest {
                    by: Some(end_session_request::By::Handle(session.handle.clone())),
                    cause: Cause::Operator.into(),
                    ..Default::default()
                })
                .await?;
            // A session that another caller has already ended is not a failure.
            println!(
                "{} {}",
                session.handle,
                if answer.ended { "ended" } else { "was gone" }
            );
        }
        if page.next_page_token.is_empty() {
            return Ok(());
        }
        request.page_token = page.next_page_token;
    }
}

use tokio_stream::StreamExt as _;
use vestibule_session_api::client::WatchItem;
use vestibule_session_api::v1::{WatchSessionsRequest, session_event::Kind};

/// Prints every ending while the program runs. The client reopens the stream when it ends, resumes after the
/// last event, and reports when events may be missing.
async fn watch(sessions: &SessionClient) {
    let mut watch = sessions.watch(WatchSessionsRequest::default());
    let mut first = true;
    while let Some(item) = watch.next().await {
        match item {
            WatchItem::Connected if std::mem::take(&mut first) => {
                println!("live: read the sessions you need")
            }
            WatchItem::Connected => println!("live again"),
            WatchItem::Event(event) if event.kind() == Kind::Ended => {
                println!("ended {} {}", event.handle, event.cause().as_str_name())
            }
            WatchItem::Missed => println!("missed: read cached sessions again"),
            WatchItem::Lost(error) => println!("lost: do not trust cached sessions ({error})"),
            // Other events; how current the watch is; items of a watch per replica.
            WatchItem::Event(_) | WatchItem::Current(_) | WatchItem::Found | WatchItem::Gone => {}
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let sessions = connect()?;
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["look-up", handle] => look_up(&sessions, (*handle).to_owned()).await,
        ["call-api", url, scope] => call_api(&sessions, url, (*scope).to_owned()).await,
        ["remember", key, value] => remember(&sessions, (*key).to_owned(), (*value).to_owned()).await,
        ["end-all", issuer, subject] => end_all(&sessions, (*issuer).to_owned(), (*subject).to_owned()).await,
        ["watch"] => {
            watch(&sessions).await;
            Ok(())
        }
        _ => Err(
            "look-up HANDLE | call-api URL SCOPE | remember KEY VALUE | end-all ISSUER SUBJECT | watch"
                .into(),
        ),
    }
}

#[expect(clippy::disallowed_methods, reason = "an example has no settings of its own")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
