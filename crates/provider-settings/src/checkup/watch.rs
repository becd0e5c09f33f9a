//! The same examination while a service runs: once at the start and then now and then, in the background.
//!
//! Invariant: it holds nothing up and ends nothing. What does not fit is a warning in the log, once, and a condition of readiness
//! that keeps no traffic away.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use chassis::clock::Clock;
use chassis::findings::Finding;
use chassis::readiness::Condition;
use oidc::RelyingParty;
use tokio_util::sync::CancellationToken;

use super::{Part, amiss, examine};

/// How soon a provider that did not answer is asked again.
const RETRY: Duration = Duration::from_secs(30);
/// How often one that answered is: what it offers changes by releases, not by minutes.
const AGAIN: Duration = Duration::from_secs(1_800);

/// What is watched.
pub struct Watched {
    /// The providers, each with what it is called.
    pub providers: Vec<(String, RelyingParty)>,
    /// What they are needed for.
    pub part: Part,
    /// Wall clock.
    pub clock: Arc<dyn Clock>,
    /// Says whether the settings fit.
    pub condition: Condition,
}

/// Watches until the service stops.
pub async fn watch(watched: Watched, shutdown: CancellationToken) {
    let mut told = BTreeSet::new();
    loop {
        let pause = tokio::select! {
            answered = round(&watched, &mut told) => if answered { AGAIN } else { RETRY },
            () = shutdown.cancelled() => return,
        };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = shutdown.cancelled() => return,
        }
    }
}

/// Examines all, tells what was not told before, and gives whether all answered.
async fn round(watched: &Watched, told: &mut BTreeSet<(String, &'static str)>) -> bool {
    let (mut details, mut all_answered, mut now_amiss) = (Vec::new(), true, BTreeSet::new());
    for (provider, party) in &watched.providers {
        let examined = examine(party, watched.part, watched.clock.now_secs()).await;
        all_answered &= examined.answered;
        let here: Vec<Finding> = examined.findings.into_iter().filter(Finding::is_amiss).collect();
        for finding in &here {
            let key = (provider.clone(), finding.id);
            if !told.contains(&key) {
                log(provider, finding);
            }
            now_amiss.insert(key);
        }
        if !here.is_empty() {
            details.push(format!("provider {provider:?}: {}", amiss(&here)));
        }
    }
    *told = now_amiss;
    if details.is_empty() {
        watched.condition.met();
    } else {
        watched
            .condition
            .unmet(format!("{}; the command `doctor` says more", details.join("; ")));
    }
    all_answered
}

fn log(provider: &str, finding: &Finding) {
    let remedy = finding.remedy.as_ref();
    tracing::warn!(
        provider,
        check = finding.id,
        setting = remedy.and_then(|remedy| remedy.setting.as_deref()),
        advice = remedy.map(|remedy| remedy.advice.as_str()),
        "the settings do not fit the provider: {}",
        finding.found
    );
}

#[cfg(test)]
mod tests {
    use chassis::clock::SystemClock;
    use chassis::readiness::{Readiness, Weight};
    use oidc::{ClientAuth, ClientSecret, ProviderSettings};
    use scripted_provider::{Answer, CLIENT_ID, CLIENT_SECRET, Endpoint, ScriptedProvider};
    use serde_json::json;

    use super::*;

    fn watched(provider: &ScriptedProvider) -> Watched {
        let mut settings = ProviderSettings::new(provider.issuer(), CLIENT_ID);
        settings.client_auth = ClientAuth::SecretBasic(ClientSecret::new(CLIENT_SECRET.to_owned()));
        Watched {
            providers: vec![("default".to_owned(), RelyingParty::new(settings).unwrap())],
            part: Part::Refresh,
            clock: Arc::new(SystemClock),
            condition: Readiness::new().condition("provider_settings", Weight::Informative),
        }
    }

    #[tokio::test]
    async fn what_was_told_is_told_again_only_after_it_was_mended() {
        let provider = ScriptedProvider::start();
        let (watched, mut told) = (watched(&provider), BTreeSet::new());
        assert!(round(&watched, &mut told).await);
        assert!(told.is_empty(), "{told:?}");
        let methods = "token_endpoint_auth_methods_supported";
        provider.script(|script| {
            drop(
                script
                    .metadata
                    .insert(methods.to_owned(), json!(["private_key_jwt"])),
            )
        });
        assert!(round(&watched, &mut told).await);
        let once = told.clone();
        assert_eq!(
            once.iter().map(|(_, id)| *id).collect::<Vec<_>>(),
            ["client_authentication"]
        );
        assert!(round(&watched, &mut told).await);
        assert_eq!(told, once);
        provider.reset();
        assert!(round(&watched, &mut told).await);
        assert!(told.is_empty());
    }

    #[tokio::test]
    async fn a_running_service_shows_no_credentials_and_outlives_a_provider_that_is_away() {
        let provider = ScriptedProvider::start();
        let (watched, mut told) = (watched(&provider), BTreeSet::new());
        for endpoint in [Endpoint::Discovery, Endpoint::Jwks] {
            provider.script(|script| drop(script.answers.insert(endpoint, Answer::status(503))));
            assert!(
                !round(&watched, &mut told).await,
                "{endpoint:?} is asked again soon"
            );
            provider.reset();
        }
        assert!(round(&watched, &mut told).await);
        for endpoint in [Endpoint::Token, Endpoint::Authorize, Endpoint::Par] {
            assert_eq!(provider.calls(endpoint), 0, "{endpoint:?}");
        }
    }
}
