//! The answer to a check that passes: who it is, and what the application reads.
//!
//! Invariant: the head of an answer by HTTP stays within `EDGE_CHECK_HEAD_BYTES`, since nginx answers 500 to the person where
//! it is longer than one buffer. The longest headers are left out first, each whole, and the log names them.

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use oidc::VerifiedAccessToken;

use super::ForApplication;
use super::rule::CheckRule;
use crate::gateway::authorized::Authorized;
use crate::gateway::claim_headers::LeftOut;
use crate::gateway::headers::add_identity;
use crate::gateway::told::{add_assertion, add_told};
use crate::gateway::{Gateway, assertion};
use crate::http::answer_head;
use crate::http::errors::HttpError;
use crate::http::observe::ClientOfToken;
use crate::route_table::principal::Principal;

/// The part of a head that the claims of an assertion may take: signed and encoded they are longer by half.
const ASSERTION_SHARE: usize = 4;

/// An answer that is being put together.
pub(super) struct Passed<'a> {
    gateway: &'a Gateway,
    response: Response,
    application: ForApplication,
    /// The longest head, in bytes; none where the answer is no message of HTTP.
    most: Option<usize>,
}

impl<'a> Passed<'a> {
    /// An answer that says nothing yet, to a caller inside this process or by HTTP.
    pub(super) fn new(gateway: &'a Gateway, from_inside: bool) -> Self {
        Self {
            gateway,
            response: StatusCode::OK.into_response(),
            application: ForApplication {
                names: gateway.routes.with(|table| table.facts.told.clone()),
                ..ForApplication::default()
            },
            most: (!from_inside).then_some(gateway.check_head_bytes),
        }
    }

    /// Adds the session's renewed cookie.
    pub(super) fn cookie(&mut self, cookie: Option<HeaderValue>) {
        if let Some(cookie) = cookie {
            self.response.headers_mut().append(header::SET_COOKIE, cookie);
        }
    }

    /// Names the client for the log, and says whether its token ends here.
    pub(super) fn client(&mut self, token: &VerifiedAccessToken, ends_here: bool) {
        let client = ClientOfToken(token.client_id.clone());
        self.response.extensions_mut().insert(client);
        self.application.token_ends_here = ends_here;
    }

    /// Adds who it is, the headers of the rule and the access token.
    ///
    /// # Errors
    /// An assertion that the rule requires cannot be signed.
    pub(super) fn identify(
        &mut self,
        rule: Option<&CheckRule>,
        authorized: &Authorized,
        token: Option<HeaderValue>,
    ) -> Result<(), HttpError> {
        add_identity(self.response.headers_mut(), authorized);
        let Some(who) = authorized.principal() else {
            return Ok(());
        };
        let mut offered = HeaderMap::new();
        if let Some(rule) = rule {
            if let Some(claims) = &rule.route.upstream_jwt {
                let share = self.most.map(|most| most / ASSERTION_SHARE);
                let claims = (&**claims, share.unwrap_or(assertion::MAX_CLAIMS_BYTES));
                let headers = self.response.headers_mut();
                add_assertion(headers, self.gateway, who, &rule.origin, claims)?;
            }
            add_told(&mut offered, self.gateway, &rule.route, authorized);
            self.application.headers = offered.keys().cloned().collect();
        }
        offered.extend(token.map(|token| (header::AUTHORIZATION, token)));
        self.add_what_fits(offered, who);
        Ok(())
    }

    /// Adds headers while the head has room, the shortest first.
    fn add_what_fits(&mut self, offered: HeaderMap, who: Principal<'_>) {
        let mut offered: Vec<(HeaderName, HeaderValue)> = offered
            .into_iter()
            .filter_map(|(name, value)| Some((name?, value)))
            .collect();
        offered.sort_by_key(|(_, value)| value.len());
        let now_ms = self.gateway.clock.now_ms();
        for (name, value) in offered {
            let headers = self.response.headers_mut();
            let line = answer_head::line_bytes(&name, &value);
            let room = self.most.map(|most| answer_head::room_within(most, headers));
            let has_room = room.is_none_or(|room| line <= room);
            if has_room {
                headers.insert(name, value);
            } else {
                let left_out = &self.gateway.left_out_headers;
                left_out.tell(&name, None, who, LeftOut::NoRoom, now_ms);
            }
        }
    }

    /// The answer. For a caller inside this process it lists the application's headers.
    pub(super) fn answer(mut self) -> Response {
        self.response.extensions_mut().insert(self.application);
        self.response
    }
}
