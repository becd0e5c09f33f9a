//! A strict HTTP/1.1 request reader (RFC 9112) without the edge's code: unknown input is a fault.

use tokio::io::{AsyncRead, AsyncReadExt as _};

/// The longest head the edge could send for an accepted request, in bytes.
const HEAD_MAX: usize = 256 * 1024;

/// Longest line of a chunked body's framing, in bytes.
const LINE_MAX: usize = 1024;

/// Hop-by-hop and framing headers; only those the edge sets itself may come, in this spelling.
const FRAMING: [&str; 12] = [
    "connection",
    "content-length",
    "expect",
    "http2-settings",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

const SET_BY_US: [&str; 4] = ["connection", "content-length", "transfer-encoding", "upgrade"];

/// The origin of forwarded requests: each header once.
const FORWARDED: [&str; 3] = ["x-forwarded-for", "x-forwarded-host", "x-forwarded-proto"];

const METHOD_OVERRIDES: [&str; 3] = ["x-http-method", "x-http-method-override", "x-method-override"];

/// The head of a request, checked.
pub(super) struct Head {
    pub(super) method: String,
    pub(super) target: String,
    pub(super) length: Length,
    fields: Vec<(String, String)>,
}

/// How the message states the end of its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    None,
    Known(usize),
    Chunked,
}

/// Why reading ended before a message did: the sender hung up.
pub(super) struct HungUp;

impl Head {
    /// The next head, if one comes.
    pub(super) async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Result<Self, HungUp> {
        let bytes = until(stream, b"\r\n\r\n", HEAD_MAX).await?;
        Ok(Self::parse(&bytes))
    }

    fn parse(bytes: &[u8]) -> Self {
        let shown = bytes.escape_ascii().to_string();
        let text = String::from_utf8_lossy(bytes);
        let mut lines = text.strip_suffix("\r\n\r\n").unwrap().split("\r\n");
        let line: Vec<&str> = lines.next().unwrap().split(' ').collect();
        let [method, target, "HTTP/1.1"] = line[..] else {
            panic!("no request line: {shown}");
        };
        assert!(is_token(method), "no method: {shown}");
        let visible = |character: char| character != '\u{7f}' && character > ' ';
        assert!(
            target.starts_with('/') && target.chars().all(visible),
            "no target: {shown}"
        );
        let fields: Vec<(String, String)> = lines
            .map(|line| {
                let (name, value) = line
                    .split_once(':')
                    .unwrap_or_else(|| panic!("no field {line:?}: {shown}"));
                let plain =
                    |character: char| character == '\t' || (character != '\u{7f}' && character >= ' ');
                assert!(
                    is_token(name) && value.chars().all(plain),
                    "no field {line:?}: {shown}"
                );
                (
                    name.to_ascii_lowercase(),
                    value.trim_matches([' ', '\t']).to_owned(),
                )
            })
            .collect();
        let mut head = Self {
            method: method.to_owned(),
            target: target.to_owned(),
            length: Length::None,
            fields,
        };
        head.check_names(&shown);
        head.length = head.framed(&shown);
        head
    }

    fn check_names(&self, shown: &str) {
        for (name, _) in &self.fields {
            check_name(name, shown);
            assert!(
                !FRAMING.contains(&name.as_str()) || SET_BY_US.contains(&name.as_str()),
                "{name}: {shown}"
            );
        }
        for once in FORWARDED.into_iter().chain(["host"]) {
            assert_eq!(self.all(once).len(), 1, "{once}: {shown}");
        }
    }

    fn framed(&self, shown: &str) -> Length {
        let upgrade = (self.all("connection"), self.all("upgrade"));
        let switches = upgrade == (vec!["upgrade"], vec!["websocket"]);
        assert!(
            switches || upgrade == (vec![], vec![]),
            "neither an upgrade nor none: {shown}"
        );
        let length = match (
            &self.all("content-length")[..],
            &self.all("transfer-encoding")[..],
        ) {
            ([], []) => Length::None,
            ([length], []) if length.bytes().all(|byte| byte.is_ascii_digit()) => {
                Length::Known(length.parse().unwrap())
            }
            ([], ["chunked"]) => Length::Chunked,
            _ => panic!("two ends: {shown}"),
        };
        assert!(
            !switches || (self.method == "GET" && length == Length::None),
            "an upgrade with a body: {shown}"
        );
        length
    }

