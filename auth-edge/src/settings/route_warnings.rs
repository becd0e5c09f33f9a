//! Warnings about a route table that works and does not do what its author wants. The edge starts, and `--check-config` prints them.
//!
//! Deliberately absent: whether an upstream answers. It may start later.

use axum::http::Method;
use chassis::settings::Reader;
use oidc::ApiTokenGrant;
use provider_settings::ConfiguredProviders;

use super::EdgeSettings;
use crate::route_table::{Match, Requested, Route, Upstream};
use crate::values::path::RequestPath;
use crate::values::reserved::is_reserved;

const ROUTES: &str = "EDGE_ROUTES";

/// Warns of folders that are not there, of people who land on no route after they sign out, and of scopes that no session has.
pub(super) fn warn(reader: &mut Reader<'_>, settings: &EdgeSettings) {
    let table = &settings.routes;
    for route in table.routes.all() {
        if let Upstream::Directory(folder) = &route.upstream
            && !folder.is_dir()
        {
            let (name, folder) = (&route.name, folder.display());
            reader.warn(
                ROUTES,
                format!(
                    "route {name:?}: the folder {folder} is not there, so every request gets 404 until it is"
                ),
            );
        }
    }
    if has_unserved_landing(settings) {
        let landing = &settings.sign_in.post_logout_redirect;
        reader.warn(
            "EDGE_POST_LOGOUT_REDIRECT",
            format!(
                "no route serves {landing}, where people land after they sign out: name an address that a route serves, or add a route"
            ),
        );
    }
    for route in table.routes.all().iter().chain(table.checks.all()) {
        for scope in unrequested_scopes(route, &settings.providers) {
            let name = &route.name;
            reader.warn(
                ROUTES,
                format!("route {name:?} asks for the scope {scope:?}, which no sign-in asks for: add it to OIDC_SCOPE"),
            );
        }
    }
}

/// Whether people who sign out land at an address of the edge that no route serves. Without routes another server has the pages.
fn has_unserved_landing(settings: &EdgeSettings) -> bool {
    let landing = &settings.sign_in.post_logout_redirect;
    if settings.routes.routes.all().is_empty() || !settings.sites().include(landing) {
        return false;
    }
    let Ok(path) = RequestPath::parse(landing.path()) else {
        return true;
    };
    let is_ours =
        is_reserved(path.segments()) || settings.own_paths().iter().any(|own| own == landing.path());
    let found = settings.routes.routes.find(Requested {
        host: landing.host_str().unwrap_or_default(),
        method: &Method::GET,
        path: &path,
    });
    !is_ours && !matches!(found, Match::Route(_))
}

/// The scopes a route requires that no provider of the route is asked for. An exchange asks for the scopes of its token itself.
fn unrequested_scopes<'a>(route: &'a Route, providers: &ConfiguredProviders) -> Vec<&'a str> {
    let names_api = route.requirements.token_for().names_api();
    let candidates = providers
        .all
        .iter()
        .filter(|provider| route.connection().is_none_or(|id| id == provider.id));
    let asks_for = |scope: &str| {
        candidates.clone().any(|provider| {
            let by_exchange = provider.settings.api_token_grant == ApiTokenGrant::TokenExchange;
            names_api && by_exchange || provider.settings.scope.split(' ').any(|asked| asked == scope)
        })
    };
    let required = route.requirements.scopes.iter().map(String::as_str);
    required.filter(|scope| !asks_for(scope)).collect()
}

#[cfg(test)]
mod tests {
    use chassis::settings::{Reader, Source};

    use crate::settings::{SERVICE, read};

