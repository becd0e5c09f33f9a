//! Abusive clients: silent ones, and malformed or excessive HTTP/2. Time passes only while all tasks wait.

use std::sync::Mutex;

use axum::body::Bytes;
use axum::routing::get;
use futures_util::stream;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use super::super::limits::HEADER_BYTES_MAX;
use super::tests::{answering, connected, connected_within};
use super::*;

/// Far beyond every timeout.
const AGES: Duration = Duration::from_secs(3_600);

/// Timers are coarse.
const TICK: Duration = Duration::from_millis(2);

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const END_STREAM_AND_HEADERS: u8 = 1 | 4;
const DATA: u8 = 0;
const WINDOW_UPDATE: u8 = 8;
const PING: u8 = 6;
const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const MAX_CONCURRENT_STREAMS: u16 = 3;
const INITIAL_WINDOW_SIZE: u16 = 4;
const MAX_HEADER_LIST_SIZE: u16 = 6;
const CANCEL: u32 = 8;
const ENHANCE_YOUR_CALM: u32 = 11;

/// GET of `/` at the host `a` (RFC 7541, appendix A).
const GET: &[u8] = &[0x82, 0x86, 0x84, 0x01, 1, b'a'];

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Kind and payload of the next frame; none at the end.
async fn next(client: &mut DuplexStream) -> Option<(u8, Vec<u8>)> {
    let mut head = [0; 9];
    client.read_exact(&mut head).await.ok()?;
    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
    let mut payload = vec![0; usize::try_from(length).unwrap()];
    client.read_exact(&mut payload).await.ok()?;
    Some((head[3], payload))
}

