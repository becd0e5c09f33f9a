//! A watch for one caller: it sends events while the caller has the right to them.
//!
//! Invariants
//! - No event is sent to a caller that lost the right to it.
//! - A question how far a watch has come is answered only after every known event was sent.
//! - A watch that ends says why, except when the process drains: then the client continues at another replica.

use chassis::audit::{AuditRecord, Event, Outcome};
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream, unfold};
use prometheus::IntGauge;
use session_proto::error::code_name;
use session_proto::v1::activity::What;
use session_proto::v1::{Activity, FollowSessionsRequest, SessionEvent, WatchSessionsRequest};
use tokio::time::Instant;
use tonic::{Code, Status, Streaming};

use super::api::Api;
use super::call::Call;
use super::{arguments, resource, status};
use crate::callers::{AccessDenied, Rpc};
use crate::sessions::{SessionsError, WatchScope, WatchUpdate, Watching};

/// The stream of events.
pub(super) type EventStream = BoxStream<'static, Result<SessionEvent, Status>>;

/// The stream of an operator.
pub(super) type ActivityStream = BoxStream<'static, Result<Activity, Status>>;

/// The numbers of questions how far a watch has come.
type Questions = BoxStream<'static, Result<u64, Status>>;

struct WatchStream {
    api: Api,
    events: Watching,
    /// The questions of a caller that follows; their answers replace heartbeats.
    questions: Option<Questions>,
    /// The position after the last event or heartbeat.
    position: String,
    call: Call,
    rpc: Rpc,
    began: Instant,
    /// The status at its end, for the record.
    code: Code,
    /// Counts the watch while it is open.
    open: IntGauge,
}

/// The events of a followed watch; `first` came with the call.
pub(super) async fn followed(
    api: &Api,
    call: &Call,
    first: FollowSessionsRequest,
    others: Streaming<FollowSessionsRequest>,
) -> Result<EventStream, SessionsError> {
    let Some(request) = &first.watch else {
        return arguments::wrong("watch", "is required in the first message");
    };
    let number = |question: FollowSessionsRequest| question.number;
    let questions = stream::iter([Ok(first.number)]).chain(others.map(move |question| question.map(number)));
    watch(api, call, request, Some(questions.boxed())).await
}

/// The events of a watch for one caller; a watch with questions is followed.
pub(super) async fn watch(
    api: &Api,
    call: &Call,
    request: &WatchSessionsRequest,
    questions: Option<Questions>,
) -> Result<EventStream, SessionsError> {
    let scope = scope(request)?;
    if let WatchScope::Session(handle) = &scope {
        call.is_about(*handle);
    }
    let resume =
        Some(arguments::token("resume_token", &request.resume_token)?).filter(|token| !token.is_empty());
    let rpc = match &questions {
        Some(_) => Rpc::FollowSessions,
        None => Rpc::WatchSessions,
    };
    open(api, call, rpc, scope, resume, questions).await
}

/// What happens to the sessions of an issuer.
pub(super) async fn activity(api: &Api, call: &Call, issuer: &str) -> Result<ActivityStream, SessionsError> {
    let scope = WatchScope::Provider(issuer.to_owned());
    let events = open(api, call, Rpc::WatchActivity, scope, None, None).await?;
    let activity = |event: SessionEvent| Activity {
        // A stream for people: it is not resumed.
        what: Some(What::Event(SessionEvent {
            resume_token: String::new(),
            ..event
        })),
    };
    Ok(events.map(move |event| event.map(activity)).boxed())
}

async fn open(
    api: &Api,
    call: &Call,
    rpc: Rpc,
    scope: WatchScope,
    resume: Option<&str>,
    questions: Option<Questions>,
) -> Result<EventStream, SessionsError> {
    let label = match &scope {
        WatchScope::All => "all",
        WatchScope::Person { .. } => "person",
        WatchScope::Session(_) => "session",
        WatchScope::Provider(_) => "provider",
    };
    let events = api.sessions.watch(scope, resume.map(str::to_owned)).await?;
    let open = api.calls.watches.with_label_values(&[label]);
    open.inc();
    let watch = WatchStream {
        api: api.clone(),
        events,
        questions,
        position: resume.unwrap_or_default().to_owned(),
        call: call.clone(),
        rpc,
        began: Instant::now(),
        // A caller that hangs up gets no status.
        code: Code::Cancelled,
        open,
    };
    Ok(unfold(Some(watch), |watch| async move {
        let mut watch = watch?;
        match watch.next().await {
            Some(Ok(event)) => Some((Ok(event), Some(watch))),
            Some(Err(status)) => {
                watch.code = status.code();
                Some((Err(status), None))
            }
            None => {
                watch.code = Code::Ok;
                None
            }
        }
    })
    .boxed())
}

