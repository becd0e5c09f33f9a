//! What each caller may call.

use session_proto::v1::ErrorReason;

use super::support::*;

#[tokio::test]
async fn a_caller_may_call_exactly_the_methods_of_its_entry() {
    for allowed in session_rpcs().filter(|rpc| rpc.right() == *rpc) {
        let list = [entry(EDGE, &["*"]), entry(ORDERS, &[allowed.method_name()])].concat();
        let world = world(Some(&list)).await;
        let (mut edge, mut orders, mut nobody) = (
            world.client("edge"),
            world.client("orders"),
            world.client("client"),
        );
        for rpc in session_rpcs() {
            let expected = match rpc.right() == allowed {
                true => Ok(()),
                false => Err(ErrorReason::ErrCallerNotAllowed),
            };
            assert_eq!(within(may_call(&mut edge, rpc)).await, Ok(()), "{rpc:?}");
            assert_eq!(
                within(may_call(&mut orders, rpc)).await,
                expected,
                "{rpc:?} of {allowed:?}"
            );
            assert_eq!(
                within(may_call(&mut nobody, rpc)).await,
                Err(ErrorReason::ErrUnknownCaller),
                "{rpc:?}"
            );
        }
    }
}