/// How long the server keeps a connection that receives only these bytes.
async fn connection_lifetime(sent: &[u8]) -> Duration {
    let (mut client, _draining) = connected(answering());
    client.write_all(sent).await.unwrap();
    let began = Instant::now();
    let end = timeout(AGES, client.read_to_end(&mut Vec::new())).await;
    end.expect("it is given up").unwrap();
    began.elapsed()
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_say_what_it_wants_is_given_up() {
    for sent in [
        &b""[..],
        b"PRI * HT",
        b"GET / HT",
        b"GET / HTTP/1.1\r\nhost: here\r\nx-slow: ",
    ] {
        let kept = connection_lifetime(sent).await;
        assert!(kept <= FIRST_HEAD_TIMEOUT + TICK, "{sent:?}: {kept:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_http2_client_that_is_gone_is_given_up() {
    let kept = connection_lifetime(&[PREFACE, &frame(SETTINGS, 0, 0, &[])].concat()).await;
    assert!(kept <= KEEPALIVE_INTERVAL + KEEPALIVE_TIMEOUT + TICK, "{kept:?}");
}

#[tokio::test]
async fn settings_announce_how_many_streams_and_how_long_headers_may_be() {
    let (mut client, _draining) = connected(answering());
    client.write_all(PREFACE).await.unwrap();
    client.write_all(&frame(SETTINGS, 0, 0, &[])).await.unwrap();
    let (kind, payload) = next(&mut client).await.unwrap();
    assert_eq!(kind, SETTINGS);
    let announced = |id: u16| {
        let mut settings = payload.chunks_exact(6);
        let setting = settings.find(|setting| setting[..2] == id.to_be_bytes())?;
        Some(u32::from_be_bytes(setting[2..].try_into().unwrap()))
    };
    assert_eq!(announced(MAX_CONCURRENT_STREAMS), Some(Limits::default().streams));
    assert_eq!(
        announced(MAX_HEADER_LIST_SIZE),
        Some(u32::try_from(HEADER_BYTES_MAX).unwrap())
    );
}

#[tokio::test(start_paused = true)]
async fn endless_streams_begun_and_reset_cost_their_sender_the_connection() {
    let (mut client, _draining) = connected(answering());
    let mut sent = [PREFACE, &frame(SETTINGS, 0, 0, &[])].concat();
    for at in 0..1_000 {
        sent.extend(frame(HEADERS, END_STREAM_AND_HEADERS, 2 * at + 1, GET));
        sent.extend(frame(RST_STREAM, 0, 2 * at + 1, &CANCEL.to_be_bytes()));
    }
    let (mut reading, mut writing) = tokio::io::split(&mut client);
    let flooding = async {
        // The server may close the connection before everything is written.
        let _ = writing.write_all(&sent).await;
    };
    let reading = async {
        let mut read = Vec::new();
        let _ = timeout(AGES, reading.read_to_end(&mut read)).await;
        read
    };
    let ((), read) = tokio::join!(flooding, reading);
    let mut rest = read.as_slice();
    let mut reason = None;
    while let Some((head, more)) = rest.split_first_chunk::<9>() {
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let (payload, more) = more.split_at(usize::try_from(length).unwrap());
        if head[3] == GOAWAY {
            reason = Some(u32::from_be_bytes(payload[4..8].try_into().unwrap()));
        }
        rest = more;
    }
    assert_eq!(reason, Some(ENHANCE_YOUR_CALM));
}

const SEND_TIMEOUT: Duration = Duration::from_secs(60);

fn strict() -> Limits {
    Limits {
        streams: 100,
        header_list_bytes: 16 * 1024,
        open_header_bytes: 32 * 1024,
        keeps_http2: false,
        send_timeout: Some(SEND_TIMEOUT),
        ..Limits::default()
    }
}

fn window(bytes: u32) -> Vec<u8> {
    let value = [&INITIAL_WINDOW_SIZE.to_be_bytes()[..], &bytes.to_be_bytes()].concat();
    frame(SETTINGS, 0, 0, &value)
}

/// How much of the answer a client with this window receives, whether the stream is reset, and when. The client
/// sends no acknowledgements. `goes_on` is a delay and the bytes that the client then adds to the window.
async fn got(router: Router, bytes: u32, goes_on: Option<(Duration, u32)>) -> (usize, bool, Duration) {
    let (mut client, _draining) = connected_within(router, strict());
    let began = Instant::now();
    let asked = [
        PREFACE,
        &window(bytes),
        &frame(HEADERS, END_STREAM_AND_HEADERS, 1, GET),
    ]
    .concat();
    client.write_all(&asked).await.unwrap();
    let (mut got, mut over) = (0, None);
    while over.is_none() {
        let read = timeout(goes_on.map_or(AGES, |(after, _)| after), read_frame(&mut client));
        match (read.await, goes_on) {
            (Ok((kind, flags, length)), _) => {
                got += if kind == DATA { length } else { 0 };
                if kind == RST_STREAM {
                    over = Some(true);
                } else if kind <= HEADERS && flags & END_STREAM != 0 {
                    over = Some(false);
                }
            }
            (Err(_), Some((_, more))) => {
                // The windows of the stream and of the connection.
                for stream in [1, 0] {
                    let update = frame(WINDOW_UPDATE, 0, stream, &more.to_be_bytes());
                    client.write_all(&update).await.unwrap();
                }
            }
            (Err(_), None) => panic!("it waits for ever"),
        }
    }
    (got, over == Some(true), began.elapsed())
}

/// Kind, flags and length of the next frame. Answers pings, so that the connection stays alive.
async fn read_frame(client: &mut DuplexStream) -> (u8, u8, usize) {
    let mut head = [0; 9];
    client.read_exact(&mut head).await.unwrap();
    let length = usize::try_from(u32::from_be_bytes([0, head[0], head[1], head[2]])).unwrap();
    let mut payload = vec![0; length];
    client.read_exact(&mut payload).await.unwrap();
    if head[3] == PING && head[4] == 0 {
        client.write_all(&frame(PING, ACK, 0, &payload)).await.unwrap();
    }
    (head[3], head[4], length)
}

/// Answers this many bytes.
fn sized(bytes: usize) -> Router {
    Router::new().route("/", get(move || async move { "x".repeat(bytes) }))
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_not_read_is_given_up_however_small_it_is() {
    for (size, window) in [
        (1, 0),
        (2, 1),
        (500, 0),
        (500, 1),
        (10_000, 9_998),
        (100_000, 20_000),
    ] {
        let (mut client, _draining) = connected_within(sized(size), strict());
        let asked = [
            PREFACE,
            &self::window(window),
            &frame(HEADERS, END_STREAM_AND_HEADERS, 1, GET),
        ]
        .concat();
        client.write_all(&asked).await.unwrap();
        let began = Instant::now();
        loop {
            let (kind, flags, length) = read_frame(&mut client).await;
            assert!(
                kind > HEADERS || flags & END_STREAM == 0 || length > 1,
                "{size} in {window}: complete"
            );
            if kind == RST_STREAM {
                break;
            }
        }
        let took = began.elapsed();
        assert!(
            (SEND_TIMEOUT..=SEND_TIMEOUT + TICK).contains(&took),
            "{size} in {window}: {took:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_fits_is_complete_and_one_that_is_read_slowly_goes_on() {
    for size in [0, 1, 2, 16 * 1024, 16 * 1024 + 1, 40_000] {
        let fits = u32::try_from(size).unwrap();
        let (got, reset, _) = got(sized(size), fits, None).await;
        assert_eq!((got, reset), (size, false), "{size}");
    }
    let pause = Duration::from_secs(15);
    let (got, reset, took) = got(sized(100_000), 0, Some((pause, 10_000))).await;
    assert_eq!((got, reset), (100_000, false));
    assert!(took > 2 * SEND_TIMEOUT, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_events_may_be_silent() {
    let (events, made) = mpsc::unbounded_channel::<Result<Bytes, std::io::Error>>();
    let made = Arc::new(Mutex::new(Some(made)));
    let router = Router::new().route(
        "/",
        get(move || async move {
            let made = made.lock().unwrap().take();
            let made = made.unwrap();
            let body = stream::unfold(made, |mut made| async { Some((made.recv().await?, made)) });
            Body::from_stream(body)
        }),
    );
    let sending = async {
        for _ in 0..3 {
            tokio::time::sleep(Duration::from_secs(45)).await;
            events.send(Ok(Bytes::from_static(b"event"))).unwrap();
        }
        tokio::time::sleep(Duration::from_secs(45)).await;
        drop(events);
    };
    let reading = got(router, 1_000, Some((Duration::from_secs(20), 1)));
    let ((), (got, reset, _)) = tokio::join!(sending, reading);
    assert_eq!((got, reset), (15, false));
}

#[tokio::test(start_paused = true)]
async fn an_http2_client_without_a_request_is_given_up_where_idle_ones_are_not_kept() {
    let (mut client, _draining) = connected_within(answering(), strict());
    let sent = [PREFACE, &frame(SETTINGS, 0, 0, &[])].concat();
    client.write_all(&sent).await.unwrap();
    let began = Instant::now();
    let _ = timeout(AGES, client.read_to_end(&mut Vec::new())).await;
    assert!(began.elapsed() <= FIRST_HEAD_TIMEOUT + GOODBYE_TIMEOUT + TICK);
}

#[tokio::test]
async fn the_heads_of_all_streams_together_are_bounded() {
    let (reached, mut count) = mpsc::unbounded_channel();
    let router = Router::new().route(
        "/",
        get(move || async move {
            let _ = reached.send(());
            std::future::pending::<()>().await;
        }),
    );
    let (mut client, _draining) = connected_within(router, strict());
    // A header x-a of 3,000 bytes, indexed once and used five times a request (RFC 7541, section 6).
    let field = [&[0x40, 3][..], b"x-a", &[127, 0xb9, 0x16], &[b'b'; 3_000]].concat();
    let mut sent = [PREFACE, &frame(SETTINGS, 0, 0, &[])].concat();
    for at in 0..20 {
        let named = if at == 0 { field.clone() } else { vec![0xbe; 5] };
        sent.extend(frame(
            HEADERS,
            END_STREAM_AND_HEADERS,
            2 * at + 1,
            &[GET, &named].concat(),
        ));
    }
    client.write_all(&sent).await.unwrap();
    let mut refused = 0;
    while refused < 18 {
        let (kind, flags, _) = read_frame(&mut client).await;
        refused += usize::from(kind == HEADERS && flags & END_STREAM != 0);
    }
    assert_eq!(std::iter::from_fn(|| count.try_recv().ok()).count(), 2);
}