/// The sessions that a request is about.
fn scope(request: &WatchSessionsRequest) -> Result<WatchScope, SessionsError> {
    match (
        request.handle.as_str(),
        request.issuer.as_str(),
        request.subject.as_str(),
    ) {
        ("", "", "") => Ok(WatchScope::All),
        (handle, "", "") => Ok(WatchScope::Session(arguments::handle("handle", handle)?)),
        ("", issuer, subject) => Ok(WatchScope::Person {
            issuer: arguments::issuer(issuer)?.to_owned(),
            subject: arguments::required_name("subject", subject)?.to_owned(),
        }),
        (_, _, _) => arguments::wrong("handle", "must be given alone, without issuer and subject"),
    }
}

/// The next question; `None` once the caller ended its side; never ready in a watch without questions.
async fn next_question(questions: &mut Option<Questions>) -> Option<Result<u64, Status>> {
    match questions {
        Some(questions) => questions.next().await,
        None => std::future::pending().await,
    }
}

impl WatchStream {
    async fn next(&mut self) -> Option<Result<SessionEvent, Status>> {
        let until = self.call.deadline;
        let too_late = async {
            match until {
                Some(until) => tokio::time::sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        let disbelieved = self.call.disbelieved.clone().unwrap_or_default();
        let draining = self.api.draining.clone();
        tokio::pin!(too_late);
        loop {
            let event = tokio::select! {
                biased;
                () = draining.cancelled() => return None,
                () = disbelieved.cancelled() => return Some(Err(status::access_denied(AccessDenied::Unknown))),
                () = &mut too_late => return Some(Err(status::too_late())),
                // In this order: a question is answered once every event was sent.
                update = self.events.next() => self.event(update?),
                // Not before a position to resume from exists: the first heartbeat brings it.
                number = next_question(&mut self.questions), if !self.position.is_empty() => self.answer(number?),
            };
            match event {
                Ok(Some(event)) => return Some(Ok(event)),
                Ok(None) => {}
                Err(status) => return Some(Err(status)),
            }
        }
    }

    /// The message of an event; `None` for a heartbeat that the watch does not send.
    fn event(
        &mut self,
        update: Result<(WatchUpdate, u64, String), SessionsError>,
    ) -> Result<Option<SessionEvent>, Status> {
        self.check_access()?;
        let (update, at_ms, resume_token) = update.map_err(|error| status::of(&error))?;
        if self.questions.is_some() {
            self.position.clone_from(&resume_token);
            if matches!(update, WatchUpdate::Heartbeat(_)) {
                return Ok(None);
            }
        }
        Ok(Some(resource::event(update, at_ms, resume_token)))
    }

    fn answer(&self, number: Result<u64, Status>) -> Result<Option<SessionEvent>, Status> {
        self.check_access()?;
        let number = number.map_err(|unread| status::explained(&unread).unwrap_or(unread))?;
        let beat = || {
            let (now_ms, position) = (self.api.sessions.now_ms(), self.position.clone());
            resource::answer(number, now_ms, position)
        };
        Ok((number != 0).then(beat))
    }

    /// A change of the callers' policy takes effect before the event is sent.
    fn check_access(&self) -> Result<(), Status> {
        let callers = &self.api.calls.callers;
        callers
            .allow(&self.call.caller, Some(self.rpc))
            .map_err(status::access_denied)
    }
}

impl Drop for WatchStream {
    fn drop(&mut self) {
        self.open.dec();
        let peer = self.call.peer.map(|peer| (peer.ip().to_string(), peer.port()));
        AuditRecord {
            caller: self.call.caller.log_name(),
            operator: self.call.notes.operator.get().map(AsRef::as_ref),
            peer: peer.as_ref().map(|(address, port)| (address.as_str(), *port)),
            request_id: Some(self.call.requests()),
            rpc: Some((self.rpc.name(), code_name(self.code))),
            duration_us: Some(u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX)),
            // Every end of a watch is a success.
            ..AuditRecord::new(Event::WatchEnd, Outcome::Success)
        }
        .write();
    }
}