    /// What the start warns of with this route table, and these settings.
    fn warnings(table: &str, settings: &[(&str, &str)]) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("dist")).unwrap();
        let file = folder.path().join("routes.toml");
        let at = folder.path().display().to_string();
        std::fs::write(&file, table.replace("FOLDER", &at)).unwrap();
        let mut pairs = vec![
            ("EDGE_BASE_URL", "https://app.example"),
            ("EDGE_SECRET", "0123456789abcdef0123456789abcdef"),
            ("EDGE_ROUTES", file.to_str().unwrap()),
            ("OIDC_ISSUER_URL", "https://op.example"),
            ("OIDC_CLIENT_ID", "client"),
            (
                "OIDC_CLIENT_SECRET",
                "a client secret of thirty-two or more characters",
            ),
        ];
        pairs.extend(settings);
        let source = Source::from_pairs(&SERVICE, &pairs);
        let mut reader = Reader::new(&source);
        let settings = read(&mut reader);
        let (_, warnings) = reader.finish(settings).unwrap();
        let shown = warnings.iter().map(ToString::to_string);
        shown.map(|warning| warning.replace(&at, "FOLDER")).collect()
    }

    const APP: &str = "[[route]]\npath = \"/*\"\nguard = \"none\"\nupstream = \"dir:FOLDER/dist\"\n";

    fn route(path: &str, lines: &str) -> String {
        format!("[[route]]\npath = \"{path}\"\nguard = \"api\"\nupstream = \"http://orders\"\n{lines}\n")
    }

    #[test]
    fn a_folder_that_is_not_there_gives_a_warning() {
        assert!(warnings(APP, &[]).is_empty());
        let missing = APP.replace("/dist", "/disk");
        assert_eq!(
            warnings(&missing, &[]),
            [
                "EDGE_ROUTES: route \"/*\": the folder FOLDER/disk is not there, so every request gets 404 until it is"
            ]
        );
        let file = APP.replace("/dist", "/routes.toml");
        assert_eq!(warnings(&file, &[]).len(), 1, "a file is no folder");
    }

    #[test]
    fn a_landing_after_sign_out_that_no_route_serves_gives_a_warning() {
        let orders = route("/orders/*", "");
        let warning = |landing: &str| {
            format!(
                "EDGE_POST_LOGOUT_REDIRECT: no route serves {landing}, where people land after they sign out: name an address that a route serves, or add a route"
            )
        };
        let to = |landing| [("EDGE_POST_LOGOUT_REDIRECT", landing)];
        assert_eq!(warnings(&orders, &[]), [warning("https://app.example/")]);
        assert_eq!(
            warnings(&orders, &to("/bye")),
            [warning("https://app.example/bye")]
        );
        let by_form = orders.clone() + &route("/bye", "methods = [\"POST\"]");
        assert_eq!(
            warnings(&by_form, &to("/bye")),
            [warning("https://app.example/bye")]
        );
        for served in ["/orders/bye", "/api/auth/login", "https://elsewhere.example/"] {
            assert!(warnings(&orders, &to(served)).is_empty(), "{served}");
        }
        assert!(warnings("", &[]).is_empty(), "another server has the pages");
        let checks = "[[check]]\nguard = \"api\"\n";
        assert!(warnings(checks, &[]).is_empty());
        let of_a_host = route("/*", "host = \"other.example\"");
        let hosts = ("EDGE_HOSTS", "other.example");
        assert_eq!(warnings(&of_a_host, &[hosts]), [warning("https://app.example/")]);
    }

    #[test]
    fn a_scope_that_no_sign_in_asks_for_gives_a_warning() {
        let warning = "EDGE_ROUTES: route \"/orders/*\" asks for the scope \"orders:read\", which no sign-in asks for: add it to OIDC_SCOPE";
        let orders = |lines: &str| {
            APP.to_owned() + &route("/orders/*", &format!("scopes = [\"orders:read\"]\n{lines}"))
        };
        let asked = ("OIDC_SCOPE", "openid orders:read");
        let by_refresh = ("OIDC_API_TOKENS", "refresh");
        assert_eq!(warnings(&orders(""), &[]), [warning]);
        assert_eq!(
            warnings(&orders(""), &[("OIDC_SCOPE", "openid orders:read:all")]),
            [warning]
        );
        assert!(warnings(&orders(""), &[asked]).is_empty());
        let of_an_api = orders("access_token = true\naudience = \"orders\"");
        assert!(warnings(&of_an_api, &[]).is_empty(), "the exchange asks for it");
        assert_eq!(warnings(&of_an_api, &[by_refresh]), [warning]);
        let of_clients = APP.to_owned() + &route("/orders/*", "[route.bearer]\nscopes = [\"orders:read\"]");
        assert!(warnings(&of_clients, &[]).is_empty(), "clients ask for their own");
        let check = "[[check]]\nguard = \"api\"\nscopes = [\"orders:read\"]\n";
        assert_eq!(warnings(check, &[]).len(), 1);
    }
}
