//! An answer in wire format.

use bytes::Bytes;
use http::{HeaderMap, Response};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use prost::Message as _;
use session_proto::v1::batch_get_sessions_response::result::Outcome;
use session_proto::v1::{BatchGetSessionsResponse, ErrorReason};

use super::Rpc;

/// Frames read from a watch before the client closes it.
const WATCHED_FRAMES: usize = 3;

/// The bytes before a message (gRPC over HTTP/2, "Length-Prefixed-Message").
const FRAME_HEAD_BYTES: usize = 5;

/// The answer.
#[derive(Debug)]
pub(crate) struct Answer {
    /// From the trailers, or from the headers without a message. An open watch has none: 0.
    pub(crate) status: Option<i32>,
    /// Headers, body and trailers, to search for forbidden content.
    pub(crate) all: Vec<u8>,
    /// The body alone: messages in wire format.
    body: Vec<u8>,
}

impl Answer {
    pub(crate) async fn read(rpc: Rpc, response: Response<Incoming>) -> Self {
        let (head, mut body) = response.into_parts();
        let mut answer = Self {
            status: status(&head.headers),
            all: Vec::new(),
            body: Vec::new(),
        };
        answer.add_headers(&head.headers);
        let mut frames = 0;
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else { return answer };
            match frame.into_data() {
                Ok(data) => answer.add(&data),
                Err(frame) => {
                    if let Some(trailers) = frame.trailers_ref() {
                        answer.status = answer.status.or(status(trailers));
                        answer.add_headers(trailers);
                    }
                }
            }
            frames += 1;
            if rpc == Rpc::WatchSessions && frames == WATCHED_FRAMES && answer.status.is_none() {
                answer.status = Some(0);
                return answer;
            }
        }
        answer
    }

    /// Whether it rejects the compressed flag: gRPC says INTERNAL ("Compression"); no service fault.
    pub(crate) fn refuses_flag(&self) -> bool {
        const WORDS: &[u8] = b"received%20message%20with";
        self.all.windows(WORDS.len()).any(|words| words == WORDS)
    }

    fn add(&mut self, data: &Bytes) {
        self.all.extend_from_slice(data);
        self.body.extend_from_slice(data);
    }

    /// Checks that each batch result holds a session or a failure; panics also on a service fault.
    pub(crate) fn results_are_well(&self) {
        let Some(message) = self.body.get(FRAME_HEAD_BYTES..) else {
            return;
        };
        for result in BatchGetSessionsResponse::decode(message).unwrap().results {
            let is_well = match &result.outcome {
                Some(Outcome::Response(response)) => response.session.is_some(),
                Some(Outcome::Failure(failure)) => {
                    let reason = ErrorReason::try_from(failure.reason).unwrap();
                    !matches!(reason, ErrorReason::ErrInternal | ErrorReason::ErrUnspecified)
                }
                None => false,
            };
            assert!(is_well, "{result:?}");
        }
    }

    fn add_headers(&mut self, headers: &HeaderMap) {
        for value in headers.values() {
            self.all.extend_from_slice(value.as_bytes());
        }
    }
}

fn status(headers: &HeaderMap) -> Option<i32> {
    headers.get("grpc-status")?.to_str().ok()?.parse().ok()
}
