//! Bodies that arrive slowly, in bursts, or not at all. Time passes only while all tasks wait.

use axum::body::Bytes;
use axum::http::HeaderValue;
use futures_util::stream;
use http_body_util::BodyExt as _;

use super::*;

const SILENCE: Duration = Duration::from_secs(30);

/// A body that sends `bytes` bytes at the interval `every`, `times` times.
fn comes(bytes: usize, every: Duration, times: usize) -> Body {
    Body::from_stream(stream::unfold(0, move |count| async move {
        tokio::time::sleep(every).await;
        (count < times).then(|| (Ok::<_, std::io::Error>(Bytes::from(vec![0; bytes])), count + 1))
    }))
}

fn awaited(body: Body) -> Request {
    bounded(Request::new(body), SILENCE)
}

/// How long the edge read a body, how many bytes came, and whether it gave up.
async fn read(request: Request) -> (Duration, usize, bool) {
    let (began, mut body, mut got) = (Instant::now(), request.into_body(), 0);
    while let Some(frame) = body.frame().await {
        match frame {
            Ok(frame) => got += frame.into_data().unwrap().len(),
            Err(error) => {
                assert!(caused(&error));
                return (began.elapsed(), got, true);
            }
        }
    }
    (began.elapsed(), got, false)
}

#[tokio::test(start_paused = true)]
async fn a_silent_body_and_one_that_trickles_are_given_up() {
    let silent = stream::pending::<Result<Bytes, std::io::Error>>();
    let (took, _, given_up) = read(awaited(Body::from_stream(silent))).await;
    assert!(given_up && took.as_secs() == 30, "{took:?}");
    let trickle = comes(1, Duration::from_secs(21), 1_000);
    let (took, got, given_up) = read(awaited(trickle)).await;
    assert!(given_up && took.as_secs() == 30 && got == 1, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_body_that_comes_at_the_least_rate_goes_on_until_its_time_is_over() {
    let quick = comes(10_000, Duration::from_secs(19), 100);
    let (took, got, given_up) = read(awaited(quick)).await;
    assert!(!given_up && got == 1_000_000, "{took:?}");
    let endless = comes(10_000, Duration::from_secs(19), usize::MAX);
    let (took, _, given_up) = read(awaited(endless)).await;
    assert!(given_up && took.as_secs() == 3_600, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn only_waiting_for_the_client_counts() {
    let mut body = awaited(comes(1, Duration::from_secs(1), 20)).into_body();
    for _ in 0..20 {
        body.frame().await.unwrap().unwrap();
        // Another client is slow.
        tokio::time::sleep(Duration::from_secs(100)).await;
    }
}

#[test]
fn only_grpc_over_http2_may_be_silent() {
    for (kind, version, is_stream) in [
        ("application/grpc", Version::HTTP_2, true),
        ("application/grpc+proto", Version::HTTP_2, true),
        ("application/grpc", Version::HTTP_11, false),
        ("application/grpc-web+proto", Version::HTTP_2, false),
        ("application/grpc-web-text", Version::HTTP_2, false),
        ("application/json", Version::HTTP_2, false),
    ] {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        assert_eq!(streams(version, &headers), is_stream, "{kind} {version:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_was_passed_on_may_be_silent() {
    let mut request = Request::new(comes(1, Duration::from_secs(300), 2));
    *request.version_mut() = Version::HTTP_2;
    let kind = HeaderValue::from_static("application/grpc");
    request.headers_mut().insert(header::CONTENT_TYPE, kind);
    let request = bounded(request, SILENCE);
    request.extensions().get::<SilenceAllowance>().unwrap().allow();
    let (_, got, given_up) = read(request).await;
    assert!(!given_up && got == 2);
}
