//! A pending sign-in: begun at the edge, approved at the provider, not yet back.
//!
//! Inputs name its parts by placeholders, because the parts differ each time.

use http::{HeaderMap, HeaderValue, header};
use url::Url;

use super::world::{Answer, Edge, World, put};

#[derive(Clone)]
pub(super) struct Login {
    pub(super) state: String,
    pub(super) code: String,
    pub(super) nonce: String,
    pub(super) cookie: (String, String),
}

impl Login {
    fn begin(world: &World, edge: &Edge) -> Self {
        let login = world.get(&format!("{}/api/auth/login", edge.base), HeaderMap::new());
        let mut authorize = Url::parse(login.location()).unwrap();
        let parameter = |url: &Url, name: &str| {
            let found = url.query_pairs().find(|(key, _)| key == name);
            found.map(|(_, value)| value.into_owned()).unwrap()
        };
        let nonce = parameter(&authorize, "nonce");
        // The code returns in a redirect, whichever way the edge prefers.
        let kept: Vec<(String, String)> = authorize
            .query_pairs()
            .filter(|(name, _)| name != "response_mode")
            .map(|(name, value)| (name.into_owned(), value.into_owned()))
            .collect();
        authorize.query_pairs_mut().clear().extend_pairs(kept);
        let back = world.get(authorize.as_str(), HeaderMap::new());
        let back = Url::parse(back.location()).unwrap();
        let line = login.headers.get(header::SET_COOKIE).unwrap().to_str().unwrap();
        let (name, value) = line.split(';').next().unwrap().split_once('=').unwrap();
        Self {
            state: parameter(&back, "state"),
            code: parameter(&back, "code"),
            nonce,
            cookie: (name.to_owned(), value.to_owned()),
        }
    }

    /// The pending sign-in at an edge; starts a new one if an input has used up the last one.
    pub(super) fn at(world: &World, edge: &Edge) -> Self {
        let mut login = edge.login.lock().unwrap();
        login.get_or_insert_with(|| Self::begin(world, edge)).clone()
    }

    /// Drops it if the answer has used it up.
    pub(super) fn after(&self, edge: &Edge, answer: &Answer) {
        if answer.sets(&self.cookie.0).is_some() {
            *edge.login.lock().unwrap() = None;
        }
    }

    /// The input with this sign-in's parts instead of the placeholders.
    pub(super) fn put_into(&self, input: &[u8], issuer: &str) -> Vec<u8> {
        let named = [
            ("STATE", self.state.as_str()),
            ("CODE", &self.code),
            ("NONCE", &self.nonce),
            ("ISSUER", issuer),
            ("TX-NAME", &self.cookie.0),
            ("TX-VALUE", &self.cookie.1),
        ];
        let whole = input.to_vec();
        named
            .iter()
            .fold(whole, |text, (name, value)| put(&text, name, value))
    }

    /// The headers the browser sends with the callback.
    pub(super) fn headers(&self) -> HeaderMap {
        let cookie = format!("{}={}", self.cookie.0, self.cookie.1);
        HeaderMap::from_iter([(header::COOKIE, HeaderValue::try_from(cookie).unwrap())])
    }
}
