//! Any bytes sent to any method of the session API, without a cookie or a certificate, to a real service.
//!
//! What has to hold, whatever is sent
//! - The service answers with a gRPC status: nothing panics, nothing hangs.
//! - No answer tells anything of a session the request did not name, and no refresh token at all.
//! - Sessions that were not named are still there afterwards.
//! - Each result of a batch is a session or a failure that is no fault of the service.

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

/// The status of a request that is wrong.
const INVALID_ARGUMENT: i32 = 3;

impl Target for Rpc {
    /// The gRPC status code.
    type Outcome = i32;

    const ALL: &'static [Self] = Rpc::ALL;

    const SEEDS: &'static str = "rpc";

    /// Where `input` holds the names of [`names`], those of real sessions are sent instead, so that inputs reach what lies
    /// behind them.
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
