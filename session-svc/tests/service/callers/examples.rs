//! The service accepts the lists of callers shown in documents and manifests.

use session_svc::callers::{Caller, Rpc, parse};

#[test]
fn the_lists_of_the_manual_and_of_the_manifests_can_be_used() {
    let manual = include_str!("../../../../docs/operating.md");
    let list = manual
        .split("```toml\n")
        .find_map(|block| block.starts_with("[[caller]]").then(|| block.split("```").next()))
        .flatten()
        .expect("a list in docs/operating.md");
    let manifest = include_str!("../../../../k8s/components/mtls/callers.toml");
    let uncommented: String = manifest
        .lines()
        .skip_while(|line| line.starts_with('#'))
        .map(|line| format!("{}\n", line.trim_start_matches("# ")))
        .collect();
    for list in [list, manifest, &uncommented] {
        let policy = parse(list).unwrap();
        assert!(policy.allow(&Caller::anonymous(), Some(Rpc::GetSession)).is_err());
    }
}
