//! The program itself: its settings, after a kill, and with another key afterwards.

use serde_json::{Value, json};
use session_proto::client::ClientSettings;

use super::peer::{Peer, accepts, status};
use super::support::*;
use crate::operator::support::{NEW_KEY, OLD_KEY, Service, file_in, program};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_is_killed_before_it_has_told_loses_nothing_nor_does_a_change_of_keys() {
    let peer = Peer::start().await;
    peer.always(status(503));
    let setting = Setting::new().await.pushed("files", &peer.url, "");
    let (store, receivers) = (file_in(setting.path()), setting.file());
    let more = [("SESSION_SIGNALS", receivers.to_str().unwrap())];
    let client = ClientSettings::new(["http://unused"]);
    let service = Service::start_with(&store, OLD_KEY, &more, &client).await;
    let (secret, _) = service.create("ada", "sid-1", "").await;
    service.client.end_session(end(&secret)).await.unwrap();
    let first = peer.wait_for(1).await;
    service.signal("KILL");
    drop(service);

    let both = format!("{NEW_KEY},{OLD_KEY}");
    peer.always(accepts());
    let tried = peer.got().len();
    let service = Service::start_with(&store, &both, &more, &client).await;
    let pushed = peer.wait_for(tried + 1).await;
    let (told, before) = (claims_of(&pushed[tried].token), claims_of(&first[0].token));
    assert_eq!(told["jti"], before["jti"]);
    assert_eq!(told["sub_id"], before["sub_id"]);
    assert!(!service.told().contains("PRIVATE KEY"));
    service.stop().await;
}

#[tokio::test]
async fn the_tool_prints_metadata_and_public_keys_for_the_operator_to_publish() {
    let setting = Setting::new().await.pushed("files", "https://files.example", "");
    let printed = |name: &str| {
        let mut command = program();
        command.args(["receivers", name]);
        let output = command.env("SESSION_SIGNALS", setting.file()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let (metadata, keys) = (printed("metadata"), printed("keys"));
    assert_eq!(metadata["issuer"], json!(setting.issuer));
    assert_eq!(
        metadata["jwks_uri"],
        json!(format!("{}/jwks.json", setting.issuer))
    );
    assert!(keys["keys"][0]["kid"].is_string() && keys["keys"][0].get("d").is_none());
    let without = program().args(["receivers", "keys"]).output().unwrap();
    assert_eq!(without.status.code(), Some(78));
}
