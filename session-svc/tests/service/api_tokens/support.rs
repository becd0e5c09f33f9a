//! Callers that request API tokens, and worlds whose provider issues them by refresh.

use oidc::{ApiTokenGrant, DpopKey, RelyingParty};
use scripted_provider::{CLIENT_ID, CLIENT_SECRET, Endpoint, Recorded, ScriptedProvider};
use session_proto::v1::{GetAccessTokenRequest, GetAccessTokenResponse};
use session_svc::refresh::{ApiServers, RefreshProviders};
use session_svc::settings::api_servers::{FileContext, parse};
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

pub(super) const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/// Two replicas, and a server of another trust domain whose API routes call "chat".
pub(super) struct TwoDomains {
    pub(super) world: World,
    pub(super) chat: ScriptedProvider,
}

/// Both, with `further` keys in the server's table, and with tokens bound to a key if there is one. The word `CHAT`
/// in a key stands for the server's address.
pub(super) async fn two_domains(further: &str, dpop_key: Option<DpopKey>) -> TwoDomains {
    two_domains_of(further, dpop_key, |_| {}).await
}

pub(super) async fn two_domains_of(
    further: &str,
    dpop_key: Option<DpopKey>,
    change: impl FnOnce(&mut oidc::ProviderSettings),
) -> TwoDomains {
    let (provider, chat) = (ScriptedProvider::start(), ScriptedProvider::start());
    for server in [&provider, &chat] {
        server.script(|script| {
            script.now = Some(START_MS / 1_000);
            script.dpop = dpop_key.is_some();
        });
    }
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret");
    std::fs::write(&secret, CLIENT_SECRET).unwrap();
    let further = further.replace("CHAT", chat.issuer());
    let proof = match further.contains("client_key_file") {
        true => String::new(),
        false => format!("client_secret_file = {secret:?}\n"),
    };
    let file = format!(
        "[[server]]\naudience = \"chat\"\nissuer = {:?}\nclient_id = {CLIENT_ID:?}\n{proof}{further}\n",
        chat.issuer()
    );
    let servers = ApiServers::new(parse(&file, &FileContext::default()).unwrap());
    let mut settings = provider_settings(provider.issuer());
    settings.credentials.dpop_key = dpop_key;
    change(&mut settings);
    let party = RelyingParty::new(settings).unwrap();
    let providers = RefreshProviders::from(party).with_api_servers(servers);
    let world = world_of(provider, limits(), providers.clone(), providers).await;
    TwoDomains { world, chat }
}

impl TwoDomains {
    /// Lets time pass here and at both servers.
    pub(super) fn advance_ms(&self, ms: u64) {
        use chassis::clock::Clock as _;
        self.world.advance_ms(ms);
        let now = self.world.clock.now_ms() / 1_000;
        self.chat.script(|script| script.now = Some(now));
    }

    /// How many assertions the provider was asked for, and how many the server received.
    pub(super) fn legs(&self) -> (usize, usize) {
        (exchanges(&self.world), self.chat.grants(JWT_BEARER))
    }
}