    pub(super) fn all(&self, name: &str) -> Vec<&str> {
        let named = self.fields.iter().filter(|(field, _)| field == name);
        named.map(|(_, value)| value.as_str()).collect()
    }

    /// Whether this is a browser's request without credentials (Fetch, section 4.8).
    pub(super) fn is_preflight(&self) -> bool {
        self.method == "OPTIONS"
            && matches!(self.length, Length::None | Length::Known(0))
            && self.all("upgrade").is_empty()
            && !self.all("origin").is_empty()
            && !self.all("access-control-request-method").is_empty()
    }

    /// Reads the body to its end.
    pub(super) async fn read_body(&self, stream: &mut (impl AsyncRead + Unpin)) -> Result<(), HungUp> {
        match self.length {
            Length::None => Ok(()),
            Length::Known(length) => skip(stream, length).await,
            Length::Chunked => loop {
                let line = until(stream, b"\r\n", LINE_MAX).await?;
                let line = String::from_utf8(line).unwrap();
                let size = line.strip_suffix("\r\n").unwrap();
                assert!(
                    size.bytes().all(|byte| byte.is_ascii_hexdigit()),
                    "no size of a chunk: {line:?}"
                );
                match usize::from_str_radix(size, 16).unwrap() {
                    0 => return trailers(stream).await,
                    size => skip(stream, size).await?,
                }
                assert_eq!(
                    until(stream, b"\r\n", LINE_MAX).await?,
                    b"\r\n",
                    "a chunk longer than it says"
                );
            },
        }
    }
}

async fn trailers(stream: &mut (impl AsyncRead + Unpin)) -> Result<(), HungUp> {
    loop {
        let line = until(stream, b"\r\n", HEAD_MAX).await?;
        if line == b"\r\n" {
            return Ok(());
        }
        let shown = line.escape_ascii().to_string();
        let name =
            String::from_utf8_lossy(line.split(|byte| *byte == b':').next().unwrap()).to_ascii_lowercase();
        assert!(is_token(&name), "no trailer: {shown}");
        check_name(&name, &shown);
        assert!(!FRAMING.contains(&name.as_str()), "{name}: {shown}");
    }
}

/// Like applications that turn names into variables: only letters and digits distinguish names.
fn check_name(name: &str, shown: &str) {
    let folded = name.replace(|character: char| !character.is_ascii_alphanumeric(), "-");
    assert!(!folded.starts_with("x-auth-"), "an identity: {shown}");
    assert!(
        !folded.starts_with("x-forwarded-") || FORWARDED.contains(&name),
        "sent by the client: {shown}"
    );
    assert!(
        !METHOD_OVERRIDES.contains(&folded.as_str()),
        "another method: {shown}"
    );
    assert!(
        !FRAMING.contains(&folded.as_str()) || folded == name,
        "another spelling of framing: {shown}"
    );
}

/// RFC 9110, section 5.6.2.
fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

async fn until(stream: &mut (impl AsyncRead + Unpin), end: &[u8], most: usize) -> Result<Vec<u8>, HungUp> {
    let mut read = Vec::new();
    while !read.ends_with(end) {
        assert!(read.len() < most, "no end: {}", read.escape_ascii());
        read.push(stream.read_u8().await.map_err(|_closed| HungUp)?);
    }
    Ok(read)
}

async fn skip(stream: &mut (impl AsyncRead + Unpin), length: usize) -> Result<(), HungUp> {
    for _ in 0..length {
        stream.read_u8().await.map_err(|_closed| HungUp)?;
    }
    Ok(())
}
