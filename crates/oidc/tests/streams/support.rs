//! A receiver before a transmitter that misbehaves on demand.

use std::time::Duration;

use oidc::{
    NewStream, StreamConfiguration, Transmitter, TransmitterCredentials, TransmitterError,
    TransmitterSettings, WantedDelivery,
};
use scripted_provider::{Answer, ScriptedTransmitter, TransmitterEndpoint};
use url::Url;

pub(crate) const NOW: u64 = 1_800_000_000;
pub(crate) const OURS: &str = "https://edge.example";
pub(crate) const REVOKED: &str = "https://schemas.openid.net/secevent/caep/event-type/session-revoked";

pub(crate) struct Bench {
    pub(crate) scripted: ScriptedTransmitter,
    pub(crate) transmitter: Transmitter,
}

pub(crate) fn bench_with(credentials: impl FnOnce(&ScriptedTransmitter) -> TransmitterCredentials) -> Bench {
    let scripted = ScriptedTransmitter::start();
    scripted.script(|script| script.now = Some(NOW));
    let mut settings = TransmitterSettings::new(scripted.issuer());
    settings.http_timeout = Duration::from_millis(1_500);
    settings.credentials = credentials(&scripted);
    let transmitter = Transmitter::new(settings).expect("usable settings");
    Bench {
        scripted,
        transmitter,
    }
}

pub(crate) fn bench() -> Bench {
    bench_with(|_| {
        TransmitterCredentials::bearer(&format!("  {}\n", ScriptedTransmitter::TOKEN)).expect("a token")
    })
}

impl Bench {
    pub(crate) async fn create(
        &self,
        delivery: &WantedDelivery,
    ) -> Result<StreamConfiguration, TransmitterError> {
        let stream = NewStream {
            audience: Some(&[OURS.to_owned()]),
            events_requested: &[REVOKED.to_owned()],
            delivery,
            description: Some("sign-in"),
        };
        self.transmitter.create_stream(&stream, NOW).await
    }

    pub(crate) async fn polled(&self) -> (StreamConfiguration, Url) {
        let stream = self.create(&WantedDelivery::Poll).await.expect("a stream");
        let oidc::StreamDelivery::Poll { endpoint_url } = stream.delivery.clone() else {
            panic!("{:?}", stream.delivery);
        };
        (stream, endpoint_url)
    }

    /// Answers the next request to an endpoint so.
    pub(crate) fn answer_once(&self, endpoint: TransmitterEndpoint, answer: Answer) {
        self.scripted
            .script(|script| script.answer_once(endpoint, answer));
    }

    pub(crate) fn json_once(&self, endpoint: TransmitterEndpoint, status: u16, body: &str) {
        let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        let body = body.to_owned();
        self.answer_once(
            endpoint,
            Answer::Http {
                status,
                headers,
                body: body.into(),
            },
        );
    }
}

/// What it was that went wrong, without the details.
pub(crate) fn reason<T: std::fmt::Debug>(result: Result<T, TransmitterError>) -> &'static str {
    result.expect_err("an error").reason()
}
