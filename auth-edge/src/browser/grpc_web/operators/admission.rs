//! Decides whether a caller may act as an operator, and at which provider.
//!
//! Invariant: all people without the right receive the same answer, and it comes before any other demand.

use std::net::IpAddr;
use std::sync::Arc;

use chassis::audit::{AuditRecord, Event, Outcome};
use session_proto::error;
use session_proto::v1::session::State;
use session_proto::v1::{Device, ErrorReason, Operator};
use tonic::{Request, Status};

use super::status::{no_service, not_allowed};
use crate::browser::Browser;
use crate::browser::grpc_web::caller::{failed, require_session};
use crate::http::device::record_from;
use crate::http::request;
use crate::route_table::operator::OperatorRule;
use crate::sessions::device_binding::DeviceStanding;
use crate::sessions::{CurrentSession, SessionUse};

/// Longest purpose in bytes, as the session API defines it.
const PURPOSE_BYTES_MAX: usize = 500;

/// An operator whom the rule admitted to one call.
pub(super) struct Admission {
    pub(super) browser: Arc<Browser>,
    /// The rule that admitted the operator.
    pub(super) rule: Arc<OperatorRule>,
    /// The operator's own session.
    pub(super) current: CurrentSession,
    method: &'static str,
    client: IpAddr,
    device: Device,
}

/// Why the edge refuses a call.
#[derive(Clone, Copy)]
enum Refusal {
    /// The person has no right.
    Right,
    /// The operator has no right at this provider.
    Provider,
    /// A new sign-in is necessary.
    SignIn,
    /// The session is not bound to a device, or the request does not prove it.
    Device,
}

impl Admission {
    /// Admits the caller of `method`. Does not extend the session.
    pub(super) async fn of<Q>(
        browser: &Arc<Browser>,
        method: &'static str,
        request: &Request<Q>,
    ) -> Result<Self, Status> {
        let headers = request.metadata().as_ref();
        let peer = request::peer(request.extensions());
        let current = browser.sessions.current(headers, SessionUse::LookOnly).await;
        let admission = Self {
            browser: Arc::clone(browser),
            rule: rule(browser)?,
            current: require_session(current)?,
            method,
            client: browser.trusted_proxies.client_address(peer, headers),
            device: browser.device(headers, peer),
        };
        admission.check().map_err(|refusal| admission.refuse(refusal))?;
        Ok(admission)
    }

    /// Checks the rule and the session of this moment for a stream about `issuer`.
    pub(super) async fn check_again(&mut self, issuer: &str) -> Result<(), Status> {
        self.rule = rule(&self.browser)?;
        let session = self.browser.sessions.find(&self.current.id).await;
        self.current.session = session.map_err(failed)?;
        let checked = self.check().and_then(|()| self.check_provider(issuer));
        checked.map_err(|refusal| self.refuse(refusal))
    }

    /// The operator of a call about `issuer`: who it is comes from the session, only the purpose from the browser.
    pub(super) fn operator(&self, issuer: &str, given: Option<Operator>) -> Result<Option<Operator>, Status> {
        self.check_provider(issuer)
            .map_err(|refusal| self.refuse(refusal))?;
        let purpose = given.unwrap_or_default().purpose;
        let is_text = !purpose.trim().is_empty() && !purpose.contains(char::is_control);
        if !is_text || purpose.len() > PURPOSE_BYTES_MAX {
            let problem = "the purpose has to be a text of 1 to 500 bytes without control characters";
            let field = ("field".to_owned(), "operator.purpose".to_owned());
            return Err(error::status(ErrorReason::ErrInvalidArgument, problem, [field]));
        }
        let session = &self.current.session;
        Ok(Some(Operator {
            issuer: session.issuer.clone(),
            subject: session.subject.clone(),
            handle: session.handle.clone(),
            purpose,
        }))
    }

    fn check(&self) -> Result<(), Refusal> {
        let (rule, session) = (&self.rule, &self.current.session);
        let (now_ms, providers) = (self.browser.clock.now_ms(), &self.browser.providers);
        let has_right = rule.right.check_network(self.client).is_ok()
            && rule.right.check((&**session).into(), now_ms).is_ok()
            && rule.right.check_connection(&session.issuer, providers).is_ok();
        if !has_right {
            return Err(Refusal::Right);
        }
        let is_signed_in =
            session.state() == State::Active && rule.sign_in.check_all(session, now_ms, providers).is_ok();
        if !is_signed_in {
            return Err(Refusal::SignIn);
        }
        if rule.sign_in.device_bound && self.current.device != DeviceStanding::Proven {
            return Err(Refusal::Device);
        }
        Ok(())
    }

    fn check_provider(&self, issuer: &str) -> Result<(), Refusal> {
        let own = &self.current.session.issuer;
        let providers = &self.rule.providers;
        let is_included = providers.include(own, issuer, &self.browser.providers);
        is_included.then_some(()).ok_or(Refusal::Provider)
    }

    /// Records a refusal and returns its status.
    fn refuse(&self, refusal: Refusal) -> Status {
        let session = &self.current.session;
        let (reason, status) = match refusal {
            Refusal::Right => ("right", not_allowed()),
            Refusal::Provider => ("provider", not_allowed()),
            Refusal::SignIn => ("sign_in", self.sign_in_again("the operator has to sign in again")),
            Refusal::Device => {
                let problem = "operators need a session that is bound to this device";
                ("device", self.sign_in_again(problem))
            }
        };
        self.browser.sessions.records.write(&AuditRecord {
            reason: Some(reason),
            actor: Some((&session.issuer, &session.subject)),
            session: Some(&session.handle),
            rpc: Some((self.method, error::code_name(status.code()))),
            ..record_from(&self.device, Event::ApiCall, Outcome::Failure)
        });
        status
    }

    /// The status that sends an operator to the login, with the parameters of the login URL.
    fn sign_in_again(&self, problem: &str) -> Status {
        let session = &self.current.session;
        let required = self.rule.sign_in.with_sign_in_demand(Some(session));
        let connection = self.browser.providers.connection_of(&session.issuer);
        let parameters = [
            ("max_age", required.max_age_secs.map(|secs| secs.to_string())),
            ("acr_values", Some(required.acr.join(" "))),
            ("connection", connection.map(str::to_owned)),
        ];
        let parameters = parameters.into_iter();
        let named = parameters.filter_map(|(name, value)| Some((name.to_owned(), value?)));
        let named = named.filter(|(_, value)| !value.is_empty());
        error::status(ErrorReason::ErrFailedRefreshGrant, problem, named)
    }
}

/// The rule of this moment. The file may have lost it since the request arrived.
fn rule(browser: &Browser) -> Result<Arc<OperatorRule>, Status> {
    browser
        .routes
        .with(|table| table.operator.clone())
        .ok_or_else(no_service)
}
