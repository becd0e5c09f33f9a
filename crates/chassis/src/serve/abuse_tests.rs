//! Clients that mean no good: silent ones, and HTTP/2 as no program speaks it. Time passes only while everybody waits.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::time::{Instant, timeout};

use super::tests::{answering, connected};
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
const MAX_CONCURRENT_STREAMS: u16 = 3;
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

/// How long the server keeps a connection over which this is all that came.
async fn kept(sent: &[u8]) -> Duration {
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
        let kept = kept(sent).await;
        assert!(kept <= HEADER_READ_TIMEOUT + TICK, "{sent:?}: {kept:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_http2_client_that_is_gone_is_given_up() {
    let kept = kept(&[PREFACE, &frame(SETTINGS, 0, 0, &[])].concat()).await;
    assert!(kept <= KEEPALIVE_INTERVAL + KEEPALIVE_TIMEOUT + TICK, "{kept:?}");
}

#[tokio::test]
async fn an_http2_client_is_told_how_many_streams_and_how_long_a_head_it_may_send() {
    let (mut client, _draining) = connected(answering());
    client.write_all(PREFACE).await.unwrap();
    client.write_all(&frame(SETTINGS, 0, 0, &[])).await.unwrap();
    let (kind, payload) = next(&mut client).await.unwrap();
    assert_eq!(kind, SETTINGS);
    let told = |id: u16| {
        let mut settings = payload.chunks_exact(6);
        let setting = settings.find(|setting| setting[..2] == id.to_be_bytes())?;
        Some(u32::from_be_bytes(setting[2..].try_into().unwrap()))
    };
    assert_eq!(told(MAX_CONCURRENT_STREAMS), Some(STREAMS_MAX));
    assert_eq!(
        told(MAX_HEADER_LIST_SIZE),
        Some(u32::try_from(HEADER_BYTES_MAX).unwrap())
    );
}

#[tokio::test(start_paused = true)]
async fn streams_begun_and_taken_back_without_end_cost_their_sender_the_connection() {
    let (mut client, _draining) = connected(answering());
    let mut sent = [PREFACE, &frame(SETTINGS, 0, 0, &[])].concat();
    for at in 0..1_000 {
        sent.extend(frame(HEADERS, END_STREAM_AND_HEADERS, 2 * at + 1, GET));
        sent.extend(frame(RST_STREAM, 0, 2 * at + 1, &CANCEL.to_be_bytes()));
    }
    let (mut reading, mut writing) = tokio::io::split(&mut client);
    let flooding = async {
        // It may be cut off before it is through.
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
