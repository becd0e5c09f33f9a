//! The program itself: by its settings, killed, and with another key afterwards.

use session_proto::client::ClientSettings;

use super::peer::{Peer, accepts, status};
use super::support::*;
use crate::operator::support::{NEW_KEY, OLD_KEY, Service, file_in};
use crate::redis_server::free_port;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_is_killed_before_it_has_told_loses_nothing_nor_does_a_change_of_keys() {
    let peer = Peer::start().await;
    peer.always(status(503));
    let setting = Setting::new().await.pushed("files", &peer.url, "");
    let (store, receivers) = (file_in(setting.path()), setting.file());
    let address = format!("127.0.0.1:{}", free_port());
    let more = [
        ("SESSION_RECEIVERS", receivers.to_str().unwrap()),
        ("SESSION_SIGNALS_LISTEN", address.as_str()),
    ];
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
    for secret in [&token_of("files"), "PRIVATE KEY"] {
        assert!(!service.told().contains(secret));
    }
    service.stop().await;
}
