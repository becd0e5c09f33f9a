//! Begins a session, reads it and ends it, as another service would:
//! `cargo run -p session-proto --example session -- http://127.0.0.1:50051`

use serde_json::json;
use session_proto::claims;
use session_proto::client::{ClientSettings, SessionClient};
use session_proto::v1::{
    CreateSessionRequest, EndSessionRequest, GetSessionRequest, end_session_request, get_session_request,
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "http://127.0.0.1:50051".to_owned());
    let sessions = SessionClient::new(ClientSettings::new([address]))?;

    let user = json!({ "sub": "ada", "name": "Ada Lovelace" });
    let created = sessions
        .create_session(CreateSessionRequest {
            issuer: "https://issuer.example".to_owned(),
            user: user.as_object().map(claims::to_struct),
            ..Default::default()
        })
        .await?;
    let handle = created.session.map(|session| session.handle).unwrap_or_default();
    println!("began {handle}");

    let by = Some(get_session_request::By::Handle(handle.clone()));
    let session = sessions
        .get_session(GetSessionRequest { by })
        .await?
        .session
        .unwrap_or_default();
    println!("{} is signed in until {:?}", session.subject, session.expires_at);

    let by = Some(end_session_request::By::Handle(handle));
    let ended = sessions
        .end_session(EndSessionRequest {
            by,
            cause: "operator".to_owned(),
        })
        .await?;
    println!("ended: {}", ended.ended);

    Ok(())
}
