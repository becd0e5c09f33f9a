//! Whether a request is sent to an upstream again, judged in one place for every protocol and method.
//!
//! | The upstream | Sent again |
//! |---|---|
//! | processed nothing: GOAWAY or REFUSED_STREAM (RFC 9113, sections 6.8 and 8.7), a request that was never written | any, while its whole body is at hand |
//! | failed in any other way | once, if the request is safe (RFC 9110, section 9.2.1) and has no body |
//! | wants its nonce repeated (RFC 9449): nothing is done yet | once, while its whole body is at hand |
//! | refuses the access token | once with another token, if the request is safe and has no body |
//! | answers anything else | never |

use super::unanswered::Unanswered;

/// How often a request is sent again that was not processed: each time on another connection, and a server that closes ten
/// times as often as nginx does still serves.
const UNPROCESSED_MAX: u8 = 5;

/// What a request may still be sent again for.
pub(super) struct Attempts {
    unprocessed: u8,
    failure: bool,
    nonce: bool,
    token: bool,
}

impl Attempts {
    /// All of them; `is_repeatable` is a safe request without a body.
    pub(super) fn new(is_repeatable: bool) -> Self {
        Self {
            unprocessed: UNPROCESSED_MAX,
            failure: is_repeatable,
            nonce: true,
            token: is_repeatable,
        }
    }

    /// Whether a request without an answer is sent again; `is_whole` says whether its whole body is at hand.
    pub(super) fn after_failure(&mut self, failure: &Unanswered, is_whole: bool) -> bool {
        let Unanswered::Broken(error) = failure else {
            return false;
        };
        if is_unprocessed(error) && is_whole && self.unprocessed > 0 {
            self.unprocessed -= 1;
            return true;
        }
        std::mem::take(&mut self.failure)
    }

    /// Whether a request is sent again whose answer `wants_nonce`.
    pub(super) fn for_nonce(&mut self, wants_nonce: bool, is_whole: bool) -> bool {
        wants_nonce && is_whole && std::mem::take(&mut self.nonce)
    }

    /// Whether a refused access token may be replaced.
    pub(super) fn for_token(&mut self) -> bool {
        std::mem::take(&mut self.token)
    }
}

/// Whether the upstream did not process the request. h2 reports the upstream's GOAWAY to streams above the last one that it names,
/// and a broken pipe to the others.
fn is_unprocessed(error: &hyper_util::client::legacy::Error) -> bool {
    let mut causes = std::iter::successors(std::error::Error::source(error), |cause| cause.source());
    causes.any(|cause| {
        let refuses = |error: &h2::Error| {
            error.is_remote() && (error.is_go_away() || error.reason() == Some(h2::Reason::REFUSED_STREAM))
        };
        cause.downcast_ref().is_some_and(refuses)
            || cause.downcast_ref().is_some_and(hyper::Error::is_canceled)
    })
}
