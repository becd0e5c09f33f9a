//! Callers that request API tokens, and worlds whose provider issues them by refresh.

use oidc::{ApiTokenGrant, RelyingParty};
use scripted_provider::{Endpoint, Recorded, ScriptedProvider};
use session_proto::v1::{GetAccessTokenRequest, GetAccessTokenResponse};
use tokio::task::JoinHandle;
use tonic::{Response, Status};

use crate::refresh::support::*;

pub(super) const EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
pub(super) const ORDERS: &str = "https://orders.example/api";
pub(super) const BILLING: &str = "https://billing.example/api";

/// A token for the audience, with the scopes.
pub(super) fn for_audience(id: &str, audience: &str, scopes: &[&str]) -> GetAccessTokenRequest {
    GetAccessTokenRequest {
        session_id: id.to_owned(),
        audience: audience.to_owned(),
        scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
        ..Default::default()
    }
}

/// A token for the resource.
pub(super) fn for_resource(id: &str, resource: &str) -> GetAccessTokenRequest {
    GetAccessTokenRequest {
        session_id: id.to_owned(),
        resource: resource.to_owned(),
        ..Default::default()
    }
}

/// How long a replica caches a provider's refusal.
pub(super) const REMEMBERED_MS: u64 = 30_000;

pub(super) async fn ask(
    replica: &Replica,
    request: GetAccessTokenRequest,
) -> Result<GetAccessTokenResponse, Status> {
    let answer = within(replica.client.clone().get_access_token(request)).await;
    answer.map(Response::into_inner)
}

/// The token alone.
pub(super) async fn token(replica: &Replica, request: GetAccessTokenRequest) -> String {
    ask(replica, request).await.unwrap().access_token
}

/// Asks in a task of its own.
pub(super) fn asking(
    replica: &Replica,
    request: GetAccessTokenRequest,
) -> JoinHandle<Result<GetAccessTokenResponse, Status>> {
    let mut client = replica.client.clone();
    tokio::spawn(async move { client.get_access_token(request).await.map(Response::into_inner) })
}

/// How many exchanges the provider received.
pub(super) fn exchanges(world: &World) -> usize {
    world.provider.grants(EXCHANGE)
}

/// How many requests for API tokens had this outcome at a replica.
pub(super) fn api_tokens(replica: &Replica, outcome: &str) -> u64 {
    replica.counted("session_api_tokens_total", outcome)
}

/// The requests of one grant, the oldest first.
pub(super) fn of_grant(provider: &ScriptedProvider, grant: &str) -> Vec<Recorded> {
    let mut requests = provider.requests(Endpoint::Token);
    requests.retain(|request| request.param("grant_type") == Some(grant));
    requests
}

/// Two replicas that name the API in a refresh.
pub(super) async fn world_by_refresh() -> World {
    let provider = ScriptedProvider::start();
    let mut settings = provider_settings(provider.issuer());
    settings.api_token_grant = ApiTokenGrant::Refresh;
    let party = RelyingParty::new(settings).unwrap();
    let (one, two) = (party.clone(), party);
    world_of(provider, limits(), one, two).await
}
