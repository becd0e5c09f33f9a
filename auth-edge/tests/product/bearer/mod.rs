//! API clients with their own access tokens, on routes that accept them instead of a session.

mod accepted;
mod checks;
mod cross_origin;
mod dpop;
mod introspection;
mod metadata;
mod refused;
mod shapes;

use std::io::Write as _;

use scripted_provider::ScriptedProvider;
use serde_json::{Value, json};
use tempfile::NamedTempFile;

use crate::support::{Answer, Browser, Stack, Upstream};

/// The audience of tokens for the routes with their own audience.
const ORDERS: &str = "https://orders.example";

/// A stack with one recording upstream, behind routes of all kinds.
struct Machines {
    stack: Stack,
    upstream: Upstream,
    _table: NamedTempFile,
}

impl Machines {
    async fn start() -> Self {
        Self::with("", &[]).await
    }

    /// `{upstream}` in further rules is the upstream's address.
    async fn with(more: &str, settings: &[(&str, &str)]) -> Self {
        let upstream = Upstream::start().await;
        let mut table = NamedTempFile::new().unwrap();
        let rule = |path: &str, lines: &str| {
            format!("[[route]]\npath = \"{path}\"\nguard = \"api\"\nupstream = \"{{upstream}}\"\n{lines}\n")
        };
        let rules = [
            rule(
                "/orders/*",
                "[route.bearer]\naudience = \"https://orders.example\"\nscopes = [\"orders:read\"]",
            ),
            rule("/mcp", "[route.bearer]"),
            rule(
                "/passed/*",
                "access_token = true\n[route.bearer]\naudience = \"https://orders.example\"\npass_authorization = true",
            ),
            rule(
                "/loose/*",
                "[route.bearer]\naudience = \"https://orders.example\"\nignore_authorization_details = true",
            ),
            rule(
                "/bound/*",
                "[route.bearer]\naudience = \"https://orders.example\"\ndpop_required = true",
            ),
            rule(
                "/opaque/*",
                "[route.bearer]\naudience = \"https://orders.example\"\nintrospection = true",
            ),
            rule(
                "/asked/*",
                "[route.bearer]\naudience = \"https://orders.example\"\nintrospection = \"always\"",
            ),
            rule(
                "/fresh/*",
                "max_age = 900\nacr = [\"gold\"]\n[route.bearer]\naudience = \"https://orders.example\"",
            ),
            rule(
                "/admins/*",
                "claims = { groups = \"admin\" }\nscopes = [\"orders:write\"]\n[route.bearer]\naudience = \"https://orders.example\"",
            ),
            rule("/people/*", ""),
        ];
        let text = rules.concat() + more;
        table
            .write_all(text.replace("{upstream}", &upstream.url()).as_bytes())
            .unwrap();
        let path = table.path().to_str().unwrap().to_owned();
        let stack = Stack::with(&[&[("EDGE_ROUTES", path.as_str())], settings].concat()).await;
        stack
            .provider
            .script(|script| script.now = Some(stack.now_secs()));
        Self {
            stack,
            upstream,
            _table: table,
        }
    }

    fn provider(&self) -> &ScriptedProvider {
        &self.stack.provider
    }

    /// A good token for [`ORDERS`], patched.
    fn token(&self, claims: Value) -> String {
        let mut own = json!({ "aud": ORDERS, "scope": "orders:read" });
        for (name, value) in claims.as_object().unwrap() {
            own[name] = value.clone();
        }
        self.provider().access_token(own)
    }

    /// A request with this `Authorization`.
    async fn get(&self, path: &str, authorization: &str) -> Answer {
        let mut client = self.stack.browser();
        client.get_with(path, &[("authorization", authorization)]).await
    }

    async fn bearer(&self, path: &str, token: &str) -> Answer {
        self.get(path, &format!("Bearer {token}")).await
    }

    /// A signed-in browser.
    async fn person(&self) -> Browser {
        let mut browser = self.stack.browser();
        let (name, value) = self.stack.session_cookie().await;
        browser.jar.insert(name, value);
        browser
    }

    /// Makes introspection answer this for known tokens.
    fn say(&self, said: Value) {
        let said = said.as_object().cloned().unwrap();
        self.provider().script(|script| script.introspection = said);
    }

    fn opaque(&self) -> String {
        let tokens = self.provider().sign_in("orders:read");
        tokens["access_token"].as_str().unwrap().to_owned()
    }
}

/// The challenges of an answer, one per line.
fn challenges(answer: &Answer) -> Vec<String> {
    let values = answer.headers.get_all("www-authenticate").iter();
    values.map(|value| value.to_str().unwrap().to_owned()).collect()
}
