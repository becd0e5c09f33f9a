//! Any bytes sent to any method of the session API, without a cookie or a certificate, to a real service.
//!
//! What has to hold, whatever is sent
//! - The service answers with a gRPC status: nothing panics, nothing hangs.
//! - No answer tells anything of a session the request did not name, and no refresh token at all.
//! - Sessions that were not named are still there afterwards.
//!
//! `cargo test` replays the seeds and bytes derived from them; libfuzzer/ looks for others, led by coverage.

#![expect(
    clippy::unwrap_used,
    reason = "what cannot go on has found something, or cannot look for it"
)]

mod answer;
mod fields;
mod mutate;
mod names;
mod service;

pub use mutate::Mutator;

use std::sync::OnceLock;

use answer::Answer;
use service::World;

/// The methods of `session.v1.SessionService`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the API documents them")]
pub enum Rpc {
    CreateSession,
    GetSession,
    RollSession,
    UpdateSession,
    GetAccessToken,
    EndSession,
    EndSessions,
    ListSessions,
    WatchSessions,
}

impl Rpc {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::CreateSession,
        Self::GetSession,
        Self::RollSession,
        Self::UpdateSession,
        Self::GetAccessToken,
        Self::EndSession,
        Self::EndSessions,
        Self::ListSessions,
        Self::WatchSessions,
    ];

    /// Its name in paths and in the folder of seeds.
    #[must_use]
    pub fn name(self) -> String {
        format!("{self:?}")
    }
}

/// What an answer was, for counting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Outcome {
    /// The gRPC status code.
    pub code: i32,
}

/// Sends `input` to a method and judges the answer; panics when it breaks a promise. Where `input` holds the names of
/// [`names`], those of real sessions are sent instead, so that inputs reach what lies behind them.
pub fn rpc(rpc: Rpc, input: &[u8]) -> Outcome {
    static WORLD: OnceLock<World> = OnceLock::new();
    let world = WORLD.get_or_init(World::start);
    let own = world.own();
    let sent = own.put_into(input);
    let answer: Answer = world.send(rpc, &sent);
    let code = answer
        .status
        .unwrap_or_else(|| panic!("{rpc:?} answered without a grpc-status: {answer:?}"));
    assert!(
        (0..=16).contains(&code),
        "{rpc:?} answered with the status {code}"
    );
    world.told_nothing_of_others(rpc, &own, &sent, &answer);
    world.others_are_still_there();
    Outcome { code }
}

/// The method and input a fuzzer's bytes stand for: the first byte chooses.
#[must_use]
pub fn chosen(data: &[u8]) -> Option<(Rpc, &[u8])> {
    let (first, input) = data.split_first()?;
    let rpc = *Rpc::ALL.get(usize::from(*first) % Rpc::ALL.len())?;
    Some((rpc, input))
}
