//! Any bytes sent to any method of the session API, without a cookie or a certificate, to a real service.
//!
//! Invariants for every input
//! - The service answers with a gRPC status: no panic, no hang.
//! - No answer discloses a session that the request did not name, or any refresh token.
//! - Sessions that the request did not name still exist afterwards.
//! - Each batch result is a session, or a failure other than a service fault.

mod answer;
mod fields;
mod message;
mod names;
pub(crate) mod service;

use std::sync::OnceLock;

pub use session_svc::callers::Rpc;

use crate::{Mutator, Target};
use answer::Answer;
use service::World;

/// The status of an invalid request.
const INVALID_ARGUMENT: i32 = 3;

impl Target for Rpc {
    /// The gRPC status code.
    type Outcome = i32;

    /// Without the last five, which are for operators: they reach everyone's sessions by right.
    const ALL: &'static [Self] = Rpc::ALL.split_at(Rpc::ALL.len() - 5).0;

    const SEEDS: &'static str = "rpc";

    /// If `input` contains the names of [`names`], the service receives those of real sessions instead.
    /// Inputs then reach the code behind the lookups.
    fn check(self, input: &[u8]) -> i32 {
        static WORLD: OnceLock<World> = OnceLock::new();
        let world = WORLD.get_or_init(World::start);
        let own = world.own();
        let sent = own.put_into(input);
        let answer: Answer = world.send(self, &sent);
        let code = answer
            .status
            .unwrap_or_else(|| panic!("{self:?} answered without a grpc-status: {answer:?}"));
        assert!(
            (0..=16).contains(&code),
            "{self:?} answered with the status {code}"
        );
        if self == Self::BatchGetSessions {
            answer.results_are_well();
        }
        world.told_nothing_of_others(self, &own, &sent, &answer);
        world.others_are_still_there();
        if answer.refuses_flag() {
            INVALID_ARGUMENT
        } else {
            code
        }
    }

    fn derived(self, mutator: &mut Mutator, input: &[u8], other: &[u8]) -> Vec<u8> {
        message::derived(mutator, input, other)
    }
}
